// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// result is what detect -o json prints.
type result struct {
	Backend, Reason, Because string
	Certain                  bool
	Evidence                 struct{ NFT, Legacy struct{ Kernel string } }
	Here                     struct{ Backend, How string }
}

func (r result) row() string { return r.Backend + " " + r.Reason }

var backends = []string{"nft", "legacy"}

// legacyModule matches what detection must never load or ask for: legacy's own modules. The dry run may load
// nft_compat, x_tables and one match that legacy shares with it, xt_comment, for which the kernel also asks as
// ipt_comment.
var legacyModule = regexp.MustCompile(`^(ip_tables|ip6_tables|iptable_.*|ip6table_.*|` + extension + `)$`)

// extension matches matches and targets but comment. Doctor may load them.
const extension = `(ipt|ip6t|xt)_([^c].*|c[^o].*|con.*)`

// verdict compares what a guest reported with what is expected in its state.
type verdict struct {
	state
	steps map[string]step
	wrong []string
}

// expect is about one step.
func (v *verdict) expect(ok bool, name, format string, args ...any) {
	if !ok {
		v.wrong = append(v.wrong, fmt.Sprintf("%s: %s: want %s; got %+v", v.name, name, fmt.Sprintf(format, args...),
			v.steps[name]))
	}
}

// judge returns what is wrong.
func (s state) judge(told []step) []string {
	v := verdict{state: s, steps: map[string]step{}}
	for _, s := range told {
		v.steps[s.Name] = s
	}
	v.detects()
	v.restores()
	v.hints()
	v.diagnoses()
	return v.wrong
}

func (v *verdict) detected(name string) (r result) {
	err := json.Unmarshal([]byte(v.steps[name].Stdout), &r)
	v.expect(err == nil, name, "JSON (%v)", err)
	return r
}

// detects judges what is found before and after the first rules, and that finding it changes nothing.
func (v *verdict) detects() {
	w := v.want
	before := v.detected("detect")
	kernel := [2]string{before.Evidence.NFT.Kernel, before.Evidence.Legacy.Kernel}
	v.expect(kernel == w.kernel, "detect", "nf_tables and x_tables: %q", w.kernel)
	v.expect(before.row() == w.detects && !before.Certain, "detect", "%s, not certain", w.detects)
	v.expect(v.steps["detect"].Stderr == "" && before.Because != "", "detect", "why that is not certain, in JSON only")
	_, what, _ := strings.Cut(before.Because, "nf_tables lacks ")
	lacks := before.row() == "legacy only-supported" && before.Evidence.NFT.Kernel == yes
	v.expect((what != "") == lacks, "detect", "what nf_tables lacks: %t", lacks)
	for _, name := range []string{"detect", "detect after", "detect after 386"} {
		s := v.steps[name]
		v.expect(s.Status == 0, name, "status 0")
		v.expect(len(s.Registered) == 0 && !slices.ContainsFunc(s.Loaded, legacyModule.MatchString), name,
			"nothing of legacy to be loaded")
		v.expect(!slices.ContainsFunc(s.Asked, legacyModule.MatchString), name, "no request for a legacy module")
	}
	// A kernel without nf_tables looks for the module whenever it is asked, so a wrapped call that runs legacy asks
	// once. For the expressions of a dry run, the kernel itself asks again.
	for i, module := range v.steps["read"].Asked {
		again := slices.Contains(v.steps["read"].Asked[:i], module) && strings.HasPrefix(w.detects, "legacy")
		ofNFT := strings.HasPrefix(module, "nfnetlink") || strings.HasPrefix(module, "net-pf-16")
		v.expect(!again || !ofNFT, "read", "one request for %s", module)
	}
	v.expect(v.steps["detect after 386"].Stdout == v.steps["detect after"].Stdout, "detect after 386",
		"the same from both builds")
}

