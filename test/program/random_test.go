// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Random trees of files, links, loops and directories under the six names, in /usr/sbin and in /etc/alternatives:
// whatever is called, nothing changes that is not a name on its way to the wrapper or to an iptables program, no name
// that led somewhere is broken, and a select or reset that fails has changed nothing.
func TestRandomTrees(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	trees := host.Number(45, 1000)
	r := host.Rand(t)
	host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	// The programs are in a directory of their own, so that /usr/sbin can be emptied each time.
	host.Run(t, "sh", "-ec", `
		mkdir /run/programs /run/root
		cp /usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /bin/true /run/programs
		ln -s /run/programs/true /run/root/foreign`)
	host.PutWrapper(t, programs+"iptables-wrapper")
	host.Run(t, "sh", "-ec", `
		rm -f /var/lib/dpkg/alternatives/ip*tables
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

// calls are what is called in a tree.
var calls = [][]string{
	{"/usr/sbin/iptables", "--version"},
	{"/usr/sbin/ip6tables-save", "--version"},
	{programs + "iptables-wrapper", "reset"},
	{programs + "iptables-wrapper", "select"},
	{programs + "iptables-wrapper", "select", "legacy"},
	{programs + "iptables-wrapper", "install", "--dir", "/usr/sbin"},
}

// growAndCall makes a tree, calls something, and checks the result. It returns what was called and how it ended.
func growAndCall(t *testing.T, r *rand.Rand) string {
	grown := grow(t, r)
	c := called{before: look(t)}
	args := pick(r, calls...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	output, err := cmd.CombinedOutput()
	c.after = look(t)
	c.command = strings.HasPrefix(args[0], programs)
	c.unchanged = err != nil && c.command && args[1] != "install"
	c.complain = func(format string, values ...any) {
		t.Errorf("%s\n%v: %v: %s\nbefore: %v\nafter: %v\n%s", strings.Join(grown, "\n"), args, err, output, c.before,
			c.after, fmt.Sprintf(format, values...))
	}
	c.check()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "nothing"
	}
	return fmt.Sprint(filepath.Base(args[0]), " ", args[1], " ", cmd.ProcessState.ExitCode())
}

// called is a tree before and after something was called.
type called struct {
	before, after map[string]entry
	command       bool // by the wrapper's own name, not iptables
	unchanged     bool // it failed, and says that it changed nothing then
	complain      func(format string, values ...any)
}

func (c called) check() {
	for path, was := range c.before {
		now, there := c.after[path]
		if !there || now.content != was.content {
			c.checkChanged(path, was, there)
		}
		if there && was.end != "" && now.end == "" {
			c.complain("%s pointed to %s, and is broken", path, was.end)
		}
	}
	for path := range c.after {
		_, existed := c.before[path]
		if !existed && (c.unchanged || isTemporary(path)) {
			c.complain("%s is new", path)
		}
	}
}

// isOfSwitch reports whether a link has a content that only the wrapper gives to a switch, whatever lies there.
func isOfSwitch(e entry) bool {
	return e.link && slices.Contains([]string{"iptables-wrapper", "xtables-nft-multi", "xtables-legacy-multi"},
		filepath.Base(e.content))
}

// checkChanged checks that a path may be another thing now, or gone.
func (c called) checkChanged(path string, was entry, there bool) {
	base := filepath.Base(path)
	isSwitch := base == "iptables-current"
	ours := isSwitch || base == "iptables-wrapper" || slices.Contains(names, base)
	switch {
	case isTemporary(path) && !there:
		// A killed process could have left it.
	case c.unchanged:
		c.complain("it failed, and changed %s", path)
	case !ours:
		c.complain("%s is not its to change", path)
	case was.foreign && !(isSwitch && (unused(c.before) || isOfSwitch(was))):
		c.complain("%s points to %s, and was changed", path, was.end)
	case !there:
		c.complain("%s is gone", path)
	case !c.command && !was.wrapper && !isSwitch:
		c.complain("%s did not point to the wrapper", path)
	}
}

func isTemporary(path string) bool { return strings.HasSuffix(path, ".new") }

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

// grow makes a tree and says what is in it. Two of three are mostly usual, so that there are names to move.
func grow(t *testing.T, r *rand.Rand) (grown []string) {
	t.Helper()
	for _, dir := range []string{"/usr/sbin/", "/etc/alternatives/"} {
		entries, err := os.ReadDir(dir)
		host.Check(t, err)
		for _, entry := range entries {
			host.Check(t, os.RemoveAll(dir+entry.Name()))
		}
	}
	mostlyUsual := r.IntN(3) > 0
	for _, path := range treePaths() {
		kind := usual(path)
		if !mostlyUsual || r.IntN(8) == 0 {
			kind = unusual(r, path)
		}
		host.Check(t, makeKind(t, kind, path))
		grown = append(grown, path+": "+kind)
	}
	return grown
}

func treePaths() []string {
	paths := []string{
		"/usr/sbin/iptables-wrapper",
		"/usr/sbin/xtables-nft-multi",
		"/usr/sbin/xtables-legacy-multi",
		"/usr/sbin/iptables-current",
		"/usr/sbin/iptables-current.new",
	}
	for _, dir := range []string{"/usr/sbin/", "/etc/alternatives/"} {
		for _, name := range names {
			paths = append(paths, dir+name)
		}
	}
	return paths
}

// usual is what stands where the wrapper was installed. A kind that begins with an arrow is a symlink.
func usual(path string) string {
	switch base := filepath.Base(path); {
	case base == "iptables-wrapper":
		return "copy"
	case base == "iptables-current":
		return "-> iptables-wrapper"
	case strings.HasPrefix(base, "xtables-"):
		return "-> " + programs + base
	case isTemporary(path):
		return "nothing"
	default:
		return "-> /usr/sbin/iptables-current"
	}
}

func unusual(r *rand.Rand, path string) string {
	if r.IntN(3) == 0 {
		return pick(r, "hard link", "copy", "script", "directory", "nothing")
	}
	base := filepath.Base(path)
	if base == "iptables-wrapper" || strings.HasPrefix(base, "xtables-") {
		return pick(r, "copy", "script", "nothing", "-> "+programs+"xtables-nft-multi") // never to itself
	}
	return "-> " + pick(r,
		"/usr/sbin/iptables-wrapper", "/usr/sbin/iptables-current", "/usr/sbin/"+pick(r, names...), "/usr/sbin",
		"/etc/alternatives/"+base, programs+"xtables-nft-multi", programs+"xtables-legacy-multi",
		"iptables-wrapper", "xtables-nft-multi", "gone", "/run/root/foreign", "../../run/root/foreign",
		base, // a loop
	)
}

func makeKind(t *testing.T, kind, path string) error {
	target, isLink := strings.CutPrefix(kind, "-> ")
	switch {
	case isLink:
		return os.Symlink(target, path)
	case kind == "copy", kind == "hard link" && os.Link("/usr/sbin/iptables-wrapper", path) != nil:
		host.PutWrapper(t, path)
	case kind == "script":
		return os.WriteFile(path, []byte("#!/bin/sh\nexit 7\n"), 0o755)
	case kind == "directory":
		return os.Mkdir(path, 0o755)
	}
	return nil
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

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
