// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients runs real clients of iptables twice on equal hosts, through the wrapper and without it, and compares
// the results.
package clients

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The clients sleep more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.NumCPU()))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(status)
}

// situations lists the combinations of host and root that each client runs in.
var situations = func() []box {
	var all []box
	for _, readonly := range []bool{false, true} {
		for _, backend := range []string{"nft", "legacy"} {
			for _, host := range []string{"hint", "docker", "node"} {
				all = append(all, box{host: host, backend: backend, readonly: readonly})
			}
		}
		all = append(all, box{host: "empty", backend: "nft", readonly: readonly})
	}
	return all
}()

// boxes returns all situations if TEST_ALL is set, as "make nightly" does. Otherwise the nth client gets two, so that
// any ten clients in a row have all situations among them.
func boxes(n int) []box {
	if os.Getenv("TEST_ALL") != "" {
		return situations
	}
	return []box{situations[n%len(situations)], situations[(n+10)%len(situations)]}
}

func TestClients(t *testing.T) {
	for n, c := range all {
		for _, b := range boxes(n) {
			b.script, b.env, b.unordered = c.script, c.env, c.unordered
			if b.script == "" {
				b.script = "debian/" + c.name + ".sh"
			}
			t.Run(c.name+"/"+b.String(), func(t *testing.T) {
				t.Parallel()
				compare(t, b)
			})
		}
	}
}

// compare runs a script without the wrapper and with it. Nothing may differ. The direct run must change rules;
// otherwise the comparison would prove nothing.
func compare(t *testing.T, b box) {
	t.Helper()
	direct := b.run(t)
	b.wrapped = true
	wrapped := b.run(t)
	if t.Failed() {
		return
	}
	changed := map[string]bool{}
	for name, text := range results(t, b, direct) {
		if filepath.Ext(name) == ".rules" {
			changed[text] = true
		}
	}
	if len(changed) < 2 {
		t.Errorf("no rule was changed in the direct run")
	}
	for _, difference := range differences(t, b, direct, wrapped) {
		t.Error(difference)
	}
}
