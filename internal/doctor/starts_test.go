// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What iptables prints of a table comes before the table. What comes later has other people's words.
func TestRemark(t *testing.T) {
	const remark = "# Table `filter' is incompatible, use 'nft' tool."
	for stdout, want := range map[string]string{
		remark + "\n": remark,
		"*filter\n-A INPUT -m comment \"\n" + remark: "",
		"a # Table `filter' is incompatible":         "",
	} {
		got := save{Output: run.Output{Stdout: stdout}}.remark(incompatible)
		if got != want {
			t.Errorf("%q: got %q", stdout, got)
		}
	}
}

// Whether the image or the kernel lacks an extension: by what iptables prints, before 1.8.8 by the library.
func TestLacks(t *testing.T) {
	const old = "iptables v1.8.7 (nf_tables): Couldn't load match `set':No such file or directory"
	libraries := t.TempDir()
	host.Check(t, os.WriteFile(libraries+"/libxt_set.so", nil, 0o644))
	for _, test := range []struct{ libraries, says, status, want string }{
		{t.TempDir(), "Warning: Extension set is not supported, missing kernel module?", "0", lacksKernel},
		{t.TempDir(), old, "2", lacksLibrary},
		{libraries, old, "2", lacksKernel},
		{libraries, "set: Could not determine whether revision 4 is supported, assuming it is.", "0", ""},
		{libraries, "something else", "2", ""},
	} {
		program := t.TempDir() + "/iptables"
		script := "#!/bin/sh\ncat >&2 <<'END'\n" + test.says + "\nEND\nexit " + test.status + "\n"
		host.Check(t, os.WriteFile(program, []byte(script), 0o755))
		starter := &run.Starter{Limit: run.Limit}
		got := lacking("set", starter.Run(program, detect.NFT, "iptables", "-m", "set", "-h"), test.libraries)
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.says, got, test.want)
		}
	}
}

// What a script says for each value of the variable: only the wrapper follows that.
func TestAsk(t *testing.T) {
	for _, test := range []struct {
		doc, script string
		wrapper     bool
		backend     detect.Backend
		foreign     bool
	}{
		{
			doc: "it starts the wrapper", wrapper: true,
			script: `echo "iptables v1.8.9 ($IPTABLES_WRAPPER_BACKEND)" | sed s/nft/nf_tables/`,
		},
		{doc: "it runs nft", script: `echo "iptables v1.8.9 (nf_tables)"`, backend: detect.NFT},
		{
			doc: "it runs another command", script: `echo "ip6tables-nft-save v1.8.9 (nf_tables)"`, backend: detect.NFT,
		},
		{
			doc:    "it knows only nft",
			script: `case $IPTABLES_WRAPPER_BACKEND in nft) echo "iptables v1.8.9 (nf_tables)" ;; esac`,
		},
		{doc: "an iptables without backends", script: `echo "ip6tables v1.6.1"`},
		{doc: "another program", script: `echo "sed (GNU sed) 4.9"`, foreign: true},
		{doc: "it prints nothing", script: `exit 4`, foreign: true},
	} {
		n := name{script: true, Command: look.Command{Name: "iptables", Path: t.TempDir() + "/iptables"}}
		host.Check(t, os.WriteFile(n.Path, []byte("#!/bin/sh\n"+test.script+"\n"), 0o755))
		ask(&run.Starter{Limit: run.Limit}, &n)
		if n.Wrapper != test.wrapper || n.Backend != test.backend || n.isForeign() != test.foreign {
			t.Errorf("%s: got %+v", test.doc, n)
		}
	}
}

// No start loads x_tables, and nothing is asked of a family that the kernel does not have.
func TestStart(t *testing.T) {
	for _, test := range []struct {
		doc    string
		loaded [2]bool
		noIPv6 bool
		want   string // the commands that were started
	}{
		{doc: "x_tables is not loaded"},
		{doc: "x_tables is loaded", loaded: [2]bool{true, true}, want: "iptables ip6tables ip6tables-save"},
		{doc: "x_tables is loaded for IPv4", loaded: [2]bool{true, false}, want: "iptables"},
		{doc: "no IPv6", loaded: [2]bool{true, true}, noIPv6: true, want: "iptables"},
	} {
		directory := t.TempDir()
		s := permitted()
		s.host.Backend, s.host.Reason = detect.Legacy, detect.OnlySupported
		s.loaded, s.noIPv6 = test.loaded, test.noIPv6
		if test.loaded[detect.IPv6] {
			s.listed[detect.IPv6] = []string{"filter"}
		}
		for i := range s.names {
			s.names[i].Path = directory + "/" + s.names[i].Command.Name
			script := "#!/bin/sh\necho ${0##*/} >>" + directory + "/started\n"
			host.Check(t, os.WriteFile(s.names[i].Path, []byte(script), 0o755))
		}
		s.start(&run.Starter{Limit: time.Minute})
		if s.programs[0].Backend != detect.NFT || s.programs[1].Backend != detect.Legacy {
			t.Errorf("%s: got %+v", test.doc, s.programs)
		}
		lines, _ := os.ReadFile(directory + "/started") // none if nothing was started
		for _, command := range exec.Commands() {
			got := slices.Contains(strings.Fields(string(lines)), command)
			want := slices.Contains(strings.Fields(test.want), command)
			if got != want {
				t.Errorf("%s: %s: started %v, want %v", test.doc, command, got, want)
			}
		}
	}
}
