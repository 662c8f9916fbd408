// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// examples/probe.yaml as podman runs it: its container is healthy until the host changes its backend; a new one, which
// Kubernetes would start then, is healthy again.
func TestProbe(t *testing.T) {
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

// In examples/select.yaml a restart cures nothing, because the init container does not run again: doctor --check fails after a
// change of the host, and doctor --stale does not.
func TestProbeAndVolume(t *testing.T) {
	wantAll(t)
	n := newNode(t, "legacy")
	p := readPod(t, "select", n)
	if got := p.run(t, p.spec.InitContainers[0]); got.status != 0 {
		t.Fatalf("got %+v", got)
	}
	n.change(t, "nft")
	c := p.spec.Containers[0]
	c.Args = []string{"iptables-wrapper doctor --check >/dev/null 2>&1 || echo $?; iptables-wrapper doctor --stale >/dev/null && echo fresh"}
	if got := p.run(t, c); got != (result{"1\nfresh\n", "", 0}) {
		t.Errorf("got %+v", got)
	}
}
