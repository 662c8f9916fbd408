// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const adopt = top + "/images/adopt/"

type adoption struct {
	stage, base, dir         string
	entry, variable, backend string
}

// adopted are the images of other projects on docs/adopting.md, each with what stands for its base. One that has an
// entry point is started through it. With a variable it runs the backend that this asks for, without one the host's.
var adopted = []adoption{
	{stage: "cilium", base: "debian:trixie"},
	{stage: "antrea", base: "debian:trixie"},
	{stage: "distroless-iptables", base: "debian:bookworm"},
	{stage: "kindnetd", base: "debian:bookworm"},
	{stage: "flannel", base: "busybox:alpine"},
	{stage: "kube-router", base: "busybox:alpine"},
	{stage: "kilo", base: "busybox:alpine-3.19", dir: "/sbin"},
	{stage: "klipper-lb", base: "busybox:alpine"},
	{stage: "wg-easy", base: "busybox:alpine"},
	{stage: "dind", base: "busybox:alpine", entry: "entry"},
	{stage: "dind", base: "busybox:alpine", entry: "entry", variable: "DOCKER_IPTABLES_LEGACY=1", backend: "legacy"},
	{stage: "dind", base: "busybox:alpine", entry: "entry", variable: "DOCKER_IPTABLES_LEGACY=", backend: "nft"},
	{stage: "eks-distro", base: "fedora", dir: "/usr/bin"},
	{stage: "wolfi", base: "busybox:wolfi", dir: "/usr/bin"},
}

// baseStage is the stage of images/adopt/Dockerfile that a base replaces.
var baseStage = map[string]string{
	"debian": "debian-base", "fedora": "fedora-base", "busybox": "alpine-base", "wolfi": "wolfi-base",
}

// Each image loads a client's rules into the right backend, beginning with its first call, which is a restore.
func TestAdopted(t *testing.T) {
	t.Parallel()
	for _, a := range adopted {
		t.Run(strings.TrimSpace(a.stage+" "+a.variable), func(t *testing.T) {
			distribution, layout, _ := strings.Cut(a.base, ":")
			stage := cmp.Or(baseStage[layout], baseStage[distribution])
			i := built{image{dir: cmp.Or(a.dir, "/usr/sbin")}, build(t, "adopted-"+a.stage, top+"/images",
				"--file", adopt+"Dockerfile", "--target", a.stage,
				"--build-context", stage+"=container-image://"+base(t, a.base),
				"--build-context", "wrapper=container-image://"+base(t, "iptables-wrapper"))}
			for _, backend := range backends {
				want := backend
				if a.backend != "" {
					want = a.backend
				}
				n := newNode(t, backend)
				options := append(rights(n), "--env", a.variable)
				if a.variable == "" {
					options = options[:len(options)-2]
				}
				script := "iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version"
				run := runArgs(t, i, script, options...)
				if a.entry != "" {
					run[slices.Index(run, "--entrypoint")+1] = a.entry
					run = slices.Insert(run, slices.Index(run, i.ref)+1, "/busybox")
				}
				i.right(t, start(t, rule1, command(t, run...)), want, "1")
				n.feed(t, "", "iptables-"+want, "-C", "INPUT", "-s", "192.0.2.1", "-j", "DROP")
			}
		})
	}
}

// An image that is based on AWS' may set the group again, which keeps all six commands, and may not set the wrapper's
// file.
func TestBasedOnAdopted(t *testing.T) {
	t.Parallel()
	aws := build(t, "adopted-eks-distro", top+"/images", "--file", adopt+"Dockerfile", "--target", "eks-distro",
		"--build-context", "fedora-base=container-image://"+base(t, "fedora"),
		"--build-context", "wrapper=container-image://"+base(t, "iptables-wrapper"))
	set := "update-alternatives --set iptables /usr/sbin/"
	got := run(t, aws, "", set+"iptables-current; leads; /busybox ls /etc/alternatives | /busybox grep -c tables; "+
		set+"iptables-wrapper || echo refused")
	want := "/usr/bin/iptables-wrapper\n6\nrefused\n"
	if got.stdout != want || got.status != 0 {
		t.Errorf("got %+v, want %q", got, want)
	}
}

// What the page shows is what these tests build.
func TestAdoptingPage(t *testing.T) {
	page := string(host.Read(t, top+"/docs/adopting.md"))
	lines := strings.Split(string(host.Read(t, adopt+"Dockerfile"))+string(host.Read(t, adopt+"dind.sh")), "\n")
	shown := 0
	for n, block := range strings.Split(page, "```") {
		if n%2 == 0 {
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(block), "\n")[1:] {
			shown++
			if !slices.Contains(lines, line) {
				t.Errorf("images/adopt has no line %q", line)
			}
		}
	}
	if shown < 10 {
		t.Errorf("the page shows %d lines", shown)
	}
}

// The Dockerfile in the README, and the call below it, work on hosts of both backends. Only what comes from a registry
// is replaced, and the host's network.
func TestReadme(t *testing.T) {
	readme := host.Read(t, top+"/README.md")
	example := regexp.MustCompile("(?s)```dockerfile\n(.*?)```.*?\n" +
		"    docker run --rm --network host (.*?) my-image (.*?)\n")
	found := example.FindStringSubmatch(string(readme))
	if found == nil {
		t.Fatal("the README has no Dockerfile with a call below it")
	}
	text := strings.NewReplacer("debian:trixie-slim", base(t, "debian:trixie")).Replace(found[1])
	text = regexp.MustCompile(`--from=(\S+/)?iptables-wrapper(:v\S+)? `).
		ReplaceAllString(text, "--from="+base(t, "iptables-wrapper")+" ") // built, or a release's
	ref := build(t, "readme", dockerfile(t, strings.Split(strings.TrimSpace(text), "\n")...))
	for _, backend := range backends {
		options := append(slices.Clone(host.Ulimits), strings.Fields(found[2])...)
		arguments := strings.Fields(found[3])
		args := slices.Concat([]string{"run", "--rm", newNode(t, backend).network()}, options, []string{ref}, arguments)
		if got := podman(t, args...); !strings.HasSuffix(got, version(backend)) {
			t.Errorf("%s: got %s", backend, got)
		}
	}
}
