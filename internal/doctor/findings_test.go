// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What no situation makes, because it takes another iptables or another kernel; and what holds in every state.

// permitted is a host that uses nft, where nothing is wrong, and a process that may do all.
func permitted() *state {
	s := &state{process: process{netAdmin: true, netRaw: true}}
	s.host.Backend = detect.NFT
	s.host.Evidence.NFT.Kernel = detect.Yes
	s.nft.whole, s.legacy.whole = true, true
	for _, command := range exec.Commands() {
		n := name{inPath: true, Command: link.Command{Name: command, Path: "/usr/sbin/" + command, Wrapper: true}}
		n.call = plan.Plan{Path: n.Path, Backend: detect.NFT, How: plan.Asked}
		s.names = append(s.names, n)
	}
	for _, b := range detect.Backends() {
		s.programs = append(s.programs, program{Program: Program{Backend: b, Path: "/usr/sbin/iptables-" + string(b)}})
	}
	return s
}

// says fails the test if a finding does not contain a text; "" is for no finding.
func says(t *testing.T, doc string, found *Finding, want string) {
	t.Helper()
	if found == nil != (want == "") || found != nil && !strings.Contains(found.Text+"\n"+found.Do, want) {
		t.Errorf("%s: got %+v, want %q", doc, found, want)
	}
}

func TestNothingIsWrong(t *testing.T) {
	found := permitted().diagnose("main")
	if len(found) > 0 {
		t.Errorf("got %+v", found)
	}
}

func TestUnexplained(t *testing.T) {
	failed := errors.New("exit status 7")
	for _, test := range []struct {
		doc  string
		out  run.Output
		want string
	}{
		{"it works", run.Output{Stdout: "no way"}, ""},
		{"it fails", run.Output{Stderr: "no way\nat all", Err: failed}, `7): "iptables-save" printed "no way".`},
		{"it says nothing", run.Output{Err: failed}, "printed nothing."},
		{"not started", run.Output{Err: run.ErrRefused}, ""},
		{"a message explains it", run.Output{Stderr: "Permission denied (you must be root)", Err: failed}, ""},
	} {
		s := permitted()
		test.out.Command = "iptables-save"
		s.saves = []save{{Output: test.out, backend: detect.NFT}}
		says(t, test.doc, s.unexplained(), test.want)
	}
}

// Where the answer is a guess: what was chosen, the network, what legacy has, and what could not be asked.
func TestUncertain(t *testing.T) {
	rule := iptables.Table{Chains: []iptables.Chain{{Base: true, Rules: []iptables.Rule{{Target: "ACCEPT"}}}}}
	policy := iptables.Table{Chains: []iptables.Chain{{Base: true, Drops: true}}}
	for _, test := range []struct {
		doc    string
		how    plan.How
		err    error
		user   int
		own    bool
		rules  int
		legacy []iptables.Table
		want   string
	}{
		{doc: "legacy has nothing", how: plan.Asked},
		{doc: "legacy has a rule", how: plan.Asked, legacy: []iptables.Table{rule}, want: "nothing proves"},
		{doc: "legacy has a policy", how: plan.Asked, legacy: []iptables.Table{policy}, want: "nothing proves"},
		{doc: "chosen, and legacy has a rule", how: plan.ByVariable, legacy: []iptables.Table{rule}},
		{doc: "a question failed", how: plan.ByVariable, err: unix.EIO, want: "nothing proves"},
		{doc: "no /proc", how: plan.Asked, err: xtables.ErrNoProc, want: "Mount /proc"},
		{doc: "the names file is denied", how: plan.Asked, err: unix.EACCES, user: 1, want: "runAsGroup: 0"},
		{doc: "a Pod's network", how: plan.Asked, own: true, want: "a Pod's own network"},
		{doc: "a Pod's network with rules", how: plan.Asked, own: true, rules: 1, want: "BACKEND=nft in each of them"},
		{doc: "a Pod's network, and chosen", how: plan.Stored, own: true},
	} {
		s := permitted()
		s.names[0].call.How = test.how
		s.process.user = test.user
		s.host.Evidence.NFT.Rules = test.rules
		s.host.Evidence.Legacy.Err = test.err
		s.legacy = contents{tables: test.legacy, whole: test.err == nil}
		s.network.Own = test.own
		says(t, test.doc, s.uncertain(), test.want)
	}
}

