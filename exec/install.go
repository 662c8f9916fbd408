// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrRefused: something would have to be replaced that is not iptables' own. Force does it.
var ErrRefused = errors.New("not replaced")

// Options are how Install goes about it.
type Options struct {
	Force        bool // replace also what is neither a wrapper nor a link to one of iptables' programs
	Alternatives bool // where the names are under alternatives, keep them there
}

// Install makes the six names in a directory lead to this wrapper, which it copies there if it runs from elsewhere.
// Names under alternatives are registered there; in a root file system entered from outside, where none of its programs
// is run, their links under /etc/alternatives are moved instead. All others become links to the wrapper.
//
// It returns a line for each thing that it changed. A name that is something else than a wrapper, or a link to one of
// iptables' programs, is replaced only by force, and a directory never; if there is one, nothing at all is changed.
func (w Wrapper) Install(d string, o Options) (changed []string, err error) {
	if w.Secure {
		return nil, ErrSecure
	}
	if w.inRoot {
		for _, name := range append([]string{wrapperName}, names[:]...) {
			if err := inside(in(d, name)); err != nil {
				return nil, err
			}
		}
	}
	if info, err := os.Stat(d); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &os.PathError{Op: "install", Path: d, Err: unix.ENOTDIR}
	}
	defer patientLock(d)()

	file := wrapperName
	if own, err := w.ownPath(); err == nil && sameFile(dir(own), d) && !slices.Contains(names[:], base(own)) {
		file = base(own)
	}
	wrapper := in(d, file)
	copied, err := w.planCopy(d, wrapper, o.Force)
	if err != nil {
		return nil, err
	}
	var kept []group
	if o.Alternatives {
		if kept, err = w.groups(d); err != nil {
			return nil, err
		}
	}
	links, register, err := w.planNames(d, file, kept, o.Force)
	if err != nil {
		return nil, err
	}
	if err := mayMake(links); err != nil {
		return nil, err
	}

	if copied != nil {
		if err := writeWrapper(wrapper, copied); err != nil {
			return nil, err
		}
		changed = append(changed, "copied the wrapper to "+wrapper)
	}
	for _, path := range links {
		target, err := from(path, wrapper)
		if err == nil {
			err = point(path, target)
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, path+" -> "+target)
	}
	for _, g := range register {
		program := in(dir(g.members[0].link), file)
		if err := g.register(program); err != nil {
			return changed, err
		}
		for _, m := range g.members {
			changed = append(changed, m.link+" -> "+program+", by "+g.tool)
		}
	}
	return changed, nil
}

// planNames returns the links to make and the groups to register, so that all six names lead to the wrapper.
func (w Wrapper) planNames(d, file string, kept []group, force bool) (links []string, register []group, err error) {
	var refused error
	for _, name := range names {
		path := in(d, name)
		old, _ := os.Readlink(path)
		i := slices.IndexFunc(kept, func(g group) bool { return g.has(name) })
		switch {
		case i < 0 && old == file,
			i >= 0 && w.inRoot && (old == file || leadsTo(path, in(d, file))),
			i >= 0 && !w.inRoot && kept[i].chosen(in(dir(kept[i].members[0].link), file)):
			continue
		}
		// A link that the tool made may lead nowhere: that is what it is there to repair.
		_, statErr := os.Stat(path)
		if err := mayReplace(path, force || i >= 0 && isAlternative(path) && errors.Is(statErr, fs.ErrNotExist)); err != nil {
			refused = errors.Join(refused, err)
		}
		switch c, err := follow(path); {
		case i >= 0 && w.inRoot && err == nil && c.link != "":
			links = append(links, c.link)
		case i < 0 || w.inRoot || !isLink(path):
			links = append(links, path) // in a group too: the tools replace no file, but they do replace links
		}
		if i >= 0 && !w.inRoot && !slices.ContainsFunc(register, func(g group) bool { return g.has(name) }) {
			register = append(register, kept[i])
		}
	}
	return links, register, refused
}

// Others returns which of the six names in the standard directories lead to a program of iptables all the same. In an
// image with /sbin and /usr/sbin apart, for example, a full path may go past the wrapper.
func (w Wrapper) Others(d string) (paths []string) {
	for _, other := range standardDirs {
		if sameFile(other, d) {
			continue
		}
		for _, name := range names {
			if c, err := follow(in(other, name)); err == nil && c.backend() && !isWrapper(c.end) {
				paths = append(paths, in(other, name))
			}
		}
	}
	return paths
}

// planCopy returns what to write to the path, nil if it is there already. A link to it is not enough: it could lead to
// one of the six names, which will lead here.
func (w Wrapper) planCopy(d, path string, force bool) ([]byte, error) {
	if w.file != (fileID{}) && w.isAt(path) && !isLink(path) {
		return nil, nil
	}
	content, err := w.content()
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		if old, err := readRegular(path, len(content)); err == nil && bytes.Equal(old, content) {
			return nil, nil
		}
	}
	if w.inRoot {
		if there, err := w.forMachine(d, path, content); there || err != nil {
			return nil, err
		}
	}
	return content, mayReplace(path, force)
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// content returns the file that runs, wherever it is now.
func (w Wrapper) content() ([]byte, error) {
	if w.inRoot {
		return w.binary, nil
	}
	if content, err := os.ReadFile("/proc/self/exe"); err == nil {
		return content, nil
	}
	own, err := w.ownPath()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(own)
}

// mayReplace says whether what is at a path can go.
func mayReplace(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return &os.PathError{Op: "replace", Path: path, Err: unix.EISDIR}
	case force || isWrapper(path):
		return nil
	}
	c, err := follow(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %q leads nowhere, and may be somebody's: %w", ErrRefused, path, err)
	case c.backend(), isWrapper(c.end): // another process may have moved it meanwhile
		return nil
	case c.end == path:
		return fmt.Errorf("%w: %q is a file that is not the wrapper", ErrRefused, path)
	default:
		return fmt.Errorf("%w: %q leads to %q, which is neither a wrapper nor a program of iptables", ErrRefused, path, c.end)
	}
}

// writeWrapper puts the wrapper's file in its place, in one step.
func writeWrapper(path string, content []byte) error {
	temporary := temporaryName(path)
	_ = unix.Unlink(temporary) // of an earlier try that was killed
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o755), f.Close()) // whatever the umask
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = unix.Unlink(temporary)
	}
	return err
}