// direct are the backends whose own program takes the realistic rules in this state.
func (v *verdict) direct() (able []string) {
	for _, backend := range backends {
		if v.steps["direct "+backend].Status == 0 {
			able = append(able, backend)
		}
	}
	return able
}

// restores judges the first calls: where one backend can take the rules, or both can, they must be in one that can.
func (v *verdict) restores() {
	w := v.want
	able := v.direct()
	v.expect(strings.Join(able, " ") == w.direct, "direct nft", "%q to take the rules, not %q; legacy: %+v",
		w.direct, able, v.steps["direct legacy"])
	backend, _, _ := strings.Cut(w.detects, " ")
	says := map[string]string{"nft": "(nf_tables)", "legacy": "(legacy)"}[backend]
	ran := v.steps["read"].Status == 0 // iptables-nft asks for nf_tables first
	v.expect(strings.Contains(v.steps["read"].Stdout, says) || !ran && len(able) == 0, "read", "%s", backend)
	rest := v.steps["restore"].Stderr
	record := strings.TrimSpace(v.steps["record"].Stdout)
	v.expect(record == backend || v.readOnly && record == "", "record", "%s", backend)
	after := v.detected("detect after")
	if len(able) == 0 {
		v.expect(v.steps["restore"].Status != 0 && rest != "", "restore", "it to fail and say why")
		return
	}
	v.expect(slices.Contains(able, backend), "restore", "a backend that works")
	v.expect(v.steps["restore"].Status == 0 && v.steps["restore"].Stdout+rest == "", "restore", "it to work silently")
	for _, b := range backends {
		name := "save " + b
		for _, part := range []string{"192.0.2.1/32", "ctstate", "--to-destination 192.0.2.2:80", "MASQUERADE"} {
			has := strings.Contains(v.steps[name].Stdout, part)
			v.expect(has == (b == backend), name, "%s in %s only", part, backend)
		}
	}
	// A guess is recorded, and is not proven by the rules that it made.
	v.expect(after.Backend == backend && !after.Certain, "detect after", "%s, not certain", backend)
	v.expect(v.readOnly || after.Here.Backend == backend && after.Here.How == "recorded", "detect after",
		"%s is recorded here", backend)
}

// hints judges that kubelet's hint is found in each backend that can have it.
func (v *verdict) hints() {
	for _, backend := range backends {
		name := "hint " + backend
		s := v.steps[name]
		if !slices.Contains(strings.Fields(v.want.hints), backend) {
			v.expect(s.Status != 0, name, "no such backend")
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(s.Stdout))
		var results [2]result
		for i, build := range builds {
			r := &results[i]
			err := decoder.Decode(r)
			v.expect(err == nil && s.Stderr == "" && r.row() == backend+" kubelet-hint" &&
				r.Certain, name, "it found by %s", build)
		}
		v.expect(results[0] == results[1], name, "the same from both builds")
	}
}

// diagnoses judges that one of doctor's findings says what this kernel lacks.
func (v *verdict) diagnoses() {
	severity, names, asked := strings.Cut(v.want.doctor, ": ")
	if !asked {
		return
	}
	v.expect(v.steps["reset"].Status == 0, "reset", "status 0")
	s := v.steps["doctor"]
	var doctor struct {
		Findings []struct{ Code, Severity, Text, Do string }
	}
	err := json.Unmarshal([]byte(s.Stdout), &doctor)
	v.expect(err == nil, "doctor", "JSON (%v)", err)
	v.expect(s.Registered == nil, "doctor", "no table to be registered")
	problem, named := false, false
	for _, f := range doctor.Findings {
		problem = problem || f.Severity == "problem"
		// other words are doctor's own business
		named = named || f.Severity == severity && strings.Contains(f.Code+f.Text+f.Do, names)
	}
	v.expect(named, "doctor", "a finding: %s", v.want.doctor)
	v.expect((s.Status == 1) == problem, "doctor", "status 1 for a problem, and only then")
}
