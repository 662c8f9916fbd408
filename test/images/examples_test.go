// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// manifest is what of a Pod or DaemonSet says how its containers are run. "make lint" checks the whole of it against
// the API's schema.
type manifest struct {
	Kind string
	Spec struct {
		podSpec
		Template struct{ Spec podSpec }
	}
}

type podSpec struct {
	HostNetwork                bool
	InitContainers, Containers []container
	Volumes                    []struct {
		Name     string
		HostPath *struct{ Path, Type string }
	}
}

type container struct {
	Name, Image     string
	Command, Args   []string
	SecurityContext struct {
		ReadOnlyRootFilesystem   bool
		AllowPrivilegeEscalation *bool
		Capabilities             struct{ Drop, Add []string }
	}
	VolumeMounts []struct {
		Name, MountPath string
		ReadOnly        bool
	}
}

// pod is an example on a node: its network, the node's or its own, and its volumes.
type pod struct {
	spec    podSpec
	network node
	volumes map[string]string
}

func parsePod(t *testing.T, text []byte) podSpec {
	t.Helper()
	var m manifest
	host.Check(t, yaml.Unmarshal(text, &m))
	if m.Kind == "DaemonSet" {
		return m.Spec.Template.Spec
	}
	return m.Spec.podSpec
}

func readPod(t *testing.T, name string, n node) pod {
	t.Helper()
	text := host.Read(t, filepath.Join(top, "examples", name+".yaml"))
	p := pod{parsePod(t, text), n, map[string]string{}}
	if !p.spec.HostNetwork {
		p.network = bareNode(t)
	}
	for _, v := range p.spec.Volumes {
		path := filepath.Join(t.TempDir(), v.Name)
		var err error
		if v.HostPath != nil && v.HostPath.Type == "FileOrCreate" {
			err = os.WriteFile(path, nil, 0o600)
		} else {
			err = errors.Join(os.Mkdir(path, 0o755), os.Chmod(path, 0o777)) // as kubelet makes an emptyDir
		}
		host.Check(t, err)
		p.volumes[v.Name] = path
	}
	return p
}

// run runs a container as Kubernetes would. It does not sleep.
func (p pod) run(t *testing.T, c container, more ...string) result {
	t.Helper()
	args := p.args(t, c, more...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "exec sleep infinity", "")
	}
	return start(t, "", command(t, args...))
}

// args run a container, from the image that its comment tells to make.
func (p pod) args(t *testing.T, c container, more ...string) []string {
	t.Helper()
	ref := base(t, "iptables-wrapper")
	if !strings.HasPrefix(c.Image, "ghcr.io/iptables-wrappers/iptables-wrapper:v") {
		name := strings.TrimSuffix(strings.TrimPrefix(c.Image, "registry.example/"), ":v1")
		recipe := map[string]string{
			"cni-agent": "debian (trixie)",
			"firewall":  "debian (trixie)",
			"mesh-init": "distroless",
		}
		ref = buildImage(t, named(t, recipe[name])).ref
	}
	args := append([]string{"run", "--rm", p.network.network()}, host.Ulimits...)
	for _, capability := range c.SecurityContext.Capabilities.Drop {
		args = append(args, "--cap-drop", capability)
	}
	for _, capability := range c.SecurityContext.Capabilities.Add {
		args = append(args, "--cap-add", capability)
	}
	if c.SecurityContext.ReadOnlyRootFilesystem {
		args = append(args, "--read-only", "--read-only-tmpfs=false")
	}
	if escalation := c.SecurityContext.AllowPrivilegeEscalation; escalation != nil && !*escalation {
		args = append(args, "--security-opt", "no-new-privileges")
	}
	for _, m := range c.VolumeMounts {
		volume := p.volumes[m.Name] + ":" + m.MountPath
		if m.ReadOnly {
			volume += ":ro"
		}
		args = append(args, "--volume", volume)
	}
	args = append(args, more...)
	rest := c.Args
	if len(c.Command) > 0 {
		args = append(args, "--entrypoint", c.Command[0])
		rest = append(c.Command[1:], rest...)
	}
	return append(append(args, ref), rest...)
}

func named(t *testing.T, name string) image {
	t.Helper()
	for _, i := range all {
		if i.name == name {
			return i
		}
	}
	t.Fatalf("no image %q", name)
	return image{}
}

