// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The area of a generated tree: a root file system, and what is beside it.
const (
	area    = "/run/area"
	areaTop = area + "/tree"
	beside  = area + "/beside"
)

// Root installs into generated trees, whose files and directories belong to several users and have all kinds of modes
// and capabilities. What changes is what install says, and new files are root's.
func TestRandomOwners(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	r := host.Rand(t)
	host.PutWrapper(t, wrapperFile)
	ended := map[string]int{}
	for range host.Number(150, 1000) {
		a := growArea(t, r)
		args := a.installArgs(r)
		output, err := exec.Command("iptables-wrapper", args...).Output()
		after := lookAround(t, area)
		a.complain = func(format string, values ...any) {
			t.Errorf("%s\n%q: %v\n%s%s", strings.Join(a.grown, "\n"), args, err, output, fmt.Sprintf(format, values...))
		}
		a.checkSaid(string(output), after)
		if t.Failed() {
			return
		}
		changed := len(output) > 0 && !strings.HasPrefix(string(output), "nothing")
		ended[fmt.Sprintf("%t, changed: %t", err == nil, changed)]++
	}
	t.Log(ended)
	for _, way := range []string{"true, changed: true", "false, changed: false"} {
		if ended[way] == 0 {
			t.Errorf("none ended like this: %s", way)
		}
	}
}

// The same while one of the users exchanges names, in every directory that is theirs. Files change their places then,
// so they are known by their inodes.
func TestRandomOwnersExchanged(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	r := host.Rand(t)
	host.PutWrapper(t, wrapperFile)
	ended := map[bool]int{}
	for range host.Number(60, 500) {
		a := growArea(t, r)
		host.Check(t, os.Chmod(beside, 0o755)) // nothing here is theirs to move
		host.Check(t, os.Lchown(beside, 0, 0))
		for _, path := range []string{areaTop, areaTop + "/usr"} {
			host.Check(t, os.Lchown(path, attacker, 0))
		}
		a.before = lookAround(t, area)
		args := []string{"install", "--skip-checks", "--root", areaTop}
		if r.IntN(2) == 0 {
			args = append(args, "--force")
		}
		var pairs [][2]string
		for range 20 {
			pairs = append(pairs, [2]string{a.somewhere(r), a.somewhere(r)})
		}
		pairs = append(pairs, [2]string{areaTop + "/usr/sbin", areaTop + "/usr/lib"})
		i := 0
		stop := attack(t, func() {
			i++
			exchange(pairs[i%len(pairs)][0], pairs[i%len(pairs)][1])
		})
		output, err := exec.Command("iptables-wrapper", args...).CombinedOutput()
		stop()
		a.complain = func(format string, values ...any) {
			t.Errorf("%s\n%q: %v\n%s%s", strings.Join(a.grown, "\n"), args, err, output, fmt.Sprintf(format, values...))
		}
		a.checkInodes(lookAround(t, area))
		if t.Failed() {
			return
		}
		ended[err == nil]++
	}
	t.Log(ended)
	if ended[true] == 0 {
		t.Error("none ended with success")
	}
}

// thing is a file, link or directory.
type thing struct {
	unix.Stat_t
	target       string
	capabilities string
	wrapper      bool // it is as large as the real wrapper, which nothing else is
}

func (x thing) kind() uint32 { return x.Mode & unix.S_IFMT }

// String is all of it that a change would show in. That of a directory leaves out what is in it.
func (x thing) String() string {
	text := fmt.Sprintf("%o %d:%d %x %s", x.Mode, x.Uid, x.Gid, x.capabilities, x.target)
	if x.kind() == unix.S_IFDIR {
		return text
	}
	return fmt.Sprintf("%s %d %d", text, x.Size, x.Mtim.Nano())
}

func lookAround(t *testing.T, top string) map[string]thing {
	t.Helper()
	wrapper, err := os.Stat(wrapperFile)
	host.Check(t, err)
	found := map[string]thing{}
	err = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		var x thing
		if err == nil {
			err = unix.Lstat(path, &x.Stat_t)
		}
		x.target, _ = os.Readlink(path)
		x.capabilities = attribute(path)
		x.wrapper = x.kind() == unix.S_IFREG && x.Size == wrapper.Size()
		found[path] = x
		return err
	})
	host.Check(t, err)
	return found
}

// grownArea is an area, what is in it, and how it came about.
type grownArea struct {
	before   map[string]thing
	grown    []string
	complain func(format string, values ...any)
}

