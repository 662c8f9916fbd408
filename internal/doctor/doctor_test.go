// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Of two findings, the later one does not repeat what to do.
func TestOneRemedy(t *testing.T) {
	s := healthy()
	fail(s, ended(t, "exit 1"), "missing kernel module?")
	s.commands[3].Call = plan.Plan{Backend: detect.Legacy, How: plan.NotWrapped}
	s.calls[0].backend = detect.Legacy
	found := s.diagnose("main")
	if len(found) != 2 || found[1].Do != "Do what kernel says first." {
		t.Errorf("got %v", found)
	}
}

// A family that works needs no other answer, and one that does not says what it printed, whatever the wrapper's own
// questions met.
func TestCallsFirst(t *testing.T) {
	s := healthy()
	s.errors[detect.NFT], s.process.Missing = unix.EPERM, []string{netAdmin, netRaw}
	if found := s.diagnose("main"); len(found) > 0 {
		t.Errorf("it works: %v", found)
	}
	if unseen := s.unseen(); len(unseen) > 0 {
		t.Errorf("it works: %v", unseen)
	}
	fail(s, ended(t, "exit 1"), "cannot open /proc/net/ip_tables_names: Permission denied")
	if found := s.diagnose("main"); len(found) > 0 || len(s.unseen()) == 0 {
		t.Errorf("a list that may not be read: %v", found)
	}
}

// Whatever a program that is started ends with, and whatever error a question has, is said once, by its name.
func TestAnyErrno(t *testing.T) {
	for errno := unix.Errno(1); errno < 134; errno++ {
		s := healthy()
		start := &exec.Error{Name: "iptables-save", Err: errno}
		for i, command := range savers {
			s.calls[i] = judge(detect.NFT, run.Output{Command: command, Err: start})
		}
		found := s.diagnose("main")
		if len(found) != 1 || found[0].Code != noProgram || !strings.Contains(found[0].Text, errno.Error()) {
			t.Errorf("%v: %v", errno, found)
		}

		s = healthy()
		s.errors[detect.NFT], s.errors[detect.Legacy] = errno, errno
		s.families[detect.IPv6].refused = errno
		for _, f := range s.diagnose("main") {
			if f.Code != kernel || isRefusal(errno) || plan.IsScarce(errno) || errno == unix.EEXIST {
				t.Errorf("%v, and iptables works: %v", errno, f)
			}
		}
	}
}

func TestAnySignal(t *testing.T) {
	for signal := unix.SIGHUP; signal <= unix.SIGSYS; signal++ {
		if slices.Contains([]unix.Signal{unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH}, signal) ||
			slices.Contains([]unix.Signal{unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}, signal) {
			continue // it does not end a program
		}
		s := healthy()
		err := ended(t, fmt.Sprintf("kill -%d $$", signal))
		for i, command := range savers {
			s.calls[i] = judge(detect.NFT, run.Output{Command: command, Err: err})
		}
		found := s.diagnose("main")
		want := `"iptables-save" was ended by ` + unix.SignalName(signal) + ". The same goes for ip6tables-save."
		if len(found) != 1 || found[0].Text != want {
			t.Errorf("%v: %v", signal, found)
		}
	}
}

// What doctor itself lacked is a fact, and then nothing is said to be without problems.
func TestScarce(t *testing.T) {
	s := healthy()
	s.scarce = unix.EMFILE
	s.calls = nil
	for _, command := range savers {
		err := fmt.Errorf("%w: %w", run.ErrNotStarted, unix.EAGAIN)
		s.calls = append(s.calls, judge(detect.NFT, run.Output{Command: command, Err: err}))
	}
	r := Report{Findings: s.diagnose("main"), Unseen: s.unseen(), Programs: s.programs, state: s}
	title := r.Lines()[0]
	const want = "not all could be seen; findings: 0; iptables did not list the rules of nft; "
	if r.Problem() || !strings.HasPrefix(title, want) {
		t.Errorf("got %v, %s", r.Findings, title)
	}
}

