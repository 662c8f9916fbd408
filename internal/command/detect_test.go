// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

// sample has something in each field.
func sample() answer {
	return answer{
		Version: schemaVersion,
		Host: doctor.Host{
			Result: evidence.Result{Decision: evidence.Decision{
				Mode: evidence.NFT, Reason: evidence.Remembered, Because: "remembered as a guess: no evidence was found",
			}},
			Uncertainty: "the host now uses legacy: only legacy has rules",
			Conflict:    "chain KUBE-IPTABLES-HINT is in both backends",
			Evidence: []doctor.Evidence{
				{
					Backend: evidence.NFT, Family: "IPv4", About: evidence.About{
						Works: evidence.Yes, Hint: evidence.No, Canary: evidence.No,
						Rules: evidence.No, Native: strings.Fields("a b c d e f g h i j"),
						Foreign: []evidence.Chain{{Table: "filter", Name: "mine\x1b[2J"}},
					},
				},
				{
					Backend: evidence.Legacy, Family: "IPv4", About: evidence.About{
						Works: evidence.Yes, Hint: evidence.No, Canary: evidence.Yes,
						Rules: evidence.Yes, Count: 12, Tables: []string{"filter", "mangle"},
						Programs: []evidence.Program{
							{Name: "Docker", Table: "filter", Chain: "DOCKER-USER"},
							{Name: "firewalld", Table: "inet firewalld"},
						},
					},
				},
				{Backend: evidence.Legacy, Family: "IPv6", Error: "list the tables: permission denied"},
			},
			Contradicts: evidence.Decision{Mode: evidence.Legacy, Reason: evidence.RuleCount, Conclusive: true},
		},
		Remembered: &evidence.Decision{Mode: evidence.NFT, Reason: evidence.Default, Because: "no evidence was found"},
		Here: doctor.Here{
			Client: "/usr/sbin/iptables", Backend: evidence.NFT, Program: "/usr/sbin/xtables-nft-multi", How: "remembered",
			Error: "none",
		},
		Network: doctor.Network{Namespace: "net:[4026531840]", Interfaces: []string{"lo"}, Process1: evidence.Yes},
	}
}