var (
	areaDirs = []string{areaTop, areaTop + "/usr", areaTop + "/usr/sbin", areaTop + "/usr/lib", areaTop + "/etc",
		areaTop + "/etc/alternatives", beside}
	areaFiles = slices.Concat(names, []string{
		"iptables-current", "iptables-wrapper", ".iptables-wrapper.new", ".iptables-current.new", ".iptables.new",
		"xtables-nft-multi", "xtables-legacy-multi", "mine",
	})
	// Capabilities as they are stored: CAP_NET_ADMIN and CAP_NET_RAW, and CAP_SETUID.
	areaCapabilities = []string{
		"\x01\x00\x00\x02\x00\x30\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x01\x00\x00\x02\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	}
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (a *grownArea) somewhere(r *rand.Rand) string {
	dir := pick(r, areaTop+"/usr/sbin", areaTop+"/usr/lib", areaTop+"/etc/alternatives")
	return filepath.Join(dir, pick(r, areaFiles...))
}

// growArea makes an area. Most of its files are root's, so that there is something to install.
func growArea(t *testing.T, r *rand.Rand) *grownArea {
	t.Helper()
	a := &grownArea{}
	host.Check(t, os.RemoveAll(area))
	host.Check(t, os.Mkdir(area, 0o755))
	owner := func() int { return pick(r, 0, 0, 0, 0, 0, 0, 0, 0, attacker, 2000) }
	if r.IntN(3) > 0 {
		owner = func() int { return 0 }
	}
	for _, dir := range areaDirs {
		host.Check(t, os.MkdirAll(dir, 0o755))
		mode := pick(r, 0o755, 0o755, 0o755, 0o755, 0o755, 0o775, 0o700, 0o777, 0o777|os.ModeSticky)
		host.Check(t, os.Chmod(dir, mode))
		uid := owner()
		host.Check(t, os.Chown(dir, uid, pick(r, 0, 0, 0, attacker)))
		a.grown = append(a.grown, fmt.Sprintf("%s: %v %d", dir, mode, uid))
		if dir == areaTop || strings.HasSuffix(dir, "/usr") || strings.HasSuffix(dir, "/etc") {
			continue
		}
		for _, name := range areaFiles {
			a.put(t, r, filepath.Join(dir, name), owner)
		}
	}
	a.before = lookAround(t, area)
	return a
}

// put makes a file, a link or nothing.
func (a *grownArea) put(t *testing.T, r *rand.Rand, path string, owner func() int) {
	t.Helper()
	base := filepath.Base(path)
	isProgram := strings.HasPrefix(base, "xtables-")
	targets := []string{
		"iptables-wrapper", "iptables-current", "/usr/sbin/iptables-wrapper", "xtables-nft-multi",
		"xtables-legacy-multi", "/etc/alternatives/" + base, "/usr/sbin/" + pick(r, areaFiles...),
		"../../../beside/" + base, beside + "/" + base, "gone", base,
	}
	var err error
	kind := pick(r, "nothing", "link", "link", "link", "link", "wrapper", "file", "copy", "directory", "FIFO")
	usual := r.IntN(8) > 0
	switch {
	case usual && isProgram:
		kind = "file"
	case usual && strings.HasPrefix(base, "."):
		kind = "nothing"
	case usual:
		kind, targets = pick(r, "nothing", "link", "link"), targets[:5]
	}
	said := kind
	switch kind {
	case "nothing":
		return
	case "link":
		said = pick(r, targets...)
		err = os.Symlink(said, path)
	case "wrapper":
		err = os.WriteFile(path, []byte("\x7fELF iptables-wrapper marker 7d3f6c0e-5a51-4f3b-9a1e-1f6d2c8b0e47"), 0o755)
	case "copy":
		host.PutWrapper(t, path)
	case "file":
		err = os.WriteFile(path, []byte("#!/bin/sh\nexit 7\n"), 0o755)
	case "directory":
		err = os.Mkdir(path, 0o755)
	case "FIFO":
		err = unix.Mkfifo(path, 0o644)
	}
	host.Check(t, err)
	uid := owner()
	host.Check(t, os.Lchown(path, uid, 0))
	if kind == "link" {
		a.grown = append(a.grown, fmt.Sprintf("%s -> %s %d", path, said, uid))
		return
	}
	mode := pick(r, 0o755, 0o755, 0o755, 0o700, 0o775, 0o757, 0o755|os.ModeSetuid)
	host.Check(t, os.Chmod(path, mode))
	if kind != "directory" && kind != "FIFO" && r.IntN(6) == 0 {
		said += " with capabilities"
		host.Check(t, unix.Setxattr(path, "security.capability", []byte(pick(r, areaCapabilities...)), 0))
	}
	a.grown = append(a.grown, fmt.Sprintf("%s: %s %v %d", path, said, mode, uid))
}

// installArgs installs into the tree, or into a directory of it as into one of the machine.
func (a *grownArea) installArgs(r *rand.Rand) []string {
	args := []string{"install", "--skip-checks"}
	switch r.IntN(4) {
	case 0:
		args = append(args, "--dir", pick(r, areaTop+"/usr/sbin", beside))
	case 1:
		args = append(args, "--root", areaTop, "--dir", "/usr/lib")
	default:
		args = append(args, "--root", areaTop)
	}
	if r.IntN(2) == 0 {
		args = append(args, "--force")
	}
	if r.IntN(2) == 0 {
		args = append(args, "--alternatives", "never")
	}
	return args
}