// A program that works for longer than the limit is a fact. It says what it used.
func TestEndless(t *testing.T) {
	s := healthy()
	s.calls[0] = judge(detect.NFT, run.Output{Command: "iptables-save", Err: run.ErrEndless, Used: time.Second})
	want := `"iptables-save" did not end in 10s, and used 1.00 s of processor time`
	if found := s.diagnose("main"); len(found) > 0 || !slices.Contains(s.unseen(), want) {
		t.Errorf("got %v, %q", found, s.unseen())
	}
}

// A host is known by a marker alone where the kernel refuses to say what the other backend has, and not without one.
func TestKnown(t *testing.T) {
	s := healthy()
	s.host.Certain = false
	s.host.Evidence.NFT.Markers = []detect.Marker{{}}
	for _, test := range []struct {
		err  error
		want bool
	}{{nil, false}, {unix.EPERM, true}, {unix.EACCES, true}, {unix.ENOENT, false}, {errors.New("no /proc"), false}} {
		s.host.Evidence.Legacy.Err = test.err
		if s.known() != test.want {
			t.Errorf("%v: known %v", test.err, s.known())
		}
	}
	s.host.Evidence.Legacy.Err = unix.EPERM
	s.host.Evidence.Legacy.Markers = []detect.Marker{{}}
	if s.known() {
		t.Error("known, with a marker in both")
	}
}

// Unknown is not yes.
func TestUnknown(t *testing.T) {
	p := Process{UserNamespace: detect.Unknown}
	n := Network{Process1: detect.Unknown, Own: detect.Unknown}
	if strings.Contains(p.String(), ", in a user namespace") || strings.Contains(n.String(), "shared") {
		t.Errorf("got %v, %v", p, n)
	}
}

// No fact is longer than a line, whatever names there are, and the number of what does not fit is there.
func TestLong(t *testing.T) {
	s := healthy()
	for i := range 3000 {
		name := strings.Repeat("ä;$(x)\n", 20) + fmt.Sprint(i)
		s.tables = append(s.tables, rules.Table{Backend: detect.NFT, Native: true, Family: "inet", Name: name})
		s.network.Interfaces = append(s.network.Interfaces, name[:15])
	}
	for i := range 100 {
		s.tables = append(s.tables, rules.Table{Backend: detect.NFT, Native: true, Family: "ip", Name: fmt.Sprint(i)})
	}
	s.tables = append(s.tables[3000:], s.tables[:3000]...)
	r := Report{Findings: s.diagnose("main"), Unseen: s.unseen(), Programs: s.programs, Network: s.network, state: s}
	for _, line := range r.Lines() {
		if len(line) > longest || strings.ContainsRune(line, '\n') {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
		if strings.HasPrefix(line, "native tables:") && !strings.HasSuffix(line, " and 3092 more") {
			t.Errorf("got %s", line)
		}
	}
}

// Each message that doctor looks for is on the page, with its finding, and each code has a paragraph.
func TestPage(t *testing.T) {
	page := string(host.Read(t, "../../docs/troubleshooting.md"))
	for _, m := range messages {
		code := map[string]string{nftChains: nftTable, unread: ""}[m.code]
		if m.code != nftChains && m.code != unread {
			code = m.code
		}
		has := func(line string) bool {
			return strings.Contains(line, strings.TrimSpace(m.text)) && strings.Contains(line, "(#"+code+")")
		}
		if code != "" && !slices.ContainsFunc(strings.Split(page, "\n"), has) {
			t.Errorf("add a line with `%s` to Messages that links to [%s](#%s)", m.text, code, code)
		}
	}
	for _, code := range codes() {
		if !strings.Contains(page, "\n### "+code+"\n") {
			t.Errorf("there is no heading \"### %s\"", code)
		}
	}
}

// A command that others could replace is no failure of iptables.
func TestExposed(t *testing.T) {
	s := healthy()
	for i, command := range savers {
		err := fmt.Errorf("%w: %w", run.ErrNotStarted, file.ErrExposed)
		s.calls[i] = judge(detect.NFT, run.Output{Command: command, Err: err})
	}
	s.exposed = []string{"/opt"}
	found := s.diagnose("main")
	if len(found) != 1 || found[0].Code != uncertain || len(s.unseen()) == 0 {
		t.Errorf("got %v", found)
	}
}
