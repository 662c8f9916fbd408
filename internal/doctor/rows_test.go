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
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// healthy is a host that is known to use nft, where iptables works.
func healthy() *state {
	s := &state{
		host:     detect.Result{Backend: detect.NFT, Reason: detect.KubeletHint, Certain: true},
		errors:   map[detect.Backend]error{},
		programs: []Program{{Backend: detect.NFT, Version: "iptables v1.8.9 (nf_tables)"}, {Backend: detect.Legacy}},
		network:  Network{Process1: detect.Yes, Own: detect.No},
	}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save",
		"ip6tables-restore"} {
		s.commands = append(s.commands, Command{
			Command: look.Command{Name: name, Path: "/usr/sbin/" + name, Wrapper: true},
			Call:    plan.Plan{Backend: detect.NFT, Program: "/usr/sbin/xtables-nft-multi", How: plan.Asked},
		})
	}
	for _, command := range savers {
		s.calls = append(s.calls, judge(detect.NFT, run.Output{Command: command}))
	}
	return s
}

// onLegacy makes it one that uses legacy.
func onLegacy(s *state) {
	s.host.Backend = detect.Legacy
	for i := range s.commands {
		s.commands[i].Call.Backend = detect.Legacy
	}
	s.calls = nil
	for f, command := range savers {
		s.calls = append(s.calls, judge(detect.Legacy, run.Output{Command: command}))
		s.families[f].listed = []string{"filter"}
	}
}

// fail makes the call that lists IPv4's rules fail.
func fail(s *state, err error, stderr string) {
	b := s.calls[0].backend
	s.calls[0] = judge(b, run.Output{Command: savers[detect.IPv4], Err: err, Stderr: stderr})
}

func guess(s *state) { s.host.Certain, s.host.Reason = false, detect.RuleCount }

// ended is how a program ended: by an exit status, or a signal.
func ended(t *testing.T, how string) error {
	t.Helper()
	err := exec.Command("/bin/sh", "-c", how).Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%s: %v", how, err)
	}
	return exit
}

