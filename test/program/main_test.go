// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package program runs the real program on the real kernel, with the real iptables programs of both backends, each
// case in a container of its own.
package program

import (
	"flag"
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) { host.Main(m) }

var update = flag.Bool("update", false, "write what programs print into the pages")

var names = host.Names

// installed puts the wrapper into the container and under the six names.
func installed(tb testing.TB) {
	tb.Helper()
	host.PutWrapper(tb, "/usr/sbin/iptables-wrapper")
	host.Run(tb, "iptables-wrapper", "install")
}

// hostWithHint makes a host of a mode, and the six names run the wrapper.
func hostWithHint(t *testing.T, mode string) {
	t.Helper()
	host.Check(t, host.LayOut(os.Getenv(host.WrapperVariable)))
	host.Run(t, "iptables-"+mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
}

// inBothModes runs a test on a host of each mode.
func inBothModes(t *testing.T, test func(t *testing.T, mode string)) {
	for _, mode := range []string{"nft", "legacy"} {
		t.Run(mode, func(t *testing.T) {
			if host.Contain(t) {
				hostWithHint(t, mode)
				test(t, mode)
			}
		})
	}
}

// wantNames checks where each of the six names leads.
func wantNames(tb testing.TB, want string) {
	tb.Helper()
	for _, name := range names {
		if got := host.End(name); got != want {
			tb.Errorf("%s points to %s, want %s", name, got, want)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content := host.Read(t, path)
	return string(content)
}
