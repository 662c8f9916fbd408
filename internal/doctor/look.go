// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// lookAtNames looks at the six commands in the directory.
func (r *Report) lookAtNames(n layout.Names, dir string) {
	r.Names = n.Look(dir)
	for i, command := range r.Names {
		err := unexecutable(n.Tree, command)
		if err != nil {
			r.Names[i].Error = err.Error()
		}
		if errors.Is(err, unix.EISDIR) {
			r.isDirectory = command.ResolvesTo
		}
		if err != nil && command.Name == "iptables" {
			r.Here.How = here.Missing
			r.Here.Error = err.Error()
		}
	}
	for _, s := range r.Names {
		path := programs.Join(dir, s.Name)
		_, err := n.Tree.Lstat(path)
		if tree.IsNotExist(err) {
			r.absent = append(r.absent, s.Name)
			if here.InPath(n, s.Name) != "" {
				r.elsewhere = append(r.elsewhere, s.Name)
			}
		}
		r.notOurs = cmp.Or(r.notOurs, n.Ours(path))
		if s.Wrapper || s.Switched {
			r.unwritable = cmp.Or(r.unwritable, s.Unwritable)
		}
	}
}

// unexecutable says why nobody can execute that to which a command leads: it is a directory, or a file without the
// permission. docker run -v makes a directory where the file to mount is missing.
func unexecutable(t tree.Tree, command layout.Status) error {
	st, err := t.Stat(command.ResolvesTo)
	isProgram := command.Mode != "" // what is wrong with it is said elsewhere
	if command.Error != "" || isProgram || err != nil {
		return nil
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return tree.PathError("execute", command.ResolvesTo, unix.EISDIR)
	case st.Mode&0o111 == 0:
		return tree.PathError("execute", command.ResolvesTo, unix.EACCES)
	}
	return nil
}

// lookAtClient looks at the iptables that PATH finds first, and who else could replace it, if it is in the directory.
func (r *Report) lookAtClient(n layout.Names, dir string) {
	r.Client = here.Client(n)
	if r.Client == "" && r.Here.How != here.Missing {
		r.outOfPath = dir
	}
	if r.Client != "" && n.Tree.SameFile(programs.Dir(r.Client), dir) {
		_, r.openPath, _ = n.Tree.Settle(r.Client) // "" if that fails: then it cannot be started either
		st, err := n.Tree.Lstat(r.openPath)
		r.openFile = err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
		r.exposed = n.Tree.Exposed(dir) != ""
	}
}

// covered is a standard directory over which an empty volume is mounted.
func covered(n layout.Names) string {
	for _, dir := range programs.StandardDirs() {
		st, err := n.Tree.Stat(dir)
		parent, noParent := n.Tree.Stat(dir + "/..") // of a link, that of where it leads
		mounted := err == nil && noParent == nil && st.Dev != parent.Dev
		if mounted && isEmpty(n.Tree, dir) {
			return dir
		}
	}
	return ""
}

func isEmpty(t tree.Tree, dir string) bool {
	empty := true
	err := t.Scan(dir, func(string) bool {
		empty = false
		return false
	})
	return err == nil && empty
}

// whyNoMemory says why this user can neither make the memory nor remove it.
func (r *Report) whyNoMemory(n layout.Names) error {
	m := n.Memory()
	if r.Here.How == here.Remembered && m.Path() != m.OwnPath() {
		return memory.ErrRoots
	}
	return m.Unwritable()
}