// That one backend cannot be asked is no finding where a name shows the other one.
func TestOneBackendIsRefused(t *testing.T) {
	for _, b := range detect.Backends() {
		for _, err := range []error{unix.EPERM, unix.EACCES, unix.EAFNOSUPPORT, unix.ENOSYS, unix.EIO} {
			s := permitted()
			s.host.Backend, s.host.Reason = b, detect.KubeletHint
			for i := range s.names {
				s.names[i].call.Backend = b
			}
			s.host.Evidence.NFT.Err, s.host.Evidence.Legacy.Err = err, nil
			if b == detect.NFT {
				s.host.Evidence.NFT.Err, s.host.Evidence.Legacy.Err = nil, err
			}
			s.host.Evidence.Legacy.Kernel = detect.Yes
			for _, found := range s.diagnose("main") {
				t.Errorf("the host uses %s, and %v for the other one: %+v", b, err, found)
			}
		}
	}
}

// That the rules change while they are read is no fault of the kernel.
func TestBusy(t *testing.T) {
	for _, err := range []error{nft.ErrChanged, nft.ErrTooLarge} {
		s := permitted()
		s.host.Certain = true
		s.host.Evidence.NFT.Err = fmt.Errorf("read the rules: %w", err)
		found := s.diagnose("main")
		if len(found) > 0 {
			t.Errorf("%v: got %+v", err, found)
		}
	}
	s := permitted()
	s.host.Backend, s.host.Certain = detect.Legacy, true
	s.host.Evidence.Legacy.Err = xtables.ErrChanged
	says(t, "legacy", s.kernel(), "")
}

// What both families lack is named once.
func TestFailing(t *testing.T) {
	s := permitted()
	comment := Extension{Name: "-m comment", Lacks: lacksLibrary, used: true}
	s.fails = []Extension{comment, comment}
	says(t, "in both families", s.failing(lacksLibrary), "lacks the libraries for -m comment, so such")
}

// Another user may only lack the right to read which tables legacy has, and its hint is not seen then.
func TestNamesFileIsDenied(t *testing.T) {
	for user, want := range map[int]string{0: "", 1: "runAsGroup: 0"} {
		s := permitted()
		s.process.user = user
		s.host.Reason = detect.KubeletHint
		s.host.Evidence.Legacy.Err = unix.EACCES
		says(t, "the names file", s.uncertain(), want)
	}
}

// The wanted backend's refusal is a finding, whatever the errno, and quotes it.
func TestWantedBackendIsRefused(t *testing.T) {
	for errno := unix.Errno(1); errno <= 133; errno++ {
		s := permitted()
		s.host.Evidence.NFT.Err = fmt.Errorf("ask: %w", errno)
		if errno == unix.EMFILE || errno == unix.ENFILE || errno == unix.ENOMEM || errno == unix.ENOBUFS {
			s.scarce = s.host.Evidence.NFT.Err // as observe does
		}
		found := s.diagnose("main")
		if len(found) == 0 || !strings.Contains(found[0].Text, errno.Error()) || s.scarce != nil && s.kernel() != nil {
			t.Errorf("%d, %v: got %+v", errno, errno, found)
		}
	}
}

// The lock's errors are quoted, each with what to do.
func TestLockFaults(t *testing.T) {
	for errno := unix.Errno(1); errno <= 133; errno++ {
		for _, user := range []int{0, 1} {
			s := permitted()
			s.host.Backend, s.host.Reason = detect.Legacy, detect.OnlySupported
			s.process.user = user
			s.lockFile, s.lockFault = defaultLock, fmt.Errorf("lock: %w", errno)
			found := s.lock()
			isForbidden := errno == unix.EPERM || errno == unix.EACCES
			if found == nil || !strings.Contains(found.Text, errno.Error()) || found.Do == "" ||
				strings.Contains(found.Do, "audit log") != isForbidden {
				t.Errorf("%v: got %+v", errno, found)
			}
		}
	}
}

