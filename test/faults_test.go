// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// errnos are those with which each call fails, whether its man page has them or not. Not among them is EPROTONOSUPPORT for a
// socket, which is an answer: script/no-nf-tables.txtar.
var errnos = strings.Fields("EIO ENOSPC EACCES EPERM EMFILE ENOMEM EINTR EAGAIN EROFS EINVAL ELOOP ENOENT")

// fewErrnos is how many of them are tried in a scene that is not for every one: others for each call, and in each scene.
const fewErrnos = 3

func (s *scene) errnos(at int) []string {
	few := host.Number(1, fewErrnos)
	if s.every && host.All() {
		return errnos
	}
	first := (s.number + at) * few % len(errnos)
	return slices.Concat(errnos, errnos)[first : first+few]
}

// asks reports whether a call is part of the question to one backend, or of the question whether the answer may be kept. If
// it fails, the guess may be the other backend; it is never kept.
func asks(mode string, call step) bool {
	switch call.Name {
	case "sendto", "recvfrom":
		return mode == "nft"
	case "socket":
		return (call.On == "AF_NETLINK") == (mode == "nft")
	case "getsockopt", "read":
		return mode == "legacy"
	default:
		return mode == "legacy" && strings.HasSuffix(call.On, "_tables_names")
	}
}

// outcome is the result of a call of which one system call failed.
type outcome string

const (
	kept    outcome = "right, and all names switched"
	ran     outcome = "right, not all names switched"
	swayed  outcome = "the other backend, not switched"
	refused outcome = "an error message"
)

// Each system call on the way to the program, and of select and reset, fails, one by one: in one scene with each errno, in the
// others with three of them. Whatever fails, the right program runs or one line says why not; no name is broken; there are never
// two backends; and the next call is as good as the first.
func TestFaults(t *testing.T) {
	inScenes(t, func(t *testing.T, s *scene) map[outcome]int { return s.failEach(t) }, func(total int, counts map[outcome]int) {
		text := "\n| outcome | times |\n| --- | ---: |\n"
		for _, o := range []outcome{kept, ran, swayed, refused} {
			text += fmt.Sprintf("| %s | %d |\n", o, counts[o])
		}
		section(t, "faults", total, "faults injected", fmt.Sprintf("Each system call of a first call, `select` and `reset` fails, one by one, in %d situations: in\none of them with each of %s,\nin the others with %d of these.\n%s",
			len(scenes), strings.Join(errnos, ", "), fewErrnos, text))
	})
}

func (s *scene) failEach(t *testing.T) map[outcome]int {
	outcomes := map[outcome]int{}
	reference := s.reference(t)
	for at, call := range reference {
		if call.BeforeMain || slices.Contains(cannotFail, call.Name) {
			continue
		}
		for _, errno := range s.errnos(at) {
			if errno == "ENOENT" && strings.HasSuffix(call.On, "/if_inet6") {
				continue // an answer, too: this kernel has no IPv6
			}
			end := s.disturb(t, reference, at, "error="+errno)
			result := s.judge(t, call, end)
			outcomes[result]++
			var wrong []string
			if result == "" {
				wrong = append(wrong, "an unexpected end")
			}
			wrong = append(wrong, s.check(t)...)
			if left := litter(t); len(left) > 0 && call.Name != "unlinkat" {
				wrong = append(wrong, fmt.Sprintf("left behind: %v", left))
			}
			if result != kept || s.isCommand() {
				wrong = append(wrong, s.recovers(t)...)
			}
			if len(wrong) > 0 {
				t.Errorf("%s: %+v fails with %s: %+v:\n%s", s.doc, call, errno, end, strings.Join(wrong, "\n"))
			}
		}
	}
	return outcomes
}

// judge returns the result of a call, "" if that may not be.
func (s *scene) judge(t *testing.T, failed step, e ended) outcome {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(e.stderr), "\n")
	second := "iptables-wrapper: hint: "
	most := 2
	if s.isCommand() {
		second, most = "iptables-wrapper: ", 3 // neither the switch nor a memory could be changed, and a hint
	}
	said := strings.HasPrefix(lines[0], "iptables-wrapper: ") && len(lines) <= most &&
		!slices.ContainsFunc(lines[1:], func(line string) bool { return !strings.HasPrefix(line, second) })
	switched := 0
	for _, name := range names {
		if !isOurs(end(name)) {
			switched++
		}
	}
	memory := remembered(t)
	if s.isCommand() {
		switch {
		case e.status == 0 && (s.mode == "" || switched == len(names)):
			return kept
		case e.status == 0 && memory == s.mode:
			return ran
		case e.status == 1 && said:
			return refused
		}
		return ""
	}
	right := strings.Contains(e.program, "-"+s.mode)
	switch {
	case e.status == 0 && e.stderr == "" && right && switched == len(names) && !s.guess:
		return kept
	case e.status == 0 && e.stderr == "" && right && (memory == "" || memory == s.mode || s.guess || s.then != ""):
		return ran
	case e.status == 0 && e.stderr == "" && e.program != "" && switched == 0 && (asks(s.mode, failed) || s.guess) &&
		(memory == "" || strings.Contains(e.program, "-"+memory) || s.then != ""):
		return swayed
	case (e.status == 126 || e.status == 127) && e.stdout == "" && said && switched == 0:
		return refused
	}
	return ""
}

// A process is killed before each of its system calls, one by one; and three at once are, each somewhere. At every such
// instant each name works, there are not two backends, and the next call or command is as good as the first.
func TestKilledAtEachCall(t *testing.T) {
	inScenes(t, func(t *testing.T, s *scene) map[outcome]int {
		kills := s.killAtEach(t)
		if host.All() {
			kills += s.killThree(t)
		}
		return map[outcome]int{"": kills}
	}, func(kills int, _ map[outcome]int) {
		section(t, "kills", kills, "kills survived", fmt.Sprintf("A first call, `select` and `reset` were killed in %d situations: before each system call that changes a file, and before\nexecve; in one of them, before each system call. Three processes at once were killed before every third.", len(scenes)))
	})
}

// changing are the calls that change something, and the last one. A process that is killed before any other call leaves
// behind what it would before the next of these, so it is killed before those too in one scene only.
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
			host.Check(t, cmd.Start())
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
	if wrong := append(s.check(t), s.recovers(t)...); len(wrong) > 0 {
		t.Errorf("%s: %s:\n%s", s.doc, what, strings.Join(wrong, "\n"))
	}
}
