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

type report struct {
	Findings []struct{ Code, Severity, Text string }
}

// check has doctor look at a container, and calls iptables as process 1 would. Where doctor is silent, the commands run
// the host's backend; where it sees a problem of the container, they do not.
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
	problem, ofContainer := false, false
	for _, f := range r.Findings {
		if f.Severity == "problem" {
			problem = true
			ofContainer = ofContainer || !slices.Contains(ofHost, f.Code)
		}
	}
	versions, failed := sh.run("client '" +
		`for n in iptables ip6tables; do for c in "" -save -restore; do $n$c --version || exit; done; ` +
		`$n -w 1 -t mangle -S >/dev/null 2>&1 || exit; done'`)
	says := map[string]string{"nft": "nf_tables", "legacy": "legacy"}[s.truth()] // "" is in every version
	right := failed == 0 && !slices.ContainsFunc(strings.Split(versions, "\n"), func(line string) bool {
		return !strings.Contains(line, says)
	})
	switch {
	case len(r.Findings) > 0 && !s.faulty():
		return fmt.Sprintf("doctor says something where nothing is wrong: %v", r), sh.log
	case len(r.Findings) == 0 && !right:
		return fmt.Sprintf("doctor is silent, but the host uses %s, and the commands say %q, status %d",
			s.truth(), versions, failed), sh.log
	case ofContainer && right && s.truth() != "unknown":
		return fmt.Sprintf("iptables is right, but doctor sees a problem: %v", r), sh.log
	case problem != (status == 1):
		return fmt.Sprintf("status %d: %v", status, r), sh.log
	}
	return "", sh.log
}

// ofHost are the findings that may be a problem where iptables itself is right.
var ofHost = []string{"both-backends", "nft-table", "lock", "not-permitted"}

// wrapper is the wrapper's own name, which not every PATH finds.
const wrapper = `$(PATH=$PATH:/usr/local/bin:/usr/sbin command -v iptables-wrapper)`
