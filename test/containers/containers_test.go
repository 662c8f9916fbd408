// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package containers asks doctor about random containers: what it says must be so, and what it says nothing of must be
// right.
package containers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) { host.Main(m) }

// TestContainers makes the same containers each time, more with TEST_ALL; TEST_CONTAINERS=N makes N that nobody has
// seen, TEST_SEED=N that one.
func TestContainers(t *testing.T) {
	old := host.OldIptables(t)
	if !host.Contain(t) {
		return
	}
	host.Check(t, os.Setenv("OLD", old))
	host.Check(t, os.WriteFile("/usr/sbin/iptables-wrapper", host.Read(t, os.Getenv(host.WrapperVariable)), 0o755))
	open(t).close() // makes the layers' directory
	for _, seed := range host.Seeds(t, "TEST_CONTAINERS", 4, 50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := random(rand.New(rand.NewPCG(seed, 0)))
			if wrong, _ := check(t, s, seed); wrong != "" {
				t.Error(shrunk(t, s, seed))
			}
		})
	}
}

// shrunk makes a state as plain as it can be while something is wrong with it, and returns that as a script.
func shrunk(t *testing.T, s state, seed uint64) string {
	for i := range s {
		if plain := append(state{}, s...); s[i] > 0 {
			plain[i] = 0
			if wrong, _ := check(t, plain, seed); wrong != "" {
				s = plain
			}
		}
	}
	wrong, log := check(t, s, seed)
	return fmt.Sprintf("%s\n\n# %s\nexec unshare --net sh script.sh\n-- script.sh "+
		"--\n%s%s", wrong, s, containerScript, strings.Join(log, "\n"))
}

type report struct{ Findings []finding }

// has reports whether there is a finding with one of the codes.
func (r report) has(codes ...string) bool {
	return slices.ContainsFunc(r.Findings, func(f finding) bool { return slices.Contains(codes, f.Code) })
}

type finding = struct{ Code, Severity, Text string }

// check has doctor look at a container, and calls iptables there. Doctor says that iptables cannot do something exactly
// where a call fails, and that the backend is wrong where it is. Where doctor is silent, the commands run the host's.
func check(t *testing.T, s state, seed uint64) (wrong string, log []string) {
	sh := open(t)
	defer sh.close()
	for _, line := range s.lines() {
		output, status := sh.run(line)
		if status != 0 && !strings.HasPrefix(line, "inside") {
			t.Fatalf("%s: status %d: %s", line, status, output)
		}
	}
	output, status := sh.run(inside(wrapper + " doctor -o json"))
	if status == 126 {
		return "", sh.log // its file has capabilities that this container must not have
	}
	var r report
	err := json.Unmarshal([]byte(output), &r)
	if err != nil {
		t.Fatalf("doctor: %v: %q\n%s", err, output, strings.Join(sh.log, "\n"))
	}
	isProblem := slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Severity == "problem" })
	versions, failed := sh.run(inside(`for n in iptables ip6tables; do for c in "" -save -restore; do ` +
		`$n$c --version || exit; done; timeout 20 $n -w 1 -t mangle -S || exit; done`))
	says := map[string]string{"nft": "nf_tables", "legacy": "legacy"}[s.truth()] // "" is in every version
	isRight := !slices.ContainsFunc(strings.Split(versions, "\n"), func(line string) bool {
		return strings.Contains(line, "tables") && strings.Contains(line, " v") && !strings.Contains(line, says)
	})
	isLock := r.has("lock") && !r.has("wrong-backend") // of the backend that should run
	cannot := isLock || r.has("not-permitted", "kernel", "no-program")
	isUnknown := r.has("not-wrapped") || strings.Contains(output, "did not start iptables")
	switch {
	case len(r.Findings) > 0 && !s.faulty():
		wrong = "doctor says something where nothing is wrong"
	case failed != 0 && !cannot && !isUnknown && !r.has("wrong-backend"):
		wrong = fmt.Sprintf("a call fails, and doctor does not say so: %q, status %d", versions, failed)
	case failed == 0 && cannot:
		wrong = fmt.Sprintf("no call fails, and doctor says so: %q", versions)
	case failed == 0 && isRight && s.truth() != "unknown" && r.has("wrong-backend"):
		wrong = fmt.Sprintf("the backend is right: %q", versions)
	case len(r.Findings) == 0 && !isRight:
		wrong = fmt.Sprintf("doctor is silent, but the host uses %s, and the commands say %q", s.truth(), versions)
	case isProblem != (status == 1):
		wrong = fmt.Sprintf("status %d", status)
	}
	if wrong != "" {
		wrong += fmt.Sprintf(": %v", r)
	}
	return wrong, sh.log
}

// wrapper is the wrapper's own name, which not every PATH finds.
const wrapper = `$(PATH=$PATH:/usr/local/bin:/usr/sbin command -v iptables-wrapper)`
