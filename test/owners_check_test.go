// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// checkSaid checks that nothing changed but what install says: "copied the wrapper to PATH", "gave PATH the file
// capabilities of iptables' programs" and "PATH -> TARGET".
func (a *grownArea) checkSaid(said string, after map[string]thing) {
	links := map[string]string{}
	copied, gave := "", ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		path, target, isLink := strings.Cut(line, " -> ")
		switch {
		case isLink:
			links[a.place(path)] = target
		case strings.HasPrefix(line, "copied the wrapper to "):
			copied = a.place(strings.TrimPrefix(line, "copied the wrapper to "))
		case strings.HasPrefix(line, "gave "):
			gave, _, _ = strings.Cut(strings.TrimPrefix(line, "gave "), " ")
			gave = a.place(gave)
		}
	}
	for path, now := range after {
		was, existed := a.before[path]
		target, isLink := links[path]
		switch {
		case path == copied:
			a.checkWrapper(path, now, path == gave)
		case isLink:
			if now.kind() != unix.S_IFLNK || now.Uid != 0 || now.target != target {
				a.complain("%s is %v", path, now)
			}
		case !existed:
			a.complain("%s is new: %v", path, now)
		case now.String() != was.String() || now.Ino != was.Ino:
			a.complain("%s was %v and is %v", path, was, now)
		}
	}
	for path := range a.before {
		_, there := after[path]
		leftover := strings.HasPrefix(filepath.Base(path), ".") && (copied != "" || len(links) > 0)
		if !there && !leftover {
			a.complain("%s is gone", path)
		}
	}
}

// place returns where in the area a path of install's is.
func (a *grownArea) place(path string) string {
	if strings.HasPrefix(path, area) {
		return path
	}
	return areaTop + path
}

// checkWrapper checks a file that install has written: it is the wrapper, root's, and has those capabilities that
// iptables needs, if any, in a directory that only root can change.
func (a *grownArea) checkWrapper(path string, x thing, mayHave bool) {
	if !x.wrapper || x.Uid != 0 || x.Mode != unix.S_IFREG|0o755 {
		a.complain("%s is %v", path, x)
	}
	switch {
	case !mayHave && x.capabilities != "":
		a.complain("%s has got the capabilities %x", path, x.capabilities)
	case mayHave && x.capabilities != areaCapabilities[0]:
		a.complain("%s has the capabilities %x", path, x.capabilities)
	case mayHave && !a.rootsAlone(filepath.Dir(path)):
		a.complain("%s has got capabilities, and others can change its directory", path)
	}
}

// rootsAlone reports whether only root can change what is in a directory of the area, or put another one in its
// place. In a sticky directory others cannot do that.
func (a *grownArea) rootsAlone(dir string) bool {
	for at := dir; at != area; at = filepath.Dir(at) {
		x := a.before[at]
		open := x.Mode&unix.S_IWOTH != 0 || x.Mode&unix.S_IWGRP != 0 && x.Gid != 0
		sticky := at != dir && x.Mode&unix.S_ISVTX != 0
		if x.Uid != 0 || open && !sticky {
			return false
		}
	}
	return true
}

// checkInodes checks what can have changed while a user exchanged names: no file's owner, mode, content or
// capabilities; what is gone was install's to replace, or in a directory where the user could have removed it; what
// is new is root's link, or the wrapper without capabilities; and nothing at all has changed beside the tree.
func (a *grownArea) checkInodes(after map[string]thing) {
	old := map[uint64]thing{}
	for _, x := range a.before {
		old[x.Ino] = x
	}
	still := map[uint64]bool{}
	for path, now := range after {
		still[now.Ino] = true
		was, existed := old[now.Ino]
		outside := strings.HasPrefix(path, beside+"/")
		switch {
		case existed && now.String() != was.String():
			a.complain("%s was %v and is %v", path, was, now)
		case existed && outside && a.before[path].Ino != now.Ino:
			a.complain("%s is another file now", path)
		case existed:
		case outside:
			a.complain("%s is new: %v", path, now)
		case now.kind() == unix.S_IFLNK:
			if now.Uid != 0 {
				a.complain("%s is new: %v", path, now)
			}
		default:
			a.checkWrapper(path, now, false)
		}
	}
	for path, was := range a.before {
		dir := a.before[filepath.Dir(path)]
		open := dir.Mode&unix.S_IWOTH != 0 || dir.Mode&unix.S_IWGRP != 0 && dir.Gid == attacker
		users := dir.Uid == attacker || open && (dir.Mode&unix.S_ISVTX == 0 || was.Uid == attacker)
		ours := slices.Contains(areaFiles[:len(areaFiles)-3], filepath.Base(path)) && was.kind() != unix.S_IFDIR
		if !still[was.Ino] && (strings.HasPrefix(path, beside) || !users && !ours) {
			a.complain("%s is gone: %v", path, was)
		}
	}
}
