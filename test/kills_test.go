// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A process is killed before each of its system calls, one by one; and three at once are, each somewhere. At every such
// instant each name works, there are not two backends, and the next call or command is as good as the first.
func TestKilledAtEachCall(t *testing.T) {
	results, outside := resultsDir(t)
	if outside {
		defer func() {
			kills := 0
			for _, content := range readResults(t, results) {
				n, err := strconv.Atoi(string(content))
				if err != nil {
					t.Fatal(err)
				}
				kills += n
			}
			section(t, "kills", kills, "kills survived", fmt.Sprintf("A first call, `select` and `reset` were killed in %d situations: before each system call that changes a file, and before\nexecve; in those marked above, before each system call. Three processes at once were killed before every third.", len(scenes)))
		}()
	}
	inScenes(t, func(t *testing.T, s *scene) {
		kills := s.killAtEach(t)
		if host.All() {
			kills += s.killThree(t)
		}
		putResult(t, results, s.doc, []byte(strconv.Itoa(kills)))
	})
}

// changing are the calls that change something, and the last one. A process that is killed before any other call leaves
// behind what it would before the next of these, so it is killed before those too in a few scenes only.
var changing = strings.Fields("symlinkat linkat renameat unlinkat execve")

func (s *scene) killAtEach(t *testing.T) (kills int) {
	reference := s.reference(t)
	for at, call := range reference {
		if call.BeforeMain || slices.Contains(cannotFail, call.Name) ||
			!slices.Contains(changing, call.Name) && !(s.every && host.All()) {
			continue
		}
		s.disturb(t, reference, at, "signal=KILL")
		kills++
		s.survived(t, fmt.Sprintf("killed at %+v", call))
	}
	if kills == 0 {
		t.Error("nothing was killed")
	}
	return kills
}

// killThree kills three processes that run at the same time. Where the others are by then is left to chance, so only what
// holds at any time is asked for.
func (s *scene) killThree(t *testing.T) (kills int) {
	reference := s.reference(t)
	for at := range reference {
		if reference[at].BeforeMain || at%3 != s.number%3 {
			continue
		}
		s.restore(t)
		var calls []*exec.Cmd
		for _, i := range []int{at, at + 3, at + 11} {
			call := reference[i%len(reference)]
			cmd := exec.Command("strace", append([]string{"-qq", "-o", "/dev/null",
				"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call.Name, call.When)}, s.call...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, cmd)
		}
		for _, cmd := range calls {
			if cmd.Wait() != nil {
				kills++
			}
		}
		s.survived(t, fmt.Sprintf("three at once, the first at %+v", reference[at]))
	}
	return kills
}

func (s *scene) survived(t *testing.T, what string) {
	t.Helper()
	wrong := append(s.check(t), s.recovers(t)...)
	if len(wrong) > 0 {
		t.Errorf("%s: %s:\n%s", s.doc, what, strings.Join(wrong, "\n"))
	}
}
