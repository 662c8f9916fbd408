// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/command"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	_ "github.com/iptables-wrappers/iptables-wrappers/internal/plan" // the test binary is the wrapper, too
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// situation is a container in which something is wrong, or nothing is.
type situation struct {
	doc  string
	make string   // a shell's commands
	env  []string // of doctor
	as   []string // a command that starts doctor with other rights
	want string   // the codes, problems first; "" for none
	says string   // what doctor has to say

	shows string // what the commands have to show that doctor prints

	limit time.Duration // for a program to run, 0: enough

	again bool // it varies another one: make test-all has it
}

// firstThread is process 1's of the container. What it makes of its namespaces is the container's, so each situation
// runs there.
var firstThread = make(chan func())

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	if os.Getenv(examineVariable) != "" {
		examineHere()
	}
	if filepath.Base(os.Args[0]) == "iptables-wrapper" {
		os.Exit(command.Run(os.Args, os.Stdout, os.Stderr))
	}
	err := host.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { os.Exit(m.Run()) }()
	for f := range firstThread {
		f()
	}
}

// enough is how long a program may run that ends by itself, on a machine however busy.
const enough = time.Hour

// examineVariable makes the test binary print doctor's report in JSON, or run a command. Its value may be the system
// calls that fail.
const examineVariable = "DOCTOR_TEST_EXAMINE"

func examineHere() {
	forbid(os.Getenv(examineVariable))
	if len(os.Args) > 1 {
		path, err := exec.LookPath(os.Args[1])
		if err == nil {
			check(os.Unsetenv(examineVariable))
			err = unix.Exec(path, os.Args[1:], os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	err := json.NewEncoder(os.Stdout).Encode(examined(doctor.Examine(enough, "main")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// result is what a test wants to know of a report.
type result struct {
	Findings []doctor.Finding
	Text     string
}

func examined(r doctor.Report) result {
	return result{r.Findings, strings.Join(r.Lines(), "\n") + "\n"}
}

// TestSituations has doctor look at real containers with real iptables.
func TestSituations(t *testing.T) {
	old := host.OldIptables(t)
	if !host.Contain(t) {
		return
	}
	host.Check(t, os.Setenv("OLD", strings.TrimSuffix(old, "/usr/sbin/xtables-nft-multi")))
	c := newContainer(t)
	for _, s := range situations() {
		if s.again && !host.All() {
			continue
		}
		t.Run(s.doc, func(t *testing.T) {
			c.t = t
			r := c.examine(s)
			var codes []string
			for _, f := range r.Findings {
				codes = append(codes, f.Code)
				for _, wrong := range forbiddenIn(f.Text, f.Do, strings.Join(f.Look, "\n")) {
					t.Errorf("%s prints %q: %+v", f.Code, wrong, f)
				}
			}
			if got := strings.Join(codes, " "); got != s.want || !strings.Contains(r.Text, s.says) {
				t.Errorf("got %q, want %q, saying %q:\n%s", got, s.want, s.says, r.Text)
			}
			if strings.Contains(r.Text, "the Pod's own network") {
				for _, ofNode := range []string{"On the node, iptables", "drain", "reboot", "clean up"} {
					if strings.Contains(r.Text, ofNode) {
						t.Errorf("the network is the Pod's own, and doctor speaks of the node: %q "+
							"in\n%s", ofNode, r.Text)
					}
				}
			}
			if os.Getenv("TEST_DOCTOR_PRINT") != "" {
				fmt.Printf("### %s\n\n%s\n", s.doc, r.Text)
			}
		})
	}
}

func situations() []situation {
	return slices.Concat(silentSituations, backendSituations, bothSituations, runSituations, rightSituations,
		eyeSituations, tryingSituations, oneSituations, ownSituations, adviceSituations, healthySituations())
}

// Each code is looked for in at least five situations, and ten are silent.
func TestEnoughSituations(t *testing.T) {
	count := map[string]int{}
	for _, s := range situations() {
		for code := range strings.FieldsSeq(s.want) {
			count[code]++
		}
		if s.want == "" {
			count[""]++
		}
	}
	for _, code := range doctor.Codes() {
		if count[code] < 5 {
			t.Errorf("%s: %d situations", code, count[code])
		}
	}
	if count[""] < 10 {
		t.Errorf("%d silent situations", count[""])
	}
}
