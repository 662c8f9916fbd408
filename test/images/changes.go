// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"strings"
	"sync"
	"testing"
)

// The same container is started again. A new one from the image, as Kubernetes starts it, is what twoBackends starts.
func hostChanges(t *testing.T, i built, backend string) string {
	n := newNode(t, backend)
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
	lines := func(backends ...string) (s string) {
		for _, m := range backends {
			s += version(m) + "\n"
		}
		return s
	}
	first := again()
	n.feed(t, "", "ip6tables-"+backend, "-t", "mangle", "-X", "KUBE-IPTABLES-HINT")
	n.feed(t, "", "ip6tables-"+other(backend), "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	second := again()
	switch {
	case i.nonroot && first == lines(backend) && second == lines(other(backend)):
		return eachCall
	case first == lines(backend, backend)+i.program(backend)+"\n" &&
		second == lines(backend, other(backend))+i.program(other(backend))+"\n":
		return newOne
	}
	t.Errorf("first %q, then %q", first, second)
	return ""
}

// Both at the same time, from one image.
func twoBackends(t *testing.T, i built, backend string) string {
	var words [2]string
	var both sync.WaitGroup
	for j, m := range []string{backend, other(backend)} {
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

// What doctor says of the container on a host where it works. The host has stray rules, which drop packets.
func doctor(t *testing.T, i built, backend string) string {
	got := i.run(t, "", "iptables-wrapper doctor", rights(newNode(t, backend))...)
	says := "\nPROBLEM  both-backends: Packets pass both backends, and " + other(backend) + " has ip filter 20 rules "
	if got.status != 1 || got.stderr != "" || strings.Count(got.stdout, "more:") != 1 ||
		!strings.Contains(got.stdout, says) {
		t.Errorf("got %+v", got)
		return ""
	}
	return strayRules
}
