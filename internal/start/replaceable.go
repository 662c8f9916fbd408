// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package start

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Replaceable says who could replace the program that an absolute path leads to: a user other than root and the caller,
// who owns a part of the path, or what a link on the way leads through, or can write there. It is "" if nobody can, and
// if there is no program.
//
// In a sticky directory such as /tmp, others can replace only what is theirs.
func Replaceable(file string) string {
	const mostLinks = 40 // as many as the kernel follows: MAXSYMLINKS in linux/namei.h
	links := 0
	at := "/"
	rest := strings.Split(path.Clean(file), "/")
	for {
		var st unix.Stat_t
		err := unix.Lstat(at, &st)
		if err != nil || links > mostLinks {
			return ""
		}
		isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK // whose permissions do not count
		isDirectory := st.Mode&unix.S_IFMT == unix.S_IFDIR
		writable := st.Mode&0o022 != 0
		switch {
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return fmt.Sprintf("%q belongs to user %d", at, st.Uid)
		case writable && !isLink && !(isDirectory && st.Mode&unix.S_ISVTX != 0):
			return fmt.Sprintf("users other than root can write %q", at)
		}
		if isLink {
			content, err := os.Readlink(at)
			if err != nil {
				return ""
			}
			links++
			at = path.Dir(at)
			if path.IsAbs(content) {
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
		at = path.Join(at, rest[0]) // ".." of what is no link
		rest = rest[1:]
	}
}
