// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// scene is a host, a layout of the names, and a command that is disturbed on its way: one of its system calls fails, or it
// is killed there.
type scene struct {
	doc  string
	host string // commands that make the host
	lay  string // a script that makes the layout in /usr/sbin: the names are $@, the wrapper's file is $0
	then string // commands that come before the disturbed one
	call []string
	mode string // what must run and be kept; "" for reset
	// guess: the host has no evidence, so that a memory is all that is kept, and a call that cannot ask may guess otherwise.
	guess bool
	few   bool // it is a part of "make test"
	every bool // each call fails with each of its errnos

	number  int
	laidOut tree
}

// Ways to lay out the names.
const (
	laySwitch       = `cp $0 iptables-wrapper; iptables-wrapper install --alternatives never`
	layAlternatives = `cp $0 iptables-wrapper; iptables-wrapper install`
	layLinks        = `rm -f iptables-wrapper "$@"; cp $0 iptables-wrapper; for n; do ln -s iptables-wrapper $n; done`
	layFile         = `rm -f iptables-wrapper "$@"; cp $0 iptables; for n; do test -e $n || ln -s iptables $n; done`
	layHardLinks    = `rm -f iptables-wrapper "$@"; cp $0 iptables; for n; do test -e $n || ln iptables $n; done`
	layReadOnly     = laySwitch + `; mount -o remount,bind,ro /usr/sbin`
)

const (
	hintInLegacy = "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT"
	hintInNFT    = "ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT"
	ruleInLegacy = "iptables-legacy -A INPUT -j ACCEPT"
	selectNFT    = "iptables-wrapper select --mode nft"
)

var (
	version1     = []string{"iptables", "--version"}
	addition     = []string{"iptables", "-w", "-P", "INPUT", "ACCEPT"} // can add something, and can be repeated
	selectLegacy = []string{"iptables-wrapper", "select", "--mode", "legacy"}
	reset        = []string{"iptables-wrapper", "reset"}
)

var scenes = []scene{
	{doc: "first call through the switch", host: hintInLegacy, lay: laySwitch, call: addition, mode: "legacy", few: true, every: true},
	{doc: "first call under alternatives", host: hintInNFT, lay: layAlternatives, call: version1, mode: "nft"},
	{doc: "first call, links made by hand", host: ruleInLegacy, lay: layLinks, call: version1, mode: "legacy", few: true},
	{doc: "first call, iptables is the wrapper's file", host: hintInLegacy, lay: layFile, call: []string{"ip6tables", "--version"}, mode: "legacy"},
	{doc: "first call, hard links", host: "ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY", lay: layHardLinks, call: version1, mode: "legacy"},
	{doc: "first call, rules in both", host: "iptables-nft -A INPUT -j ACCEPT; for i in 1 2 3; do " + ruleInLegacy + "; done", lay: laySwitch, call: version1, mode: "legacy"},
	{doc: "first call, hint against rules", host: hintInNFT + "; " + ruleInLegacy, lay: laySwitch, call: version1, mode: "nft"},
	{doc: "read-only root", host: ruleInLegacy, lay: layReadOnly, call: version1, mode: "legacy", few: true},
	{doc: "read-only root, hint against the memory", host: hintInLegacy, lay: layReadOnly, then: selectNFT, call: version1, mode: "legacy"},
	{doc: "guess that writes", host: ":", lay: laySwitch, call: addition, mode: "nft", guess: true},
	{doc: "select over the other mode", host: ":", lay: laySwitch, then: selectNFT, call: selectLegacy, mode: "legacy", few: true},
	{doc: "select, read-only root", host: ":", lay: layReadOnly, then: selectNFT, call: selectLegacy, mode: "legacy"},
	{doc: "reset", host: ":", lay: layAlternatives, then: selectNFT, call: reset},
	{doc: "reset, read-only root", host: ":", lay: layReadOnly, then: selectNFT, call: reset},
}

// isCommand reports whether a command is disturbed rather than a wrapped call.
func (s *scene) isCommand() bool { return s.call[0] == "iptables-wrapper" }

