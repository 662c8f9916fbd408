// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// replaceable returns why users other than root and the caller could replace the program to which an absolute path
// leads: they own, or can write, a directory or a link on the way, or the program. It returns the zero Refusal if they
// cannot, and if there is no program. In a sticky directory such as /tmp, users can replace only their own files.
func replaceable(program string) Refusal {
	const mostLinks = 40 // as many as the kernel follows: MAXSYMLINKS in linux/namei.h
	links := 0
	at := "/"
	rest := strings.Split(program, "/") // not cleaned: ".." leads elsewhere behind a link
	for {
		var st unix.Stat_t
		err := unix.Lstat(at, &st)
		if err != nil || links > mostLinks {
			return Refusal{}
		}
		isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK // the kernel ignores a link's permissions
		isDirectory := st.Mode&unix.S_IFMT == unix.S_IFDIR
		writable := st.Mode&0o022 != 0
		switch {
		case !file.TrustedUser(st.Uid):
			return Refusal{Path: at, Why: fmt.Sprintf("belongs to user %d", st.Uid)}
		case writable && !isLink && !(isDirectory && st.Mode&unix.S_ISVTX != 0):
			return Refusal{Path: at, Why: "can be written by users other than root"}
		}
		if isLink {
			content, err := os.Readlink(at)
			if err != nil {
				return Refusal{}
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
			return Refusal{}
		}
		at = path.Join(at, rest[0]) // at is no link, so Join may remove ".." lexically
		rest = rest[1:]
	}
}