// Every example runs, on a node with each backend.
func TestExamples(t *testing.T) {
	for _, backend := range backends {
		t.Run("cni/"+backend, func(t *testing.T) {
			n := newNode(t, backend)
			p := readPod(t, "cni", n)
			if got := p.run(t, p.spec.InitContainers[0]); got != (result{}) {
				t.Errorf("got %+v", got)
			}
			if got := p.run(t, p.spec.Containers[0]); got != (result{"-N EXAMPLE-FORWARD\n", "", 0}) {
				t.Errorf("got %+v", got)
			}
			n.feed(t, "", "iptables-"+backend, "-S", "EXAMPLE-FORWARD")
			link, err := os.Readlink(filepath.Join(p.volumes["links"], "ip6tables-restore"))
			if link != "iptables-wrapper" || err != nil {
				t.Errorf("in the volume, a name is a link to %q, %v", link, err)
			}
		})
		t.Run("select/"+backend, func(t *testing.T) {
			n := newNode(t, backend)
			p := readPod(t, "select", n)
			want := result{"the commands in /usr/sbin run " + backend + "\n-N EXAMPLE-FIREWALL\n", "", 0}
			if got := p.run(t, p.spec.Containers[0]); got != want {
				t.Errorf("got %+v", got)
			}
			n.feed(t, "", "iptables-"+backend, "-S", "EXAMPLE-FIREWALL")

			p.network = bareNode(t) // where nothing proves a backend, the Pod starts all the same
			got := p.run(t, p.spec.Containers[0])
			if got.stdout != "the commands in /usr/sbin run nft\n-N EXAMPLE-FIREWALL\n" || got.status != 0 ||
				!strings.Contains(got.stderr, "not certain") {
				t.Errorf("without a name: %+v", got)
			}
		})
		t.Run("gate/"+backend, func(t *testing.T) {
			n := newNode(t, backend)
			p := readPod(t, "gate", n)
			if got := p.run(t, p.spec.InitContainers[0]); got != (result{backend + "\n", "", 0}) {
				t.Errorf("got %+v", got)
			}
			if got := p.run(t, p.spec.Containers[0]); got != (result{"-N EXAMPLE-GATED\n", "", 0}) {
				t.Errorf("got %+v", got)
			}
			n.feed(t, "", "iptables-"+backend, "-S", "EXAMPLE-GATED")

			p.network = bareNode(t)
			if got := p.run(t, p.spec.InitContainers[0]); got.status != 3 {
				t.Errorf("without a name: %+v", got)
			}
		})
		t.Run("debug/"+backend, func(t *testing.T) {
			p := readPod(t, "debug", newNode(t, backend))
			got := p.run(t, p.spec.Containers[0])
			if !strings.Contains(got.stdout, backend+" (certain: chain KUBE-IPTABLES-HINT") ||
				got.stderr != "" || got.status != 0 {
				t.Errorf("got %+v", got)
			}
		})
		t.Run("fleet/"+backend, func(t *testing.T) {
			p := readPod(t, "fleet", newNode(t, backend))
			got := p.run(t, p.spec.InitContainers[0])
			var answer struct {
				Backend, Reason string
				Certain         bool
			}
			err := json.Unmarshal([]byte(got.stdout), &answer)
			if err != nil || answer.Backend != backend || answer.Reason != "kubelet-hint" || !answer.Certain ||
				got.stderr != "" || got.status != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
		t.Run("sidecar/"+backend, func(t *testing.T) {
			for _, ref := range []string{"mesh-init", "firewall"} { // the second one has no lock in its image
				p := readPod(t, "sidecar", newNode(t, backend))
				c := p.spec.InitContainers[0]
				c.Image = "registry.example/" + ref + ":v1"
				if got := p.run(t, c, "--env=IPTABLES_WRAPPER_BACKEND="+backend); got != (result{"", "", 0}) {
					t.Errorf("got %+v", got)
				}
				rules := p.network.feed(t, "", "iptables-"+backend, "-t", "nat", "-S", "PREROUTING")
				if !strings.Contains(rules, "-j REDIRECT --to-ports 15001") {
					t.Errorf("got %q", rules)
				}
			}
		})
	}
	t.Run("sidecar/guess", func(t *testing.T) {
		p := readPod(t, "sidecar", bareNode(t))
		if got := p.run(t, p.spec.InitContainers[0]); got != (result{"", "", 0}) {
			t.Errorf("got %+v", got)
		}
	})
}