func TestEmulated(t *testing.T) {
	for _, test := range []struct {
		process, thread string
		want            bool
	}{
		{"/usr/sbin/iptables-wrapper", "/usr/bin/qemu-aarch64-static", true},
		{"/usr/sbin/iptables-wrapper", "/usr/sbin/iptables-wrapper", false},
	} {
		proc := t.TempDir()
		host.Check(t, os.MkdirAll(proc+"/self", 0o755))
		host.Check(t, os.MkdirAll(proc+"/thread-self", 0o755))
		host.Check(t, os.Symlink(test.process, proc+"/self/exe"))
		host.Check(t, os.Symlink(test.thread, proc+"/thread-self/exe"))
		s := permitted()
		s.emulated = isEmulated(proc)
		s.host.Evidence.NFT.Kernel = detect.No
		s.loadable, s.process.sysModule = true, true
		found := s.kernel()
		emulated := found != nil && strings.Contains(found.Text, "an emulator runs the programs")
		if s.emulated != test.want || emulated != test.want {
			t.Errorf("%+v: got %v, %+v", test, s.emulated, found)
		}
		s.host.Evidence.NFT.Kernel = detect.Yes // the emulator passes questions on
		says(t, "nft is there", s.kernel(), "")
	}
	if isEmulated("/proc") {
		t.Error("this test is emulated")
	}
}

// No name that somebody in the network could have chosen is in a command, and none breaks a line.
func TestChosenNames(t *testing.T) {
	const alphabet = "'\"\\`;$(){}&|<> a\n\x1b\t"
	r := host.Rand(t)
	for range 2000 {
		var b strings.Builder
		b.WriteString("~") // is in no text of doctor's
		for range 1 + r.IntN(8) {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		chosen := b.String()
		s := permitted()
		s.lists = map[string]bool{"nft": r.IntN(2) == 0, "iptables-nft-save": true, "ip6tables-legacy-save": true}
		s.network.Interfaces = []string{chosen}
		s.network.Own = r.IntN(2) == 0
		rules := []iptables.Rule{
			{Target: chosen, Uses: []string{"-m " + chosen}, Native: true},
			{Target: "DNAT", Native: true},
			{Target: "DROP"},
		}
		chains := []iptables.Chain{
			{Name: "INPUT", Base: true, Rules: rules}, {Name: chosen, Base: true, Drops: true, Rules: rules},
		}
		for _, c := range []*contents{&s.nft, &s.legacy} {
			c.tables = []iptables.Table{{Name: "filter", Chains: chains}, {IPv6: true, Name: "nat", Chains: chains}}
		}
		s.nft.native = []nft.Native{{Table: "inet " + chosen, Drops: []string{"input"}}}
		s.fails = []Extension{{Name: "-m set", Lacks: lacksLibrary, used: true}}
		s.listed = [2][]string{{"filter"}, {"nat"}}
		if r.IntN(2) == 0 {
			s.host.Backend, s.host.Reason = detect.Legacy, detect.OnlySupported
			s.lockFault = errHeld
		}
		report := Report{Findings: s.diagnose("main"), Host: NewHost(s.host), Network: s.network, Native: s.nft.native}
		for _, f := range report.Findings {
			for _, command := range f.Look {
				if strings.Contains(command, "~") {
					t.Fatalf("%q is in the command %q of %s", chosen, command, f.Code)
				}
			}
		}
		for _, line := range report.Lines() {
			if strings.ContainsAny(line, "\n\x1b\t") {
				t.Fatalf("%q breaks the line %q", chosen, line)
			}
		}
	}
}
