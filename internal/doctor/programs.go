// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// lookAtPrograms looks at what runs in each backend.
func (r *Report) lookAtPrograms(n layout.Names, dir string) {
	own, _ := n.Self.Path()
	wrapper, unknown := install.Capabilities(n.Tree, own)
	r.wrapperCaps = wrapper != ""
	for _, mode := range programs.Modes() {
		p := r.program(n, dir, mode)
		r.Programs = append(r.Programs, p)
		if mode == detect.NFT && p.Error == "" {
			r.listTables(n.Tree, p.Path)
		}
		has, err := install.Capabilities(n.Tree, p.Path)
		if err == nil && unknown == nil && has != wrapper {
			r.fileCaps = append(r.fileCaps, p.Path)
		}
	}
}

// program looks at what runs in one backend.
func (r *Report) program(n layout.Names, dir string, mode detect.Mode) Program {
	start := func(program, name string, args ...string) (stdout, stderr string, err error) {
		return r.start(n.Tree, program, name, args...)
	}
	p := Program{Mode: mode}
	var err error
	p.Path, p.Version, err = install.Programs(n, dir, mode, start)
	if err == nil {
		err = r.loadsExtensions(n.Tree, p.Path)
	}
	if errors.Is(err, errReplaceable) {
		p.Error = errReplaceable.Error()
		return p
	}
	if err != nil {
		r.findCause(n.Tree, p.Path)
		// One missing program is reported, not all six.
		p.Error, _, _ = strings.Cut(err.Error(), "\n")
	}
	return p
}

// libraryVariables are those that say where iptables' libraries are.
const libraryVariables = "XTABLES_LIBDIR IPTABLES_LIB_DIR IP6TABLES_LIB_DIR"

// findCause finds out whether a variable or a mount keeps a program from working.
func (r *Report) findCause(t tree.Tree, program string) {
	if program == "" {
		return
	}
	failure := r.loadsExtensions(t, program)
	if failure == nil {
		return // what does not work is another thing
	}
	var fs unix.Statfs_t
	err := unix.Statfs(program, &fs)
	if err == nil && fs.Flags&unix.ST_NOEXEC != 0 && errors.Is(failure, unix.EACCES) {
		r.noexec = program
	}
	r.libraries = eachUnset(func() bool { return r.loadsExtensions(t, program) == nil })
}

// loadsExtensions returns an error if a program cannot load the libraries without which it has no match and no target.
func (r *Report) loadsExtensions(t tree.Tree, program string) error {
	_, stderr, err := r.start(t, program, "iptables", "-m", "comment", "-h")
	if err != nil {
		return fmt.Errorf("%q cannot load its extensions: %w: %s", program, err, stderr)
	}
	return nil
}

// listTables has iptables-nft list the tables of each family that has any.
func (r *Report) listTables(t tree.Tree, program string) {
	for _, family := range families {
		if len(r.Host.Of(detect.NFT, family).Tables) > 0 {
			name := commandOf(family, "-save")
			stdout, stderr, err := r.start(t, program, name)
			r.understand(name, stdout, stderr, err)
		}
	}
}

// understand looks at what a listing printed. What iptables-nft cannot list it mentions in a comment, and ends with
// status 0. Another failure has nothing to do with tables that others created. A listing that we ended was only a
// long one.
func (r *Report) understand(name, stdout, stderr string, err error) {
	for line := range strings.Lines(stdout + stderr) {
		comment, isComment := strings.CutPrefix(line, "#")
		if isComment && strings.Contains(comment, "incompatible") {
			r.Unreadable = append(r.Unreadable, name+": "+strings.TrimSpace(comment))
		}
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		r.unlisted = append(r.unlisted, fmt.Sprintf("%s: %v: %s", name, err, stderr))
	}
}
