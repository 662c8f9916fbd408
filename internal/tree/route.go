// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symlinks the kernel follows in one path.
const maxLinks = 40

// route is what is left of a path for somebody who walks along it, one element after the other.
type route struct {
	elements []string // ".." among them
	links    int      // symlinks that were followed
}

func routeOf(path string) route { return route{elements: elements(path)} }

func (r *route) ended() bool { return len(r.elements) == 0 }

// next takes the next element.
func (r *route) next() string {
	first := r.elements[0]
	r.elements = r.elements[1:]
	return first
}

// through puts what a symlink contains before the rest. Where that is absolute, the caller goes on from the root. It
// fails with ELOOP where the kernel does.
func (r *route) through(target string) error {
	r.links++
	if r.links > maxLinks {
		return unix.ELOOP
	}
	r.elements = append(elements(target), r.elements...)
	return nil
}

// elements splits a path, without the elements that mean nothing.
func elements(path string) (names []string) {
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}
