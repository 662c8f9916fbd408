// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// scene is a host, a layout of the names, and a command that is disturbed on its way: one of its system calls fails, or
// it is killed there.
type scene struct {
	doc     string
	host    string // commands that make the host
	lay     string // a script that makes the layout in /usr/sbin: the names are $@, the wrapper's file is $0
	then    string // commands that come before the disturbed one
	call    []string
	backend string // the backend that must run; "" for reset
	// guess: no name proves the backend, so that what is recorded first stays.
	guess bool
	few   bool // it is a part of "make test"

	laidOut map[string]string // what readTree says then
}

// Ways to lay out the names. Without the groups of Debian's alternatives, install makes plain links.
const (
	layAlternatives = `cp $0 iptables-wrapper; iptables-wrapper install`
	laySwitch       = `rm -f /var/lib/dpkg/alternatives/ip*tables; ` + layAlternatives
	layLinks        = `rm -f iptables-wrapper "$@"; cp $0 iptables-wrapper; for n; do ln -s iptables-wrapper $n; done`
	layFile         = `rm -f iptables-wrapper "$@"; cp $0 iptables; for n; do test -e $n || ln -s iptables $n; done`
	layReadOnly     = laySwitch + `; mount -o remount,bind,ro /usr/sbin`
)

const (
	hintInLegacy = "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT"
	ruleInLegacy = "iptables-legacy -A INPUT -j ACCEPT"
	selectNFT    = "iptables-wrapper select nft"
)

var (
	version1     = []string{"iptables", "--version"}
	addition     = []string{"iptables", "-w", "-P", "INPUT", "ACCEPT"} // can be repeated
	selectLegacy = []string{"iptables-wrapper", "select", "legacy"}
	reset        = []string{"iptables-wrapper", "reset"}
)

var scenes = []scene{
	{
		doc:     "first call through the switch",
		host:    hintInLegacy,
		lay:     laySwitch,
		call:    addition,
		backend: "legacy",
		few:     true,
	},
	{
		doc:     "links straight to the wrapper",
		host:    ruleInLegacy,
		lay:     layLinks,
		call:    addition,
		backend: "legacy",
		guess:   true,
	},
	{
		doc:     "first call, iptables is the wrapper's file",
		host:    hintInLegacy,
		lay:     layFile,
		call:    []string{"ip6tables", "--version"},
		backend: "legacy",
	},
	{
		doc:     "first call, rules in both",
		host:    "iptables-nft -A INPUT -j ACCEPT; for i in 1 2 3; do " + ruleInLegacy + "; done",
		lay:     laySwitch,
		call:    addition,
		backend: "legacy",
		guess:   true,
	},
	{
		doc:     "read-only root",
		host:    ruleInLegacy,
		lay:     layReadOnly,
		call:    addition,
		backend: "legacy",
		guess:   true,
		few:     true,
	},
	{
		doc:     "read-only root, hint against the record",
		host:    ":",
		lay:     layReadOnly,
		then:    "iptables-legacy -t mangle -X; iptables --version; " + hintInLegacy,
		call:    version1,
		backend: "legacy",
	},
	{doc: "first call, a guess", host: ":", lay: laySwitch, call: addition, backend: "nft", guess: true},
	{
		doc:     "a guess against the record",
		host:    ruleInLegacy,
		lay:     laySwitch,
		then:    "iptables --version; iptables-nft -F; for i in 1 2 3; do iptables-nft -A INPUT -j ACCEPT; done",
		call:    addition,
		backend: "legacy",
		guess:   true,
	},
	{
		doc:     "select over the other backend",
		host:    ":",
		lay:     laySwitch,
		then:    selectNFT,
		call:    selectLegacy,
		backend: "legacy",
		few:     true,
	},
	{doc: "reset", host: ":", lay: layAlternatives, then: "iptables --version; " + selectNFT, call: reset},
	{doc: "reset, read-only root", host: ":", lay: layReadOnly, then: "iptables --version", call: reset},
}

// isCommand reports whether a command is disturbed rather than a wrapped call.
func (s *scene) isCommand() bool { return s.call[0] == "iptables-wrapper" }

// inScenes runs a test for each scene, in a container that is as the scene wants it.
func inScenes(t *testing.T, test func(t *testing.T, s *scene)) {
	for _, s := range scenes {
		if !s.few && !host.All() {
			continue
		}
		t.Run(s.doc, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			host.Run(t, "sh", "-ec", s.host)
			s.layOut(t)
			test(t, &s)
		})
	}
}

func (s *scene) layOut(t *testing.T) {
	t.Helper()
	const clean = `
		mount -o remount,bind,rw /usr/sbin
		cd /usr/sbin
		rm -f iptables-current* /dev/iptables-backend-*
		`
	host.Run(t, "sh", append([]string{"-ec", clean + s.lay, os.Getenv(host.WrapperVariable)}, host.Commands...)...)
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
		if strings.HasPrefix(content, aFile) && now[path] != content {
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

var ofScene = regexp.MustCompile(`^(ip6?tables(-save|-restore)?|iptables-(current|wrapper|backend-[0-9]+))(\.new)?$`)

const aFile = "\x00"

// readTree returns what a scene is about: the targets of links, and the inodes of files.
func readTree(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives", "/dev"} {
		entries, err := os.ReadDir(dir)
		host.Check(t, err)
		for _, entry := range entries {
			if !ofScene.MatchString(entry.Name()) {
				continue
			}
			path := filepath.Join(dir, entry.Name())
			info, err := os.Lstat(path)
			host.Check(t, err)
			found[path], err = os.Readlink(path)
			if err != nil {
				found[path] = fmt.Sprint(aFile, info.Sys().(*syscall.Stat_t).Ino)
			}
		}
	}
	return found
}

// recorded is the backend in the record of this network namespace.
func recorded() string {
	record, _ := link.OpenRecord()
	return string(record.Read())
}

// litter are the temporary links that are left.
func litter(t *testing.T) (left []string) {
	t.Helper()
	for path := range readTree(t) {
		if strings.HasSuffix(path, ".new") {
			left = append(left, path)
		}
	}
	return left
}
