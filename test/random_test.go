// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Random trees of files, links, loops and directories under the six names, in /usr/sbin and in /etc/alternatives:
// whatever is called, nothing changes that is not a name on its way to the wrapper or to an iptables program, no name
// that led somewhere is broken, and a command that fails has changed nothing.
func TestRandomTrees(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	trees := host.Number(100, 1000)
	if other := os.Getenv("TEST_TREES"); other != "" {
		var err error
		trees, err = strconv.Atoi(other)
		host.Check(t, err)
	}
	r := host.Rand(t)
	host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	// The programs are in a directory of their own, so that /usr/sbin can be emptied each time.
	host.Run(t, "sh", "-ec", `
		mkdir /run/programs /run/root
		cp /usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /bin/true /run/programs
		ln -s /run/programs/true /run/root/foreign`)
	host.PutWrapper(t, programs+"iptables-wrapper")
	host.Run(t, "sh", "-ec", `
		mount -t tmpfs -o mode=755 none /usr/sbin
		mount -t tmpfs -o mode=755 none /etc/alternatives`)
	done := map[string]int{}
	for range trees {
		done[growAndCall(t, r)]++
		if t.Failed() {
			return
		}
	}
	t.Logf("%v", done)
}

const programs = "/run/programs/"

// growAndCall makes a tree, calls something, and checks the result. It returns what was called and how it ended.
func growAndCall(t *testing.T, r *rand.Rand) string {
	grown := grow(t, r)
	before := look(t)
	call := [][]string{
		{"/usr/sbin/iptables", "--version"}, {"/usr/sbin/ip6tables-save", "--version"},
		{programs + "iptables-wrapper", "reset", "--dir", "/usr/sbin"},
		{programs + "iptables-wrapper", "select", "--dir", "/usr/sbin"},
		{programs + "iptables-wrapper", "select", "--dir", "/usr/sbin", "--mode", "legacy"},
		{programs + "iptables-wrapper", "install", "--dir", "/usr/sbin", "--skip-checks", "--alternatives", "never"},
	}[r.IntN(6)]
	cmd := exec.Command(call[0], call[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	started := err == nil || errors.As(err, &exit)
	after := look(t)
	isCommand := strings.HasPrefix(call[0], programs)
	complain := func(format string, args ...any) {
		t.Errorf("%s\n%v: %v: %s\nbefore: %v\nafter: %v\n%s", strings.Join(grown, "\n"), call, err, output, before,
			after, fmt.Sprintf(format, args...))
	}
	for path, entry := range before {
		now, there := after[path]
		switch {
		case entry.end != "" && now.end == "" && there:
			complain("%s pointed to %s, and is broken", path, entry.end)
		case there && now.content == entry.content:
		case entry.link && strings.HasPrefix(filepath.Base(path), ".") && !there:
			// a temporary link that a killed process could have left is removed
		case isCommand && err != nil:
			complain("it failed, and changed %s", path)
		case !slices.Contains(names, filepath.Base(path)) &&
			!slices.Contains([]string{"iptables-wrapper", "iptables-current"}, filepath.Base(path)):
			complain("%s is not its to change", path)
		case entry.foreign && !(filepath.Base(path) == "iptables-current" && unused(before)):
			complain("%s points to %s, and was changed", path, entry.end)
		case !there:
			complain("%s is gone", path)
		case !isCommand && !entry.wrapper && filepath.Base(path) != "iptables-current":
			complain("%s did not point to the wrapper", path)
		}
	}
	for path := range after {
		_, there := before[path]
		if !there && (isCommand && err != nil || strings.HasPrefix(filepath.Base(path), ".")) {
			complain("%s is new", path)
		}
	}
	if !started {
		return "nothing"
	}
	return fmt.Sprint(filepath.Base(call[0]), " ", call[1], " ", cmd.ProcessState.ExitCode())
}

// unused reports whether none of the six names goes through the switch. A switch that no name uses is pointed at the
// wrapper before one does.
func unused(tree map[string]entry) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return tree["/usr/sbin/"+name].switched })
}

