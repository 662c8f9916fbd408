// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A container may have 16 MiB. What was asked about tables of almost the largest size must not keep them in memory.
func TestLargeTablesAreNotKept(t *testing.T) {
	host.Netns(t)
	const chains = 9000
	var b strings.Builder
	tables := []string{"filter", "nat", "mangle", "raw", "security"}
	for _, table := range tables {
		fmt.Fprintf(&b, "*%s\n:%s - [0:0]\n", table, hintChain)
		for i := range chains {
			fmt.Fprintf(&b, ":CHAIN-%d - [0:0]\n", i)
		}
		fmt.Fprint(&b, "COMMIT\n")
	}
	host.Feed(t, b.String(), "iptables-legacy-restore", "-w")
	before := heap()
	a, _ := start()
	defer a.nft.Close()
	for _, table := range tables {
		read := a.legacy[IPv4].table(table)
		if read.err != nil || !read.Whole || !slices.Equal(read.Chains, []string{hintChain}) {
			t.Fatalf("table %s: got %+v", table, read)
		}
	}
	kept := heap() - before
	if kept > xtables.Limit {
		t.Errorf("%d bytes are kept of %d tables", kept, len(tables))
	}
	runtime.KeepAlive(a)
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