// inScenes runs a test for each scene, in a container that is as the scene wants it, and then sums up what was counted in them.
func inScenes(t *testing.T, test func(t *testing.T, s *scene) map[outcome]int, sum func(total int, counts map[outcome]int)) {
	results := os.Getenv("TEST_RESULTS") // where the containers leave them
	outside := results == ""
	if outside {
		results = t.TempDir()
		t.Setenv("TEST_RESULTS", results)
	}
	t.Run("scene", func(t *testing.T) { // ends when all of them have
		for number, s := range scenes {
			s.number = number
			if !s.few && !host.All() {
				continue
			}
			t.Run(s.doc, func(t *testing.T) {
				if outside {
					t.Parallel()
				}
				if !host.Contain(t) {
					return
				}
				host.Run(t, "sh", "-ec", s.host)
				s.layOut(t)
				counts := test(t, &s)
				text, err := json.Marshal(counts)
				if len(counts) == 0 || err != nil || os.WriteFile(filepath.Join(results, s.doc), text, 0o644) != nil {
					t.Errorf("no results: %v", err)
				}
			})
		}
	})
	if !outside || t.Failed() {
		return
	}
	total, all := 0, map[outcome]int{}
	files, _ := filepath.Glob(filepath.Join(results, "*"))
	for _, file := range files {
		var counts map[outcome]int
		host.Check(t, json.Unmarshal([]byte(read(t, file)), &counts))
		for o, n := range counts {
			total += n
			all[o] += n
		}
	}
	if total == 0 {
		t.Error("nothing was disturbed")
	}
	sum(total, all)
}

func (s *scene) layOut(t *testing.T) {
	t.Helper()
	host.Run(t, "sh", append([]string{"-ec", `mount -o remount,bind,rw /usr/sbin
		cd /usr/sbin; rm -f .[!.]* iptables-current /dev/shm/* /dev/shm/.[!.]* /run/iptables-wrapper* /run/.iptables-wrapper*; ` + s.lay,
		os.Getenv(wrapperVariable)}, names...)...)
	if s.then != "" {
		host.Run(t, "sh", "-ec", s.then)
	}
	s.laidOut = readTree(t)
}

// restore brings back the layout: a few links, or all of it where a file has changed.
func (s *scene) restore(t *testing.T) {
	t.Helper()
	now := readTree(t)
	if maps.Equal(s.laidOut, now) {
		return
	}
	for path, content := range s.laidOut {
		if isFile(content) && now[path] != content {
			s.layOut(t)
			return
		}
	}
	for path, content := range now {
		if s.laidOut[path] != content {
			host.Check(t, os.Remove(path))
		}
	}
	for path, content := range s.laidOut {
		if now[path] != content {
			host.Check(t, os.Symlink(content, path))
		}
	}
}

// check returns what must not be at any time: a name that is broken, and two backends.
func (s *scene) check(t *testing.T) (wrong []string) {
	t.Helper()
	found := map[string]string{} // where each backend was found
	wrapped := false
	for _, name := range names {
		switch got := end(name); {
		case isOurs(got):
			wrapped = true
		case strings.HasPrefix(got, "/usr/sbin/xtables-"):
			found[strings.Split(filepath.Base(got), "-")[1]] = name
		default:
			wrong = append(wrong, fmt.Sprintf("%s points to %s", name, got))
		}
	}
	if mode := remembered(t); wrapped && mode != "" {
		found[mode] = "memory"
	}
	if len(found) > 1 {
		wrong = append(wrong, fmt.Sprintf("two backends: %v", found))
	}
	return wrong
}

// recovers returns what is wrong with the calls after a disturbed one. Each must be as good as if nothing had happened, and
// nothing must be left behind for ever.
func (s *scene) recovers(t *testing.T) (wrong []string) {
	t.Helper()
	if s.isCommand() {
		host.Run(t, s.call[0], s.call[1:]...)
	}
	for _, name := range []string{"ip6tables-restore", "iptables"} { // check follows the others
		got, err := exec.Command("/usr/sbin/"+name, "--version").CombinedOutput()
		if want := version[s.mode]; err != nil || !strings.Contains(string(got), want) {
			wrong = append(wrong, fmt.Sprintf("the next call of %s: %v, %q", name, err, got))
		}
	}
	wrong = append(wrong, s.check(t)...)
	if left := litter(t); len(left) > 0 {
		// Nothing was moved because the memory is enough. What moves the links also uses up what a killed process left.
		if output, err := exec.Command("sh", "-c", "iptables-wrapper select --mode legacy && iptables-wrapper select --mode nft").CombinedOutput(); err != nil {
			wrong = append(wrong, fmt.Sprintf("select: %v, %s", err, output))
		}
		// A process that was killed while it replaced a memory leaves a link that nothing reads, until the container ends.
		left = slices.DeleteFunc(litter(t), func(path string) bool { return filepath.Dir(path) == "/dev/shm" })
		if len(left) > 0 {
			wrong = append(wrong, fmt.Sprintf("left behind: %v", left))
		}
	}
	return wrong
}

var version = map[string]string{"nft": "(nf_tables)", "legacy": "(legacy)", "": ""}

// isOurs reports whether a path at which a name ended is the wrapper's file.
func isOurs(path string) bool {
	ours, err := os.Stat(os.Getenv(wrapperVariable))
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == ours.Size()
}
