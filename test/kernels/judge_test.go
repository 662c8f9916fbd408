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
	Mode       string
	Reason     string
	Conclusive bool
	Evidence   []struct{ Supported string }
}

func (r result) supported() (words [4]string) {
	for i, e := range r.Evidence {
		words[i%len(words)] = e.Supported
	}
	return words
}

// legacyModule matches what detection must never bring: legacy's modules, and the matches and targets that it shares with
// nft_compat.
var legacyModule = regexp.MustCompile(`^(ip_tables|ip6_tables|iptable_.*|ip6table_.*|ipt_.*|ip6t_.*|xt_.*)$`)

// judge compares what a guest told with what must come of its state, and returns what is wrong, and the row for the page.
func (s state) judge(told []step) (row, wrong []string) {
	w := s.want
	steps := map[string]step{}
	for _, s := range told {
		steps[s.Name] = s
	}
	blame := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	// expect is about one step.
	expect := func(ok bool, name, format string, args ...any) {
		if !ok {
			blame("%s: %s; got %+v", name, fmt.Sprintf(format, args...), steps[name])
		}
	}
	detected := func(name string) (r result) {
		if err := json.Unmarshal([]byte(steps[name].Stdout), &r); err != nil {
			blame("%s: %v", name, err)
		}
		return r
	}

	// Before there is any evidence.
	for _, name := range []string{"detect", "detect 386"} {
		r := detected(name)
		expect(r.supported() == w.supported, name, "want %q in the kernel", w.supported)
		expect(r.Mode == w.mode && r.Reason == w.reason && !r.Conclusive, name, "want %s, %s, not conclusive", w.mode, w.reason)
		expect(strings.Count(steps[name].Stderr, "\n") == 1 && strings.Contains(steps[name].Stderr, w.says), name, "want one line that says %q", w.says)
	}
	debug := fmt.Sprintf("[%s]; 0 links moved (not conclusive); running /usr/sbin/xtables-%s-multi\n", w.reason, w.mode)
	expect(strings.Contains(steps["call"].Stderr, debug), "call", "want %q", debug)
	for _, name := range []string{"detect", "detect 386", "detect after", "detect after 386"} {
		s := steps[name]
		expect(s.Status == 0, name, "want status 0")
		expect(len(s.Registered) == 0 && !slices.ContainsFunc(s.Loaded, legacyModule.MatchString), name, "it loads legacy")
		for i, module := range s.Asked {
			expect(!legacyModule.MatchString(module) && !slices.Contains(s.Asked[:i], module), name, "it asks for %s again, or for legacy", module)
		}
	}

	// The first restore, and what it leaves.
	after := detected("detect after")
	restored := "fails"
	if w.works != "" {
		restored = w.works
		expect(steps["restore"].Status == 0 && steps["restore"].Stdout+steps["restore"].Stderr == "", "restore", "want it to work and be silent")
		for _, backend := range []string{"nft", "legacy"} {
			name := "save " + backend
			expect(strings.Contains(steps[name].Stdout, "192.0.2.1") == (backend == w.works), name, "want the rule in %s", w.works)
		}
		expect(after.Mode == w.works && after.Reason == "rule-count" && after.Conclusive, "detect after", "want %s, conclusive", w.works)
		expect(strings.Contains(steps["second call"].Stdout, "192.0.2.1"), "second call", "want the rule")
		program := "/usr/sbin/xtables-" + w.works + "-multi\n"
		expect(steps["names"].Stdout == program, "names", "want %s", program)
	} else {
		expect(steps["restore"].Status != 0 && steps["restore"].Stderr != "", "restore", "want it to fail and say why")
		expect(!after.Conclusive, "detect after", "want it not conclusive")
		expect(steps["names"].Stdout == wrapper+"\n", "names", "want the wrapper")
	}
	expect(steps["detect 386"].Stdout == steps["detect"].Stdout, "detect 386", "want the same of both builds")
	expect(steps["detect after 386"].Stdout == steps["detect after"].Stdout, "detect after 386", "want the same of both builds")

	// A hint.
	var hinted []string
	for _, backend := range []string{"nft", "legacy"} {
		name := "hint " + backend
		if !slices.Contains(strings.Fields(w.hints), backend) {
			expect(steps[name].Status != 0, name, "want no such backend")
			continue
		}
		hinted = append(hinted, backend)
		decoder := json.NewDecoder(strings.NewReader(steps[name].Stdout))
		for _, build := range []string{"amd64", "386"} {
			var r result
			err := decoder.Decode(&r)
			expect(err == nil && steps[name].Stderr == "" && r.Mode == backend && r.Reason == "kubelet-hint" && r.Conclusive, name,
				"want it found by %s", build)
		}
		half := len(steps[name].Stdout) / 2
		expect(steps[name].Stdout[:half] == steps[name].Stdout[half:], name, "want the same of both builds")
	}

	var doctor struct {
		Findings []struct{ Weight, Finding string }
	}
	if err := json.Unmarshal([]byte(steps["doctor"].Stdout), &doctor); err != nil || len(doctor.Findings) == 0 {
		expect(false, "doctor", "want findings: %v", err)
		return nil, wrong
	}
	finding := doctor.Findings[0].Weight + ": " + doctor.Findings[0].Finding
	expect(strings.HasPrefix(finding, w.doctor), "doctor", "want first of all %q", w.doctor)
	expect((steps["doctor"].Status == 1) == strings.HasPrefix(w.doctor, "problem"), "doctor", "want status 1 for a problem, and only then")
	expect(steps["doctor"].Registered == nil, "doctor", "it registers tables")

	r := detected("detect")
	in := r.supported()
	finding, _, _ = strings.Cut(finding, ": "+nothingFound)
	return []string{
		s.is, in[0] + ", " + in[1], in[2] + ", " + in[3], r.Mode + " (" + r.Reason + ")",
		restored, strings.Join(hinted, ", "), finding,
	}, wrong
}
