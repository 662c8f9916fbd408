// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package containers asks doctor about random containers: what it says must be so, what it says nothing of must be
// right, and each fix must cure its finding.
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
	for _, seed := range host.Seeds(t, "TEST_CONTAINERS") {
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

// finding is one of doctor's, in docs/doctor.v5.schema.json.
type finding struct{ Code, Severity, Text, Fix, Where string }

type report struct {
	Findings []finding
	Host     struct{ Mode string }
}

// check has doctor look at a container. Then either iptables is called, to compare, or what doctor finds is cured,
// one by one, until it finds nothing more.
func check(t *testing.T, s state, seed uint64) (wrong string, log []string) {
	sh := open(t)
	defer sh.close()
	for _, line := range s.lines() {
		if output, status := sh.run(line); status != 0 && !strings.HasPrefix(line, "inside") {
			t.Fatalf("%s: status %d: %s", line, status, output)
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	compare := r.IntN(3) == 0
	var last finding
	var all []string
	for range 10 {
		got, runs := sh.doctor(t)
		if !runs {
			return "", sh.log
		}
		all = append(all, fmt.Sprint(got.Findings))
		switch {
		case len(got.Findings) > 0 && !s.faulty():
			return fmt.Sprintf("doctor says something where nothing is wrong: %v", all), sh.log
		case len(got.Findings) == 0 || compare:
			return sh.compare(s, got, all), sh.log
		}
		for _, f := range got.Findings {
			if f.Code == last.Code && last.Code != "" {
				return fmt.Sprintf("the fix did not cure it: %v", all), sh.log
			}
		}
		last = got.Findings[r.IntN(len(got.Findings))]
		passed := sh.passes(1)
		if wrong := sh.cure(s, last, got); wrong != "" {
			return wrong + fmt.Sprint(": ", all), sh.log
		}
		if passed && !sh.passes(5) {
			return fmt.Sprintf("what passed before the fix of %s does not pass after it: %v", last.Code, all), sh.log
		}
		if last.Code == "rules-in-both" && other[got.Host.Mode] == s.truth() {
			return "", sh.log // kubelet said something else before; now its word is all that there is
		}
	}
	return fmt.Sprintf("there is no end: %v", all), sh.log
}

// passes reports whether packets reach the port that the node publishes, if it publishes one.
func (sh *shell) passes(seconds int) bool {
	_, status := sh.run(fmt.Sprintf("test -n \"$client\" && passes %d", seconds))
	return status == 0
}

func (sh *shell) doctor(t *testing.T) (r report, runs bool) {
	output, status := sh.run(inside(wrapper + " doctor -o json"))
	if status == 126 {
		return report{}, false // its file has capabilities that this container must not have
	}
	if err := json.Unmarshal([]byte(output), &r); err != nil {
		t.Fatalf("doctor: %v: %q\n%s", err, output, strings.Join(sh.log, "\n"))
	}
	return r, true
}

// compare calls iptables as process 1 would. Where doctor is silent, all six commands run the host's backend; where
// doctor sees a problem, they do not. --check agrees, and where --stale fails, it does not in a new container.
func (sh *shell) compare(s state, r report, all []string) string {
	_, check := sh.run(inside(wrapper + " doctor --check"))
	_, stale := sh.run(inside(wrapper + " doctor --stale"))
	versions, _ := sh.run("client 'for n in iptables ip6tables; do for c in \"\" -save -restore; do $n$c --version; " +
		"done; done'")
	listing, failed := sh.run("client 'for n in iptables ip6tables; do for t in filter nat mangle; do " +
		"timeout 2 $n -t $t -S >/dev/null || exit; done; done'")
	says := map[string]string{"nft": "nf_tables", "legacy": "legacy"}[s.truth()] // "" is in every version
	right := failed == 0 && !slices.ContainsFunc(strings.Split(versions, "\n"), func(line string) bool {
		return !strings.Contains(line, says)
	})
	problem := len(r.Findings) > 0 && r.Findings[0].Severity == "problem"
	switch {
	case len(r.Findings) == 0 && !right:
		return fmt.Sprintf("doctor is silent, but the host uses %s, and the commands are %q, status %d %s: "+
			"%v", s.truth(), versions, failed, listing, all)
	case problem && right && s.truth() != "unknown":
		return fmt.Sprintf("iptables is right, but doctor sees a problem: %v", all)
	case problem != (check == 1):
		return fmt.Sprintf("--check: status %d: %v", check, all)
	case stale == 1 && right && s.truth() != "unknown":
		return fmt.Sprintf("iptables is right, but --stale fails: %v", all)
	}
	sh.run("start")
	if stale == 1 {
		_, stale = sh.run(inside(wrapper + " doctor --stale"))
	}
	if stale != 0 {
		return fmt.Sprintf("--stale: status %d in a new container: %v", stale, all)
	}
	return ""
}

var other = map[string]string{"nft": "legacy", "legacy": "nft"}

// wrapper is the wrapper's own name, which not every PATH finds.
const wrapper = `$(PATH=$PATH:/usr/local/bin:/usr/sbin command -v iptables-wrapper)`

type change struct {
	fix        string
	dimensions []string
}

// plainer are the dimensions that a change of the Pod's spec makes plain, by how the fix begins.
var plainer = []change{
	{"add NET_", []string{"capabilities"}},
	{"run the container as root with NET_ADMIN and NET_RAW", []string{"user", "capabilities"}},
	{"run the container as root or with group 0", []string{"user"}},
	{"run as root", []string{"user"}},
	{"set allowPrivilegeEscalation: true", []string{"new privileges"}},
	{"set hostNetwork: true", []string{"network"}},
	{"mount the host's /run/xtables.lock", []string{"lock", "/run"}},
	{"mount a tmpfs on /dev/shm", []string{"/dev/shm"}},
	{"remove IPTABLES_WRAPPER_MODE", []string{"variable"}},
}

// cure applies a fix where it says.
func (sh *shell) cure(s state, f finding, r report) string {
	text, commands, _ := strings.Cut(f.Fix, "\n")
	lines := strings.Split(commands, "\n")
	switch {
	case f.Where == "container" && commands != "":
		if output, status := sh.run(inside("set -e; " + strings.Join(lines, "; "))); status != 0 {
			return fmt.Sprintf("the fix of %s cannot be applied here: status %d: %s", f.Code, status, output)
		}
		return ""
	case f.Where == "image" && commands == "":
		sh.run("layers=$LAYERS/base built=; " + dimensions[1].choices[0].lines)
	case f.Where == "image":
		if strings.HasPrefix(text, "install iptables") {
			sh.run("layers=$LAYERS/base built=")
		}
		for _, line := range lines {
			command, _ := strings.CutPrefix(line, "RUN ")
			if output, status := sh.run(image(command)); status != 0 {
				return fmt.Sprintf("the fix of %s fails in the image: status %d: %s", f.Code, status, output)
			}
		}
	case f.Where == "node" && f.Code == "lock-held":
		sh.run("kill $HOLDER")
		return ""
	case f.Where == "node" && f.Code == "rules-in-both" && strings.Contains(commands, "nft list ruleset"):
		sh.run(host_("nft flush ruleset"))
		return ""
	case f.Where == "node" && slices.Contains(strings.Fields("rules-in-both host-programs-in-both"), f.Code) &&
		strings.Contains(commands, "-save"):
		program := "$f-" + other[r.Host.Mode]
		sh.run(host_("for f in iptables ip6tables; do for t in filter nat mangle; do " + program + " -t $t -F; " +
			program + " -t $t -X; done; done"))
		if strings.Contains(text, "with these policies") {
			sh.run(host_("for f in iptables ip6tables; do for c in INPUT FORWARD OUTPUT; do " + program +
				" -P $c ACCEPT; done; done"))
		}
		return ""
	case f.Where == "node" && strings.Contains(text, "wakes it"):
		sh.run(host_("nft add table ip filter"))
		return ""
	case f.Where == "node" && slices.Contains(strings.Fields("foreign-chain unlisted-tables faulty-table"), f.Code):
		sh.run(host_("nft delete table ip filter"))
		return ""
	case f.Where == "node" && f.Code == "families-differ": // and kubelet starts again
		b := r.Host.Mode
		sh.run(host_("iptables-" + b + hint + "; ip6tables-" + b + hint))
		return ""
	case f.Where == "node" && f.Code == "chains-in-both" && strings.Contains(text, "with care"):
		sh.run(host_("for f in iptables ip6tables; do for t in filter nat mangle; do $f-" + other[r.Host.Mode] +
			" -t $t -P FORWARD ACCEPT; $f-" + other[r.Host.Mode] + " -t $t -F; $f-" + other[r.Host.Mode] + " -t " +
			"$t -X; done; done"))
		return ""
	case f.Where == "image" && f.Code == "old-iptables":
		sh.run("layers=$LAYERS/base built=; " + dimensions[1].choices[0].lines)
	case f.Where == "node" && f.Code == "no-lock":
		sh.run("lock=host")
	case f.Where == "node":
		sh.run(host_(strings.Join(lines, "; ")))
		return ""
	case strings.Contains(f.Fix, "so that this volume is filled again"):
		if strings.HasPrefix(f.Fix, "remove") {
			sh.run("variable=")
		}
		sh.run(`rm -r $D/volume; mkdir $D/volume; ` + refill)
	case strings.HasPrefix(f.Fix, "remove the volume that is mounted at"):
		sh.run("layers=$LAYERS/base built=; " + dimensions[1].choices[0].lines)
	case strings.HasPrefix(f.Fix, "remove the volume that is mounted over"):
		sh.run("empty=")
	case strings.HasSuffix(f.Fix, " to PATH"):
		sh.run("path=$path:/usr/sbin")
	case strings.Contains(f.Fix, "PATH"):
		sh.run(`path=${path#/opt/k3s:}`)
	case strings.Contains(f.Fix, "set IPTABLES_WRAPPER_MODE to"):
		sh.run("variable=IPTABLES_WRAPPER_MODE=" + r.Host.Mode)
	case strings.Contains(f.Fix, "set IPTABLES_WRAPPER_MODE="):
		_, mode, _ := strings.Cut(f.Fix, "MODE=")
		sh.run("variable=IPTABLES_WRAPPER_MODE=" + mode)
	case f.Code == "no-evidence" || f.Code == "guess":
		sh.run("variable=IPTABLES_WRAPPER_MODE=" + r.Host.Mode)
	case strings.HasPrefix(f.Fix, "delete the Pod"):
	default:
		i := slices.IndexFunc(plainer, func(c change) bool { return strings.HasPrefix(f.Fix, c.fix) })
		if i < 0 {
			return "nobody knows how to apply this fix: " + f.Fix
		}
		for _, d := range dimensions {
			if slices.Contains(plainer[i].dimensions, d.name) {
				sh.run(d.choices[0].lines)
			}
		}
	}
	if output, status := sh.run("start"); status != 0 {
		return "no container starts: " + output
	}
	return ""
}
