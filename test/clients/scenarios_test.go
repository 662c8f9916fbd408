// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Evidence that appears after the wrapper decided, and the remedy. The scripts check the outcome themselves.
func TestLate(t *testing.T) {
	for _, l := range []struct {
		name string
		box  box
		env  []string
	}{
		{name: "late-hint", box: box{host: "empty", backend: "nft"}},
		{name: "host-changes", box: box{host: "hint", backend: "nft"}},
		{name: "agent", box: box{host: "hint", backend: "legacy"}, env: []string{"LINKS=switch"}},
		{name: "agent", box: box{host: "hint", backend: "legacy"}, env: []string{"LINKS=straight"}},
	} {
		for _, l.box.readonly = range []bool{false, true} {
			b := l.box
			b.script, b.wrapped, b.env = "scenarios/"+l.name+".sh", true, l.env
			t.Run(l.name+"/"+strings.Join(l.env, "")+"/"+b.String(), func(t *testing.T) {
				t.Parallel()
				b.run(t)
			})
		}
	}
}

// The examples that docs/library.md links to, in an image whose six commands resolve to the other backend. The script
// checks the outcome.
func TestLibrary(t *testing.T) {
	for _, b := range situations {
		if b.host == "empty" || b.readonly {
			continue
		}
		b.script = "kubernetes/library.sh"
		t.Run(b.backend+"/"+b.host, func(t *testing.T) {
			t.Parallel()
			b.run(t)
		})
	}
}

var update = flag.Bool("update", false, "write the clients into docs/evidence/compatibility.md")

// The page has the clients that are run. That nothing differs is what TestClients expects.
func TestPage(t *testing.T) {
	text := "| client | from |\n| --- | --- |\n"
	for _, c := range all {
		text += fmt.Sprintf("| %s | %s |\n", c.name, cmp.Or(c.pkg, c.module))
	}
	host.PageHolds(t, "../../docs/evidence/compatibility.md", "clients", text, *update)
}
