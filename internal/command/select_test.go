// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// installed is a directory with programs of both backends and the switch, and one for the memory.
func installed(t *testing.T) layout.Directory {
	t.Helper()
	path := t.TempDir()
	for _, file := range []string{"xtables-nft-multi", "xtables-legacy-multi", "iptables-wrapper"} {
		if err := os.WriteFile(path+"/"+file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open := func(path string) *dir.Dir {
		d, err := dir.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return d
	}
	x := layout.Directory{Dir: open(path), Wrapper: path + "/" + layout.Wrapper, Named: true}
	x.Memory = memory.In(open(t.TempDir()))
	if err := layout.Lay(x.Dir, "iptables-wrapper", strings.Fields("iptables ip6tables")); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestSelect(t *testing.T) {
	nft := evidence.Decision{Mode: evidence.NFT, Reason: evidence.RuleCount, Because: "only nft has rules"}
	certain := doctor.Host{Result: evidence.Result{Decision: nft}}
	certain.Conclusive = true
	guess := doctor.Host{Uncertainty: "legacy cannot be read"}
	for _, test := range []struct {
		name   string
		stored string // what the switch contains before
		does   func(*session, layout.Directory) error
		status int
		stdout string
		stderr string
		link   string // what the switch contains then
		memory string // how what is remembered begins then
	}{
		{
			name:   "certain",
			does:   func(s *session, x layout.Directory) error { return s.store(x, nft, false) },
			stdout: "nft\n", link: "xtables-nft-multi", memory: "nft rule-count ",
		},
		{
			name:   "guess that must not be stored",
			does:   func(s *session, x layout.Directory) error { return s.uncertain(x, nft, guess, false) },
			status: 3, link: "iptables-wrapper",
			stderr: "iptables-wrapper: select: not certain, nothing changed: legacy cannot be read\n" +
				"iptables-wrapper: try: --mode with the host's backend if you know it, or --guess to go on without it\n",
		},
		{
			name:   "without kubelet",
			does:   func(s *session, x layout.Directory) error { return s.uncertain(x, nft, certain, false) },
			status: 3, link: "iptables-wrapper",
			stderr: "iptables-wrapper: select: not certain, nothing changed: kubelet's chains were not found; " +
				"only nft has rules\n" +
				"iptables-wrapper: try: --mode with the host's backend if you know it, or --guess to go on without it\n",
		},
		{
			name:   "guess",
			does:   func(s *session, x layout.Directory) error { return s.uncertain(x, nft, guess, true) },
			stdout: "nft\n", link: "iptables-wrapper", memory: "nft rule-count guess ",
			stderr: "iptables-wrapper: guessing nft: legacy cannot be read\n",
		},
		{
			name: "certain without kubelet is a guess",
			does: func(s *session, x layout.Directory) error {
				d := nft
				d.Conclusive = true
				return s.uncertain(x, d, certain, true)
			},
			stdout: "nft\n", link: "iptables-wrapper", memory: "nft rule-count guess ",
			stderr: "iptables-wrapper: guessing nft: kubelet's chains were not found; only nft has rules\n",
		},
		{
			name: "guess where a backend is stored", stored: "xtables-legacy-multi",
			does:   func(s *session, x layout.Directory) error { return s.uncertain(x, nft, guess, true) },
			stdout: "legacy\n", link: "xtables-legacy-multi",
			stderr: "iptables-wrapper: legacy was stored before, and stays\n",
		},
		{
			name: "guess that nothing can hold",
			does: func(s *session, x layout.Directory) error {
				x.Memory = memory.Memory{}
				return s.uncertain(x, nft, guess, true)
			},
			status: 1, link: "iptables-wrapper",
			stderr: "iptables-wrapper: guessing nft: legacy cannot be read\n" +
				"iptables-wrapper: select nft: it can be stored neither in the switch nor in the container's memory\n" +
				"iptables-wrapper: try: set IPTABLES_WRAPPER_MODE to nft or legacy in the environment of the container\n",
		},
	} {
		x := installed(t)
		if test.stored != "" {
			if err := x.Dir.Replace(test.stored, layout.Switch); err != nil {
				t.Fatal(err)
			}
		}
		s, stdout, stderr := newSession()
		status := s.printError(test.does(s, x))
		if status != test.status || stdout() != test.stdout || stderr() != test.stderr {
			t.Errorf("%s: status %d, stdout %q, stderr\n%swant\n%s", test.name, status, stdout(), stderr(), test.stderr)
		}
		link, _ := x.Dir.Readlink(layout.Switch)
		if link != test.link {
			t.Errorf("%s: the switch contains %q, want %q", test.name, link, test.link)
		}
		said, _ := x.Memory.Dir.Readlink(memory.Name)
		if !strings.HasPrefix(said, test.memory) || said != "" && test.memory == "" {
			t.Errorf("%s: the memory is %q, want %q", test.name, said, test.memory)
		}
	}
}

// A directory that is not there is an error before any wait.
func TestSelectNowhere(t *testing.T) {
	status, stdout, stderr := run(program, "select", "--dir", "/nowhere", "--wait", "1h")
	want := "iptables-wrapper: select: open /nowhere: no such file or directory\n" +
		"iptables-wrapper: try: use --dir with the directory of the iptables commands\n"
	if status != 1 || stdout != "" || stderr != want {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}
