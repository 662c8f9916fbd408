// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// sample has something in each field.
func sample() report {
	return report{
		Version: 1,
		onHost: onHost{Result: detect.Result{
			Backend: detect.Legacy,
			Reason:  detect.HostProgram,
			Evidence: detect.Evidence{
				NFT: detect.Findings{
					Kernel: detect.Yes, Hint: [2]detect.Answer{detect.No, detect.Unknown},
					Canary: [2]detect.Answer{detect.No, detect.No}, Program: [2]detect.Answer{detect.No, detect.Yes},
					Markers: []detect.Marker{
						{Program: "firewalld\x1b[2J", Family: detect.IPv6, Table: "inet firewalld"},
						{Program: "ufw", Family: detect.IPv6, Table: "filter", Chain: "ufw6-user-input"},
					},
					Rules: 12, Counted: detect.No,
				},
				Legacy: detect.Findings{
					Kernel: detect.Yes, Hint: [2]detect.Answer{detect.No, detect.No},
					Canary: [2]detect.Answer{detect.No, detect.No}, Program: [2]detect.Answer{detect.Yes, detect.No},
					Markers: []detect.Marker{
						{Program: "Docker", Family: detect.IPv4, Table: "filter", Chain: "DOCKER-USER"},
					},
					Rules: 3, Counted: detect.Yes,
				},
				TakesRules: detect.No, Lacks: "nft_chain_nat", Loadable: detect.No,
			},
		}, Because: "chain DOCKER-USER of Docker is in legacy's filter table (IPv4), but nft could not be read",
			Errors: map[detect.Backend]string{
				detect.NFT: "list tables: permission denied", detect.Legacy: "list the tables: permission denied",
			}},
		Here: plan.Plan{
			Path: "/usr/sbin/iptables", Backend: detect.NFT, Program: "/usr/sbin/xtables-nft-multi", How: plan.Recorded,
			Error: "none",
		},
	}
}

