// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
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

// Random trees of files, links, loops and directories under the six names, in /usr/sbin and in /etc/alternatives: whatever
// is called, nothing changes that is not a name on its way to the wrapper or to an iptables program, no name that led
// somewhere is broken, and a command that fails has changed nothing.
func TestRandomTrees(t *testing.T) {
	trees := host.Number(100, 1000)
	other := os.Getenv("TEST_TREES")
	if other != "" {
		var err error
		if trees, err = strconv.Atoi(other); err != nil {
			t.Fatalf("TEST_TREES: %v", err)
		}
	}
	if other == "" {
		defer func() {
			section(t, "trees", trees, "random trees of names", "Links, loops, files and directories under the six names in /usr/sbin and /etc/alternatives, and a first\ncall, `install`, `reset` or `select` on them.")
		}()
	}
	t.Run("in a container", func(t *testing.T) {
		if !host.Contain(t) {
			return
		}
		r := host.Rand(t)
		host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
		// The programs are in a directory of their own, so that /usr/sbin can be emptied each time.
		host.Run(t, "sh", "-ec", `mkdir /run/programs; cp /usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /bin/true /run/programs
			mkdir /run/root; ln -s /run/programs/true /run/root/foreign`)
		host.Check(t, os.WriteFile("/run/programs/iptables-wrapper", wrapperContent(t), 0o755))
		host.Run(t, "sh", "-ec", `mount -t tmpfs none /usr/sbin; mount -t tmpfs none /etc/alternatives`)
		done := map[string]int{}
		for range trees {
			done[growAndCall(t, r)]++
			if t.Failed() {
				return
			}
		}
		t.Logf("%v", done)
	})
}

func wrapperContent(t *testing.T) []byte {
	t.Helper()
	content := host.Read(t, os.Getenv(wrapperVariable))
	return content
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
		t.Errorf("%s\n%v: %v: %s\nbefore: %v\nafter: %v\n%s", strings.Join(grown, "\n"), call, err, output, before, after, fmt.Sprintf(format, args...))
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
		case !slices.Contains(names, filepath.Base(path)) && !slices.Contains([]string{"iptables-wrapper", "iptables-current"}, filepath.Base(path)):
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
		if _, there := before[path]; !there && (isCommand && err != nil || strings.HasPrefix(filepath.Base(path), ".")) {
			complain("%s is new", path)
		}
	}
	if !started {
		return "nothing"
	}
	return fmt.Sprint(filepath.Base(call[0]), " ", call[1], " ", cmd.ProcessState.ExitCode())
}

// unused reports whether none of the six names goes through the switch. A switch that no name uses is pointed at the wrapper
// before one does.
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
				e.foreign = !e.wrapper && !passes(path, func(p string) bool { return strings.HasPrefix(filepath.Base(p), "xtables-") })
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