func TestTable(t *testing.T) {
	s, stdout, _ := newSession()
	a := sample()
	s.printTable(a)
	want := "host:           " + a.Host.String() + "\niptables here:  " + a.Here.String() + "\nnetwork:        " +
		a.Network.String() + `

BACKEND  FAMILY  WORKS    HINT     CANARY   RULES
nft      IPv4    yes      no       no       no
legacy   IPv4    yes      no       yes      12
legacy   IPv6    unknown  unknown  unknown  unknown

HOST PROGRAM  BACKEND  FAMILY  TABLE           CHAIN
Docker        legacy   IPv4    filter          DOCKER-USER
firewalld     legacy   IPv4    inet firewalld  -

WORKS: the running kernel can do it.
RULES: in the five tables, roughly; reading ends when more cannot change the answer.
HINT, CANARY: kubelet's chains KUBE-IPTABLES-HINT and KUBE-KUBELET-CANARY are in table mangle.
nft IPv4: tables that iptables does not use: a, b, c, d, e, f, g, h and 2 more
nft IPv4: chain "mine\x1b[2J" of table "filter" is not iptables' own, or has a rule that is not
legacy IPv6: list the tables: permission denied
`
	if got := stdout(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What detect prints beside the answer, and its status.
func TestReport(t *testing.T) {
	host := func(d evidence.Decision, uncertainty string) doctor.Host {
		d.Mode = evidence.NFT
		d.Because = "only nft has rules"
		return doctor.Host{Result: evidence.Result{Decision: d}, Uncertainty: uncertainty}
	}
	certain := host(evidence.Decision{Reason: evidence.RuleCount, Conclusive: true}, "")
	guess := host(evidence.Decision{Reason: evidence.RuleCount}, "legacy cannot be read")
	set := host(evidence.Decision{Reason: evidence.Override}, "the backend was set explicitly")
	conflict := certain
	conflict.Conflict = "the families differ"
	families := guess
	families.Conflict, families.Uncertainty = conflict.Conflict, conflict.Conflict
	const notCertain = "iptables-wrapper: not certain: legacy cannot be read\n"
	const advice = "iptables-wrapper: try: iptables-wrapper doctor, which says what to do about it\n"
	for _, test := range []struct {
		name   string
		host   doctor.Host
		here   evidence.Mode
		met    bool
		strict bool
		status int
		stderr string
	}{
		{name: "certain", host: certain, here: evidence.NFT, met: true, strict: true},
		{name: "iptables is not known", host: certain, met: true},
		{name: "guess", host: guess, here: evidence.NFT, stderr: notCertain},
		{name: "a guess is no reason to call iptables wrong", host: guess, here: evidence.Legacy, stderr: notCertain},
		{name: "strict guess", host: guess, strict: true, status: 3, stderr: notCertain + advice},
		{
			name: "strict, by the variable", host: set, strict: true, status: 3,
			stderr: "iptables-wrapper: not certain: the backend was set explicitly\n" +
				"iptables-wrapper: try: again without IPTABLES_WRAPPER_MODE\n",
		},
		{
			name: "strict, without kubelet", host: certain, strict: true, status: 3,
			stderr: "iptables-wrapper: detect: kubelet's chains were not found; only nft has rules\n" +
				"iptables-wrapper: try: --wait 2m if kubelet is starting, or --for any\n",
		},
		{
			name: "conflict", host: conflict, met: true,
			stderr: "iptables-wrapper: conflict: the families differ; run: iptables-wrapper doctor\n",
		},
		{
			name: "a conflict is why", host: families, strict: true, status: 3,
			stderr: "iptables-wrapper: not certain: the families differ\n" + advice,
		},
		{
			name: "the other backend", host: certain, here: evidence.Legacy, met: true,
			stderr: "iptables-wrapper: iptables in this container runs the other backend: legacy (/p, not wrapped); " +
				"run: iptables-wrapper doctor\n",
		},
	} {
		s, stdout, stderr := newSession()
		a := answer{Host: test.host, Here: doctor.Here{Backend: test.here, Program: "/p", How: "not-wrapped"}}
		status := s.printError(s.report(a, &detectFlags{output: choose("text"), strict: test.strict}, test.met))
		if status != test.status || stdout() != "nft\n" || stderr() != test.stderr {
			t.Errorf("%s: status %d, stdout %q, stderr\n%swant\n%s", test.name, status, stdout(), stderr(), test.stderr)
		}
	}
}

// Where the host contradicts what is remembered, the host counts.
func TestDiffers(t *testing.T) {
	a := sample()
	if !a.differs() {
		t.Error("nft is remembered, and the host uses legacy: iptables does not differ")
	}
	a.Here.Backend = evidence.Legacy
	if a.differs() {
		t.Error("nft is remembered, and iptables and the host use legacy: iptables differs")
	}
}

// The variable is the answer in every format, and no certain one. --wait does not wait for another.
func TestDetectByVariable(t *testing.T) {
	t.Setenv("IPTABLES_WRAPPER_MODE", "legacy")
	status, stdout, stderr := run(program, "detect", "--wait", "1h")
	if status != 0 || stdout != "legacy\n" || !strings.Contains(stderr, "iptables-wrapper: not certain: ") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, _ = run(program, "detect", "--strict")
	if status != 3 || stdout != "legacy\n" {
		t.Errorf("--strict: status %d, stdout %q", status, stdout)
	}
	_, stdout, _ = run(program, "detect", "-o", "table")
	if !strings.HasPrefix(stdout, "host:           legacy (not certain: ") {
		t.Errorf("-o table: stdout %q", stdout)
	}
	status, stdout, _ = run(program, "detect", "-o", "json")
	var got answer
	err := json.Unmarshal([]byte(stdout), &struct {
		Backend *evidence.Mode   `json:"backend"`
		Reason  *evidence.Reason `json:"reason"`
	}{&got.Mode, &got.Reason})
	if status != 0 || err != nil || got.Mode != evidence.Legacy || got.Reason != evidence.Override {
		t.Errorf("-o json: status %d, error %v, stdout %s", status, err, stdout)
	}
}

// --for kubelet is met by a certain answer by kubelet's chains, or one that was remembered for them.
func TestMet(t *testing.T) {
	d, err := dir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, test := range []struct {
		reason, remembered evidence.Reason
		conclusive         bool
		forAny, forKubelet bool
	}{
		{reason: evidence.KubeletHint, conclusive: true, forAny: true, forKubelet: true},
		{reason: evidence.KubeletCanary, conclusive: true, forAny: true, forKubelet: true},
		{reason: evidence.KubeletHint},
		{reason: evidence.RuleCount, conclusive: true, forAny: true},
		{reason: evidence.Remembered, remembered: evidence.KubeletHint, conclusive: true, forAny: true, forKubelet: true},
		{reason: evidence.Remembered, remembered: evidence.RuleCount, conclusive: true, forAny: true},
		{reason: evidence.Remembered, remembered: evidence.Default},
		{reason: evidence.Remembered, remembered: evidence.KubeletHint}, // contradicted by the host
	} {
		if test.remembered.Kubelet() && os.Geteuid() != 0 {
			continue // a memory that is not root's says nothing
		}
		place := doctor.Place{Memory: memory.In(d)}
		err := place.Memory.Set(evidence.Decision{Mode: evidence.NFT, Reason: test.remembered, Because: "x"})
		if err != nil {
			t.Fatal(err)
		}
		d := evidence.Decision{Mode: evidence.NFT, Reason: test.reason, Conclusive: test.conclusive}
		r := evidence.Result{Decision: d}
		for goal, want := range map[string]bool{forAny: test.forAny, forKubelet: test.forKubelet} {
			p := newPatience()
			if err := p.goal.Set(goal); err != nil {
				t.Fatal(err)
			}
			if got := p.met(place, r); got != want {
				t.Errorf("%+v, --for %s: %t", test, goal, got)
			}
		}
	}
}
