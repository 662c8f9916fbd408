// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package program runs the real program on the real kernel, with the real iptables programs of both backends, each
// case in a container of its own.
package program

import (
	"flag"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) { host.Main(m) }

var update = flag.Bool("update", false, "write what programs print into the pages")

// installed puts the wrapper into the container and under the six commands.
func installed(tb testing.TB) {
	tb.Helper()
	host.PutWrapper(tb, "/usr/sbin/iptables-wrapper")
	host.Run(tb, "iptables-wrapper", "install")
}

func read(t *testing.T, path string) string {
	t.Helper()
	content := host.Read(t, path)
	return string(content)
}
