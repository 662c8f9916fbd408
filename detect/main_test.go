// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// first is set in the environment of a test process whose first thread asks, and which then ends.
const first = "IPTABLES_WRAPPER_TEST_FIRST_THREAD"

// Only while init runs is it certain that the first thread of the process runs it.
func init() {
	if os.Getenv(first) == "" {
		return
	}
	r, err := Host("")
	fmt.Println(summary(r), err)
	os.Exit(0)
}

func TestMain(m *testing.M) { host.MainOfPackage(m) }

// summary is a result in three words.
func summary(r Result) string {
	certain := "guess"
	if r.Certain {
		certain = "certain"
	}
	return fmt.Sprintf("%s %s %s", r.Backend, r.Reason, certain)
}

// program is iptables-legacy, or ip6tables-nft with a verb.
func program(b Backend, f Family, verb string) string {
	if f == IPv6 {
		return "ip6tables-" + string(b) + verb
	}
	return "iptables-" + string(b) + verb
}

// addRules adds n rules to table filter.
func addRules(t *testing.T, b Backend, f Family, n int) {
	t.Helper()
	host.Feed(t, "*filter\n"+strings.Repeat("-A INPUT -m comment --comment x -j ACCEPT\n", n)+"COMMIT\n",
		program(b, f, "-restore"), "-w", "--noflush")
}

// addChain adds a chain to a table.
func addChain(t *testing.T, b Backend, f Family, table, chain string) {
	t.Helper()
	host.Run(t, program(b, f, ""), "-w", "-t", table, "-N", chain)
}

// addNative feeds nft commands that are separated by semicolons.
func addNative(t *testing.T, commands string) {
	t.Helper()
	host.Feed(t, strings.ReplaceAll(commands, "; ", "\n")+"\n", "nft", "-f", "-")
}

// step makes something on a host.
type step func(t *testing.T)

func withRules(b Backend, f Family, n int) step { return func(t *testing.T) { addRules(t, b, f, n) } }

func chain(b Backend, f Family, table, name string) step {
	return func(t *testing.T) { addChain(t, b, f, table, name) }
}

func hint(b Backend, f Family) step { return chain(b, f, "mangle", hintChain) }

func canary(b Backend, f Family) step { return chain(b, f, "mangle", canaryChain) }

func native(commands string) step { return func(t *testing.T) { addNative(t, commands) } }

// ask asks as Host does, and fails the test if something could not be asked.
func ask(t *testing.T, held Backend) Result {
	t.Helper()
	r, err := Host(held)
	if err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	return r
}