func look(t *testing.T) map[string]entry {
	t.Helper()
	found := map[string]entry{}
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives"} {
		files, err := os.ReadDir(dir)
		host.Check(t, err)
		for _, file := range files {
			path := filepath.Join(dir, file.Name())
			info, err := os.Lstat(path)
			host.Check(t, err)
			e := entry{content: fmt.Sprint(info.Mode(), info.Size())}
			if target, err := os.Readlink(path); err == nil {
				e.content, e.link = target, true
			}
			if end, err := filepath.EvalSymlinks(path); err == nil {
				e.end, e.wrapper = end, isOurs(end)
				e.foreign = !e.wrapper && !passes(path,
					func(p string) bool { return strings.HasPrefix(filepath.Base(p), "xtables-") })
			}
			e.switched = passes(path, func(p string) bool { return p == "/usr/sbin/iptables-current" })
			found[path] = e
		}
	}
	return found
}

// passes reports whether a path is what is looked for, or goes through it.
func passes(path string, wanted func(string) bool) bool {
	for range 40 {
		if wanted(path) {
			return true
		}
		target, err := os.Readlink(path)
		if err != nil {
			return false
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return false
}

// grow makes a tree and says what is in it.
func grow(t *testing.T, r *rand.Rand) (grown []string) {
	t.Helper()
	host.Run(t, "find", "/usr/sbin", "/etc/alternatives", "-mindepth", "1", "-delete")
	paths := []string{"/usr/sbin/iptables-wrapper", "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi",
		"/usr/sbin/iptables-current", "/usr/sbin/.iptables-current.new", "/usr/sbin/.iptables-save.new"}
	for _, dir := range []string{"/usr/sbin/", "/etc/alternatives/"} {
		for _, name := range names {
			paths = append(paths, dir+name)
		}
	}
	copied := func(path string) error { host.PutWrapper(t, path); return nil }
	kinds := []func(path string) error{
		func(path string) error {
			if os.Link("/usr/sbin/iptables-wrapper", path) != nil {
				return copied(path)
			}
			return nil
		},
		copied,
		func(path string) error { return os.WriteFile(path, []byte("#!/bin/sh\nexit 7\n"), 0o755) },
		func(path string) error { return os.Mkdir(path, 0o755) },
		func(string) error { return nil }, // nothing
	}
	const nothing = 4
	targets := func(path string) []string {
		base := filepath.Base(path) // which makes a loop
		return []string{"/usr/sbin/iptables-wrapper", programs + "xtables-nft-multi", programs + "xtables-legacy-multi",
			"/usr/sbin/iptables-current",
			"iptables-wrapper", "/etc/alternatives/" + base, "/usr/sbin/" + names[r.IntN(len(names))],
			"xtables-nft-multi",
			base, "gone", "/run/root/foreign", "../../run/root/foreign", "/usr/sbin"}
	}
	// Mostly what is usual, so that there are names to move: the wrapper, the two programs, the switch, and names that
	// lead to it.
	usual := r.IntN(3) > 0
	for i, path := range paths {
		kind, target := r.IntN(len(kinds)), ""
		switch at := min(i, 6); {
		case usual && r.IntN(8) > 0 && at == 0:
			kind = 0
		case usual && r.IntN(8) > 0 && (at == 4 || at == 5):
			kind = nothing
		case usual && r.IntN(8) > 0:
			target = targets(path)[[]int{0, 1, 2, 0, 0, 0, 3}[at]]
		case r.IntN(3) > 0:
			all := targets(path)
			target = all[r.IntN(len(all))]
		}
		var err error
		if target != "" {
			err = os.Symlink(target, path)
		} else {
			err = kinds[kind](path)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		grown = append(grown, fmt.Sprintf("%s: %d %s", path, kind, target))
	}
	return grown
}

// entry is what a path of a tree is and where it leads.
type entry struct {
	content string // of a link, or what kind of file it is
	link    bool
	end     string // "" if it is broken
	wrapper bool   // that is a wrapper
	foreign bool   // that is neither a wrapper nor an iptables program

	switched bool // it goes through the switch
}
