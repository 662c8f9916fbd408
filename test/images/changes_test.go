// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

// examples/probe.yaml as podman runs it: its container is healthy until the host changes its backend; a new one, which
// Kubernetes would start then, is healthy again.
func TestProbe(t *testing.T) {
	t.Parallel()
	n := newNode(t, "legacy")
	p := readPod(t, "probe", n)
	c := p.spec.Containers[0]
	probe, err := json.Marshal(c.LivenessProbe.Exec.Command)
	if err != nil {
		t.Fatal(err)
	}
	container := func(mode string) (id string) {
		id = podman(t, p.args(t, c, "--detach", "--health-cmd", string(probe), "--health-interval", "disable")...)
		t.Cleanup(func() { podman(t, "rm", "--force", "--time", "0", id) })
		for got := ""; got != "/usr/sbin/xtables-"+mode+"-multi"; time.Sleep(100 * time.Millisecond) {
			got = podman(t, "exec", id, "readlink", "-f", "/usr/sbin/iptables") // fails if the container has ended
		}
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

	id := container("legacy")
	if !healthy(id) {
		t.Error("a container that runs the host's backend is not healthy")
	}
	n.change(t, "nft")
	if healthy(id) {
		t.Error("a container that runs the other backend is healthy")
	}
	if !healthy(container("nft")) {
		t.Error("a new container is not healthy")
	}
}

// change moves the hint to a mode, as a restart of kubelet does after the host has changed.
func (n node) change(t *testing.T, mode string) {
	t.Helper()
	n.feed(t, "", "ip6tables-"+other(mode), "-t", "mangle", "-X", "KUBE-IPTABLES-HINT")
	n.feed(t, "", "ip6tables-"+mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
}

// In examples/select.yaml a restart cures nothing, because the init container does not run again: doctor --check fails
// after a change of the host, and doctor --stale does not.
func TestProbeAndVolume(t *testing.T) {
	wantAll(t)
	n := newNode(t, "legacy")
	p := readPod(t, "select", n)
	if got := p.run(t, p.spec.InitContainers[0]); got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	n.change(t, "nft")
	c := p.spec.Containers[0]
	c.Args = []string{"iptables-wrapper doctor --check >/dev/null 2>&1 || echo $?; " +
		"iptables-wrapper doctor --stale >/dev/null && echo fresh"}
	if got := p.run(t, c); got != (result{"1\nfresh\n", "", 0}) {
		t.Errorf("got %+v", got)
	}
}

// The container is started again: a new one from the image, as Kubernetes does it, and the same one.
func hostChanges(t *testing.T, i built, mode string) string {
	n := newNode(t, mode)
	script := "version"
	if !i.nonroot {
		script = "version; iptables-wrapper reset >/dev/null; version; iptables-wrapper reset >/dev/null; " +
			"iptables -S >/dev/null; leads"
	}
	create := append([]string{"create"}, runArgs(t, i, script, rights(n)...)[2:]...)
	id := podman(t, create...)
	t.Cleanup(func() { podman(t, "rm", "--force", "--time", "0", id) })
	again := func() string {
		got := start(t, "", command(t, "start", "--attach", id))
		if got.status != 0 || got.stderr != "" {
			t.Errorf("got %+v", got)
		}
		return got.stdout
	}
	lines := func(modes ...string) (s string) {
		for _, m := range modes {
			s += version(m) + "\n"
		}
		return s
	}
	first := again()
	n.feed(t, "", "ip6tables-"+mode, "-t", "mangle", "-X", "KUBE-IPTABLES-HINT")
	n.feed(t, "", "ip6tables-"+other(mode), "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	second := again()
	i.right(t, i.run(t, "", "iptables -S >/dev/null; leads; version", rights(n)...), other(mode))
	switch {
	case i.nonroot && first == lines(mode) && second == lines(other(mode)):
		return eachCall
	case first == lines(mode, mode)+i.program(mode)+"\n" &&
		second == lines(mode, other(mode))+i.program(other(mode))+"\n":
		return newOne
	}
	t.Errorf("first %q, then %q", first, second)
	return ""
}

// Both at the same time, from one image.
func twoModes(t *testing.T, i built, mode string) string {
	var words [2]string
	var both sync.WaitGroup
	for j, m := range []string{mode, other(mode)} {
		n := newNode(t, m)
		both.Go(func() {
			words[j] = i.right(t, i.run(t, "", "iptables -S >/dev/null; leads; version", rights(n)...), m)
		})
	}
	both.Wait()
	if words[0] != words[1] {
		t.Errorf("%q and %q", words[0], words[1])
	}
	return words[0]
}

// What doctor says of the container on a host where it works. The host has stray rules, which it must report.
func doctor(t *testing.T, i built, mode string) string {
	got := i.run(t, "", "iptables-wrapper doctor", rights(newNode(t, mode))...)
	said := strings.Join(strings.Fields(got.stdout), " ") // its lines are broken for a terminal
	if got.status != 0 || got.stderr != "" || !strings.Contains(said, "result: rules-in-both details:") ||
		!strings.HasPrefix(said, "WARNING rules-in-both: the other backend has rules too: 20 in "+other(mode)+
			" ipv4 filter. ") {
		t.Errorf("got %+v", got)
		return ""
	}
	return healthy
}
