// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Which calls store something at all: step 0.
func TestStores(t *testing.T) {
	kubelets := evidence.Decision{Mode: evidence.NFT, Reason: evidence.KubeletHint, Conclusive: true}
	certain := evidence.Decision{Mode: evidence.NFT, Reason: evidence.RuleCount, Conclusive: true}
	guess := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Default}
	known := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Remembered}
	override := evidence.Decision{Mode: evidence.NFT, Reason: evidence.Override}
	for _, test := range []struct {
		doc  string
		call Call
		want bool
	}{
		{"kubelet's, a reading call", Call{Decision: kubelets, Root: true, Own: true}, true},
		{"kubelet's, another user", Call{Decision: kubelets, Own: true, Adds: true, Changes: true}, false},
		{"kubelet's, another namespace", Call{Decision: kubelets, Root: true, Adds: true, Changes: true}, false},
		{"certain, a reading call", Call{Decision: certain, Root: true, Own: true}, false},
		{"certain, a deleting call", Call{Decision: certain, Root: true, Own: true, Changes: true}, true},
		{
			"certain, beside a question that failed",
			Call{Decision: certain, Root: true, Own: true, Changes: true, Incomplete: true}, true,
		},
		{"a guess, a deleting call", Call{Decision: guess, Root: true, Own: true, Changes: true}, false},
		{"a guess, an adding call", Call{Decision: guess, Root: true, Own: true, Changes: true, Adds: true}, true},
		{
			"a guess, beside a question that failed",
			Call{Decision: guess, Root: true, Own: true, Changes: true, Adds: true, Incomplete: true}, false,
		},
		{
			"remembered, beside a question that failed",
			Call{Decision: known, Root: true, Own: true, Changes: true, Incomplete: true}, true,
		},
		{"remembered, a reading call", Call{Decision: known, Root: true, Own: true}, false},
		{"the variable", Call{Decision: override, Root: true, Own: true, Changes: true, Adds: true}, false},
	} {
		if got := test.call.stores(); got != test.want {
			t.Errorf("%s: got %v", test.doc, got)
		}
	}
}

// A relative path is known like the absolute one. A path without a slash is not known.
func TestLocate(t *testing.T) {
	top := t.TempDir()
	host.Check(t, os.WriteFile(top+"/iptables-wrapper", nil, 0o755))
	host.Check(t, os.WriteFile(top+"/other", nil, 0o755))
	for name, content := range map[string]string{
		Switch: Wrapper, "iptables": Switch, "direct": Wrapper, "script": "other",
	} {
		host.Check(t, os.Symlink(content, top+"/"+name))
	}
	running, err := dir.IDAt(top + "/iptables-wrapper")
	host.Check(t, err)
	t.Chdir(top)
	for path, want := range map[string]Place{
		top + "/iptables": {Command: top + "/iptables", Laid: true},
		"./iptables":      {Command: "./iptables", Laid: true},
		top + "/direct":   {Command: top + "/direct"},
		top + "/script":   {},
		"iptables":        {},
		"":                {},
	} {
		p := Locate(path, running)
		known := p.Dir != nil
		if p.Command != want.Command || p.Laid != want.Laid || known != (want.Command != "") {
			t.Errorf("%q: got %+v", path, p)
		}
		if known && (!p.Dir.IsAt(top) || p.Dir.Path()[0] != '/') {
			t.Errorf("%q: got %s", path, p.Dir.Path())
		}
	}
}
