// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The liveness probe of examples/probe.yaml, as podman's health check: a container is healthy until its host changes its
// mode; a new one, which Kubernetes would start then, is healthy again.
func TestProbe(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "examples", "probe.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var example struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						LivenessProbe struct{ Exec struct{ Command []string } }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	probe, err := json.Marshal(example.Spec.Template.Spec.Containers[0].LivenessProbe.Exec.Command)
	if err != nil {
		t.Fatal(err)
	}
	ref := buildImage(t, named(t, "debian (trixie)")).ref
	n := newNode(t, "legacy")
	container := func() (id string) {
		args := append([]string{"run", "--detach", "--health-cmd", string(probe), "--health-interval", "disable"}, rights(n)...)
		id = podman(t, append(append(append(args, ulimits...), "--entrypoint", "sleep"), ref, "1000")...)
		t.Cleanup(func() { podman(t, "rm", "--force", "--time", "0", id) })
		return id
	}
	healthy := func(id string) bool {
		t.Helper()
		got := start(t, "", command(t, "healthcheck", "run", id))
		if out := strings.TrimSpace(got.stdout); got.status > 1 || got.status == 0 && out != "" && out != "healthy" {
			t.Fatalf("got %+v", got)
		}
		return got.status == 0
	}

	id := container()
	if !healthy(id) {
		t.Error("a container that has not called iptables yet is not healthy")
	}
	podman(t, "exec", id, "iptables", "-S")
	if !healthy(id) {
		t.Error("a container that runs the host's backend is not healthy")
	}
	n.feed(t, "", "ip6tables-legacy", "-t", "mangle", "-X", "KUBE-IPTABLES-HINT")
	n.feed(t, "", "ip6tables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	if healthy(id) {
		t.Error("a container that runs the other backend is healthy")
	}
	id = container()
	podman(t, "exec", id, "iptables", "-S")
	if !healthy(id) {
		t.Error("a new container is not healthy")
	}
}