func TestTable(t *testing.T) {
	var stdout bytes.Buffer
	a := sample()
	a.Here.Error = ""
	printTable(&stdout, a)
	want := `host:           legacy (not certain: chain DOCKER-USER of Docker is in legacy's filter table (IPv4), ` +
		`but nft could not be read)
iptables here:  nft (/usr/sbin/xtables-nft-multi, recorded: already in use here)

BACKEND  KERNEL  RULES
nft      yes     at least 12
legacy   yes     3

BACKEND  FAMILY  HINT     CANARY  PROGRAM
nft      IPv4    no       no      no
nft      IPv6    unknown  no      yes
legacy   IPv4    no       no      yes
legacy   IPv6    no       no      no

MARKER OF      BACKEND  FAMILY  TABLE           CHAIN
firewalld [2J  nft      IPv6    inet firewalld  -
ufw            nft      IPv6    filter          ufw6-user-input
Docker         legacy   IPv4    filter          DOCKER-USER

KERNEL: the running kernel has nf_tables, or has x_tables loaded.
RULES: of both families, in the tables of iptables, whoever made them.
HINT, CANARY, PROGRAM: a chain of kubelet, or a chain or table of another program of the host.
nf_tables cannot take iptables' rules: it lacks nft_chain_nat.
nft: list tables: permission denied
legacy: list the tables: permission denied
`
	if got := stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The answer goes to stdout, and the reason why it is a guess to stderr. With --strict, a guess is status 3. The
// variable is not asked: detect is about the host.
func TestDetect(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const advice = "iptables-wrapper: try: iptables-wrapper doctor, which prints what to do about it\n"
	t.Setenv("IPTABLES_WRAPPER_BACKEND", "both")
	for _, test := range []struct {
		doc, host, says string // what stderr contains, "" for a certain answer
		backend         string
	}{
		{
			doc: "nothing", backend: "nft",
			says: "not certain: no chain or table of a known program was found, and no rule\n",
		},
		{doc: "certain", host: "iptables-legacy -N DOCKER-USER", backend: "legacy"},
		{doc: "hint in both", host: `
			iptables-legacy -t mangle -N KUBE-IPTABLES-HINT
			iptables-nft -t mangle -N KUBE-IPTABLES-HINT`, backend: "nft",
			says: "not certain: chain KUBE-IPTABLES-HINT"},
	} {
		host.Run(t, "sh", "-ec", test.host)
		for _, strict := range []bool{false, true} {
			for _, output := range []string{"text", "table", "json"} {
				args := []string{program, "detect", "-o", output}
				want := 0
				if strict {
					args = append(args, "--strict")
				}
				if strict && test.says != "" {
					want = 3
				}
				status, stdout, stderr := runs(args...)
				begins := map[string]string{
					"text": test.backend + "\n", "table": "host:           " + test.backend + " (",
					"json": "{\n  \"version\": 1,\n  \"backend\": \"" + test.backend + "\",",
				}[output]
				// A log of the other forms has both streams, and they contain the doubt.
				said := test.says != "" && (strict || output == "text")
				right := stderr == ""
				if said {
					right = strings.Contains(stderr, test.says) && strings.HasSuffix(stderr, advice) == strict
				}
				if status != want || !strings.HasPrefix(stdout, begins) || !right {
					t.Errorf("%s, %q: status %d, stdout %q, stderr %q", test.doc, args, status, stdout, stderr)
				}
			}
		}
	}
}

// What -o json says of this container follows the host, the record and the switch.
func TestHere(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const nft, legacy = "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"
	host.Run(t, "iptables-legacy", "-N", "DOCKER-USER")
	for _, test := range []struct {
		do, variable string
		want         plan.Plan
	}{
		{want: plan.Plan{Backend: "nft", Program: nft, How: plan.NotWrapped}},
		{
			do: "cd /usr/sbin; cp /proc/$PPID/exe iptables-wrapper; ln -s iptables-wrapper iptables-current; " +
				"ln -sf iptables-current iptables",
			want: plan.Plan{Backend: "legacy", Program: "/usr/sbin/iptables-legacy", How: plan.Asked},
		},
		{variable: "nft", want: plan.Plan{Backend: "nft", Program: "/usr/sbin/iptables-nft", How: plan.ByVariable}},
		{
			do:   "ln -s nft /dev/iptables-backend-$(readlink /proc/self/ns/net | tr -dc 0-9)",
			want: plan.Plan{Backend: "legacy", Program: "/usr/sbin/iptables-legacy", How: plan.Asked}, // proven
		},
		{
			do:   "iptables-nft -N DOCKER-USER",
			want: plan.Plan{Backend: "nft", Program: "/usr/sbin/iptables-nft", How: plan.Recorded},
		},
		{
			do:   "ln -sfT xtables-legacy-multi /usr/sbin/iptables-current",
			want: plan.Plan{Backend: "legacy", Program: legacy, How: plan.Stored},
		},
		{variable: "nft", want: plan.Plan{Backend: "legacy", Program: legacy, How: plan.Stored}},
		{do: "rm /usr/sbin/iptables", want: plan.Plan{How: plan.Nothing}},
	} {
		host.Run(t, "sh", "-ec", test.do)
		t.Setenv("IPTABLES_WRAPPER_BACKEND", test.variable)
		_, stdout, _ := runs(program, "detect", "-o", "json")
		var got struct{ Here plan.Plan }
		err := json.Unmarshal([]byte(stdout), &got)
		test.want.Path = "/usr/sbin/iptables"
		failed := got.Here.Error != ""
		got.Here.Error = ""
		if err != nil || got.Here != test.want || failed != (test.want.How == plan.Nothing) {
			t.Errorf("%q, %q: got %v, %+v, want %+v", test.do, test.variable, err, got.Here, test.want)
		}
	}
}
