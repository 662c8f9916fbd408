// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrExposed means that a program or a switch is not used, because other users could replace it.
var ErrExposed = errors.New("others can write it")

// SystemDir reports whether a directory is taken as it is, because whoever can write it can replace any program of the
// system. In a sticky directory that is not so. The path decides, not the inode: another user may be able to make a
// path of his own lead there for a moment.
func SystemDir(path string, dir unix.Stat_t) bool {
	isNamed := path == "/usr/sbin" || path == "/sbin" || path == "/usr/bin"
	return isNamed && dir.Mode&unix.S_ISVTX == 0
}

// TrustedDir reports whether root may follow a switch in a directory: it is one of the system's, or Trusted.
func TrustedDir(path string, dir unix.Stat_t) bool { return SystemDir(path, dir) || Trusted(dir) }

// Trusted reports whether a file or directory belongs to a trusted user, and no other user can write it. No group may
// write it either, not even group 0, because other users' containers often run in it.
func Trusted(st unix.Stat_t) bool {
	const othersWrite = 0o022
	return st.Mode&othersWrite == 0 && trustedUser(st.Uid)
}

// trustedUser reports whether a user is root, the caller, or the owner of the root directory, who could replace
// everything below it. In a user namespace that does not map root, such as rootlesskit's, root's files and the root
// directory belong to the user nobody.
func trustedUser(uid uint32) bool {
	if uid == 0 || int(uid) == unix.Geteuid() {
		return true
	}
	var root unix.Stat_t
	err := unix.Stat("/", &root)
	return err == nil && root.Uid == uid
}

// Exposed returns what would let other users replace the program to which an absolute path leads: a directory or a
// symlink on the way that they own, or can write, or the program; also what is not there, because they may have moved
// it for a moment. It returns "" if there is none. In a sticky directory such as /tmp, users can replace only their own
// files.
func Exposed(program string) string {
	links := 0
	at := "/"
	rest := strings.Split(program, "/") // not cleaned: ".." leads elsewhere behind a link
	for {
		var st unix.Stat_t
		err := unix.Lstat(at, &st)
		if err != nil || links > mostLinks {
			return at
		}
		if !trustedOnTheWay(at, st) {
			return at
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			content, err := os.Readlink(at)
			if err != nil {
				return at
			}
			links++
			at = filepath.Dir(at)
			if filepath.IsAbs(content) {
				at = "/"
			}
			rest = append(strings.Split(content, "/"), rest...)
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return ""
		}
		at = filepath.Join(at, rest[0]) // at is no link, so Join may remove ".." lexically
		rest = rest[1:]
	}
}

// trustedOnTheWay reports whether other users cannot replace what is behind a directory or a symlink, or a program.
// Whoever can write / or /usr can replace the system's directories, too.
func trustedOnTheWay(path string, st unix.Stat_t) bool {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK: // its permissions mean nothing
		return trustedUser(st.Uid)
	case unix.S_IFDIR:
		isAbove := path == "/" || path == "/usr"
		isSticky := st.Mode&unix.S_ISVTX != 0
		return isAbove || TrustedDir(path, st) || isSticky && trustedUser(st.Uid)
	}
	return Trusted(st)
}

// mostLinks is how many symlinks the kernel follows on the way to a file: MAXSYMLINKS in linux/namei.h.
const mostLinks = 40

// Hops returns an absolute path, and each path to which it leads by a symlink, the last one included.
func Hops(path string) []string {
	hops := []string{path}
	for range mostLinks {
		content, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(content) {
			// Resolve first: Join would remove ".." lexically.
			directory, _ := filepath.EvalSymlinks(filepath.Dir(path))
			content = filepath.Join(directory, content)
		}
		path = content
		hops = append(hops, path)
	}
	return hops
}
