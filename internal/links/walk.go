// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symlinks the kernel follows in one path.
const maxLinks = 40

// walk is openat2(2) with RESOLVE_IN_ROOT, for where there is none: Linux before 5.6, and the qemu-user that builds images for
// other architectures. It goes one component at a time and never lets the kernel follow a link, so it cannot leave the root
// either.
func (t Tree) walk(path string, flags int) (int, error) {
	dirs := []int{t.root} // where it is, and how it came there
	up := func(depth int) {
		for ; len(dirs) > depth; dirs = dirs[:len(dirs)-1] {
			unix.Close(dirs[len(dirs)-1])
		}
	}
	defer func() { up(1) }()
	for followed := 0; ; {
		dir := dirs[len(dirs)-1]
		name, rest, slash := strings.Cut(strings.TrimLeft(path, "/"), "/")
		switch name {
		case "":
			return unix.Openat(dir, ".", flags|unix.O_CLOEXEC, 0)
		case ".", "..":
			if name == ".." {
				up(max(1, len(dirs)-1))
			}
			path = rest
			continue
		}
		fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		target, err := readlinkat(fd, "")
		switch isLink := err == nil; {
		case isLink && (slash || flags&unix.O_NOFOLLOW == 0):
			unix.Close(fd)
			if followed++; followed > maxLinks {
				return -1, unix.ELOOP
			}
			if strings.HasPrefix(target, "/") {
				up(1)
			}
			if path = target; slash {
				path += "/" + rest
			}
		case slash:
			dirs = append(dirs, fd)
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
				return -1, unix.ENOTDIR
			}
			path = rest
		default:
			unix.Close(fd)
			return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
	}
}