// reach has a state for each row of diagnoses, in their order, with what doctor says in it. The scripts test/script/
// doctor-*.txtar reach them for real.
func reach(t *testing.T) []func(*state) string {
	status := ended(t, "exit 1")
	table := func(s *state, t rules.Table) { s.tables = append(s.tables, t) }
	filter := rules.Table{Family: "ip", Name: "filter", Backend: detect.NFT}
	return []func(*state) string{
		func(s *state) string {
			fail(s, status, "Permission denied (you must be root)")
			return `"iptables-save" fails with status 1: "Permission denied (you must be root)".`
		},
		func(s *state) string {
			s.calls, s.errors[detect.NFT] = nil, unix.EPERM
			return "The kernel refuses to answer about nft: operation not permitted."
		},
		func(s *state) string {
			s.calls, s.process.Missing = nil, []string{netAdmin}
			return "CAP_NET_ADMIN is missing (CapEff), which nft needs. This is user 0."
		},
		func(s *state) string {
			fail(s, status, "Table does not exist (do you need to insmod?)")
			return "Table does not exist"
		},
		func(s *state) string {
			onLegacy(s)
			s.families[detect.IPv6].unloaded = true
			return "cannot be loaded here: ip6_tables."
		},
		func(s *state) string {
			s.families[detect.IPv6].lacks = "nat chains"
			s.families[detect.IPv4].refused = unix.EINVAL
			return "cannot take the rules of iptables: for IPv4: invalid argument, for IPv6 it lacks nat chains."
		},
		func(s *state) string {
			s.commands[3].Call = plan.Fails(unix.ENOEXEC)
			return "A call of ip6tables fails: exec format error."
		},
		func(s *state) string {
			out := run.Output{Command: "iptables-save", Err: run.ErrEndless, Used: time.Millisecond}
			s.calls[0] = judge(detect.NFT, out)
			return `"iptables-save" did not end in 10s, and used 0.00 s of processor time.`
		},
		func(s *state) string {
			fail(s, status, "Couldn't load match `x'")
			return "Couldn't load match `x'"
		},
		func(s *state) string {
			fail(s, ended(t, "kill -SYS $$"), "")
			return `"iptables-save" was ended by SIGSYS.`
		},
		func(s *state) string {
			s.commands[3].Call = plan.Plan{Backend: detect.Legacy, How: plan.Stored}
			return "ip6tables here runs legacy (, stored in the switch), but the host uses nft"
		},
		func(s *state) string {
			nat := rules.Table{Backend: detect.Legacy, Family: "ip", Name: "nat", Rules: 2, Acts: 1}
			nat.Chains = []string{"A\"B"}
			table(s, nat)
			return `legacy has ip nat 2 rules (1 drop or redirect). Its chains: "A\"B".`
		},
		func(s *state) string {
			table(s, rules.Table{Backend: detect.Legacy, Family: "ip6", Name: "nat", Rules: 2, DNS: 1})
			return `legacy has ip6 nat 2 rules (1 of Docker's DNS).`
		},
		func(s *state) string {
			s.calls[0] = judge(detect.NFT, run.Output{Command: "iptables-save",
				Kept: []string{"# Table `filter' is incompatible, use 'nft' tool."}})
			return `"iptables-save" prints "# Table ` + "`filter'" + ` is incompatible, use 'nft' tool.".`
		},
		func(s *state) string {
			filter := filter
			filter.Dormant, filter.Owned = true, true
			filter.Wrong = []rules.BaseChain{{Chain: "INPUT", Want: rules.Hook{Hook: "input", Type: "filter"}}}
			table(s, filter)
			return "ip filter belongs to a process, and nobody else can change it, ip filter is dormant: its rules " +
				"do nothing, INPUT of ip filter has no hook, and not type filter hook input priority 0."
		},
		func(s *state) string {
			filter := filter
			filter.NFTMade, filter.MadeIn = 1, []string{"$(x)"}
			table(s, filter)
			return `Rules were made with nft: ip filter has 1 in "$(x)".`
		},
		func(s *state) string {
			s.calls[0] = judge(detect.NFT, run.Output{Command: "iptables-save",
				Kept: []string{"# Table `nat' contains incompatible base-chains, use 'nft' tool to list them."}})
			return "contains incompatible base-chains"
		},
		func(s *state) string {
			s.programs[0].Version = "iptables v1.8.7 (nf_tables)"
			return "is iptables v1.8.7 (nf_tables)."
		},
		func(s *state) string {
			onLegacy(s)
			s.lockFile, s.lockErr = "/run/x y", errHeld
			return "cannot take its lock, '/run/x y': it was held for a second."
		},
		func(s *state) string {
			s.commands[0].Call = plan.Plan{How: plan.NotWrapped}
			s.commands[0].ResolvesTo = s.commands[0].Path
			return "Not wrapped: /usr/sbin/iptables. Doctor does not know what that runs, and did not start it."
		},
		func(s *state) string {
			s.exposed = []string{"/opt"}
			return "Doctor did not start iptables, because others can write /opt."
		},
		func(s *state) string {
			guess(s)
			s.errors[detect.Legacy] = unix.EINVAL
			return "The host's backend is a guess"
		},
	}
}

// Each row of the table is reached by a state, and by nothing else in it. What it prints is what is promised.
func TestRows(t *testing.T) {
	states := reach(t)
	if len(states) != len(diagnoses) {
		t.Fatalf("%d states for %d rows", len(states), len(diagnoses))
	}
	if found := healthy().diagnose("main"); len(found) > 0 {
		t.Errorf("a healthy host: %v", found)
	}
	for i, d := range diagnoses {
		s := healthy()
		want := states[i](s)
		found := s.diagnose("main")
		name := fmt.Sprintf("row %d, %s", i, d.code)
		if len(found) != 1 || found[0].Code != d.code || found[0].Severity != d.severity {
			t.Errorf("%s: found %v", name, found)
			continue
		}
		f := found[0]
		if !strings.Contains(f.Text, want) || f.Text != d.see(s) {
			t.Errorf("%s: got %s\nwant %s", name, f.Text, want)
		}
		if len(f.Look) == 0 || slices.Contains(f.Look, "") || f.Do == "" {
			t.Errorf("%s: look %q, do %q", name, f.Look, f.Do)
		}
		for _, text := range append(f.Look, f.Do) {
			if strings.Contains(text, "A\"B") || strings.Contains(text, "$(x)") {
				t.Errorf("%s: it has a name that somebody in the network has chosen: %s", name, text)
			}
		}
	}
}
