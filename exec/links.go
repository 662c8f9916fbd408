// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A name is moved by making a temporary link beside it and renaming it over the old one. At every instant, and after a
// kill at any instant, each name leads to the wrapper or to a program. Not promised: that a move survives a power
// failure, and that nobody else changes a name between our look at it and the rename.

var (
	// ErrBusy: another process is moving the names.
	ErrBusy = errors.New("another process is moving them")
	// ErrSecure: whoever called this process must not move anything by its rights.
	ErrSecure = errors.New("the caller has fewer rights than this process")
)

// move is a name that is to lead to a target.
type move struct {
	link    string // what is replaced
	target  string // a path, or a file name in the directory of link
	program string // what target leads to, "" if that is the wrapper
	back    string // what link contains; the wrapper's own name if link is the wrapper's file
	save    bool   // link is the wrapper's own file, not a link: keep the file under its other name
	fresh   bool   // link is not there yet
}

// Kept are the names that Keep moved.
type Kept []move

// Undo points the names back at the wrapper. It is for a program that turned out not to run: the next call shall say so
// again, and not run it without a word.
func (k Kept) Undo() {
	for _, m := range k {
		_ = point(m.link, m.back) // as good as before is all that can be tried
	}
}

// Keep points the names beside the called one that lead to this wrapper at their programs in mode, if that is the same
// file as the one that is about to run: of another it is not known whether it can. Names that lead elsewhere, or nowhere,
// stay as they are. It gives up at the first error, and where another process is at it: what was not moved is as good as
// before.
func (w Wrapper) Keep(mode, running string) (Kept, error) {
	if w.Secure {
		return nil, ErrSecure
	}
	d := dir(w.called)
	unlock, err := lock(d)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var moves []move
	for _, name := range names {
		c, err := follow(in(d, name))
		if err != nil || !w.runs(c.end, c.stat) {
			continue
		}
		m, err := w.toProgram(c, mode, name)
		switch {
		case errors.Is(err, ErrMissing):
			continue // an image may have ip6tables for one mode only: calling that name will say so
		case err != nil:
			return nil, err
		case m.program != running && !sameFile(m.program, running):
			continue
		case len(moves) == 0 && readOnly(dir(m.link)):
			return nil, &os.PathError{Op: "replace", Path: m.link, Err: unix.EROFS}
		}
		moves = append(moves, m)
	}
	return apply(moves)
}

// toProgram plans to point a name at its program. The program is looked for from where the link is, not from where the
// caller came: a link in a system directory must not lead into a directory that only this call has named.
func (w Wrapper) toProgram(c chain, mode, name string) (move, error) {
	m := move{link: c.link, back: c.content}
	if c.link == "" {
		m.link, m.back, m.save = c.end, wrapperName, true
	}
	var err error
	if m.program, err = w.find(mode, name, dir(m.link)); err != nil {
		return move{}, err
	}
	m.target, err = from(m.link, m.program)
	return m, err
}

// from returns what a link must contain to lead to a file: its name alone if they are in the same directory.
func from(link, file string) (string, error) {
	if dir(link) == dir(file) || sameFile(dir(link), dir(file)) {
		return base(file), nil
	}
	return absolute(file)
}

// readOnly spares a wrapper on a read-only root, where every call is a first one, what would be in vain.
func readOnly(dir string) bool { return unix.Access(dir, unix.W_OK) == unix.EROFS }

func isDirectory(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR
}

func sameFile(a, b string) bool {
	var statA, statB unix.Stat_t
	return unix.Stat(a, &statA) == nil && unix.Stat(b, &statB) == nil && id(statA) == id(statB)
}

// apply makes the moves and returns those that were made. Links go first, because they may lead to files.
func apply(moves []move) (made Kept, err error) {
	if err := noLoop(moves); err != nil {
		return nil, err
	}
	if err := freeWrapperName(moves); err != nil {
		return nil, err
	}
	for _, save := range []bool{false, true} {
		for _, m := range moves {
			if m.save != save {
				continue
			}
			if save {
				err = saveWrapper(m.link)
			}
			if err == nil {
				err = point(m.link, m.target)
			}
			if err != nil {
				return made, err
			}
			made = append(made, m)
		}
	}
	return made, nil
}

// noLoop fails if a program is reached through a link that is about to lead to it.
func noLoop(moves []move) error {
	looked := ""
	for _, m := range moves {
		if m.program == looked {
			continue // as good as always it is the same one for all
		}
		looked = m.program
		c, err := follow(m.program)
		if err != nil {
			return err
		}
		if len(c.way) > 1 && slices.ContainsFunc(moves, func(m move) bool { return c.through(m.link) }) {
			return fmt.Errorf("%q leads through one of the names: %w", m.program, ErrRecursion)
		}
	}
	return nil
}

// freeWrapperName points the wrapper's own name at its file, where it leads there through a link that will be moved.
func freeWrapperName(moves []move) error {
	looked := ""
	for _, m := range moves {
		name := in(dir(m.link), wrapperName)
		if name == looked {
			continue // as good as always all names are in one directory
		}
		looked = name
		c, err := follow(name)
		moved := func(m move) bool { return !m.save && c.through(m.link) }
		if err != nil || c.link == "" || !slices.ContainsFunc(moves, moved) || !isWrapper(c.end) {
			continue
		}
		target, err := from(name, c.end)
		if err == nil {
			err = point(name, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// saveWrapper gives the wrapper's file its own name beside the one that will be moved, if nothing there is a wrapper in
// its own right. A link that leads back to the file is none.
func saveWrapper(file string) error {
	saved := in(dir(file), wrapperName)
	err := unix.Link(file, saved)
	if errors.Is(err, unix.EEXIST) {
		c, broken := follow(saved)
		switch {
		case broken == nil && c.link != "" && sameFile(c.end, file):
			temporary := temporaryName(saved)
			_ = unix.Unlink(temporary) // of an earlier try that was killed
			if err = unix.Link(file, temporary); err == nil {
				err = unix.Rename(temporary, saved)
			}
		case broken == nil && (sameFile(c.end, file) || isWrapper(c.end)):
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("save the wrapper: %w", &os.LinkError{Op: "link", Old: file, New: saved, Err: err})
	}
	return nil
}

// maySave says whether saveWrapper can do its work, before the first link is moved.
func maySave(file string) error {
	saved := in(dir(file), wrapperName)
	c, err := follow(saved)
	if c.way == nil && isNotThere(err) || err == nil && isWrapper(c.end) {
		return nil
	}
	return fmt.Errorf("save the wrapper: %w", &os.LinkError{Op: "link", Old: file, New: saved, Err: unix.EEXIST})
}

// temporaryName is where something is made before it is renamed. It is always the same, so that at most one is left
// behind, and found by the next.
func temporaryName(path string) string { return in(dir(path), "."+base(path)+"."+wrapperName) }

// mayMake says whether something is in the way of making links anew, before the first is made: what stands under a
// temporary name and is nothing that was left behind.
func mayMake(links []string) error {
	for _, link := range links {
		var stat unix.Stat_t
		temporary := temporaryName(link)
		if unix.Lstat(temporary, &stat) == nil && stat.Mode&unix.S_IFMT != unix.S_IFLNK {
			return &os.PathError{Op: "replace", Path: temporary, Err: unix.EEXIST}
		}
	}
	return nil
}

// point makes link lead to target, in one step. A temporary link that a killed process left is used up.
func point(link, target string) error {
	temporary := temporaryName(link)
	err := unix.Symlink(target, temporary)
	if errors.Is(err, unix.EEXIST) {
		var stale unix.Stat_t
		if unix.Lstat(temporary, &stale) == nil && stale.Mode&unix.S_IFMT == unix.S_IFLNK {
			_ = unix.Unlink(temporary) // if it is still there, the next line says why
		}
		err = unix.Symlink(target, temporary)
	}
	if err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: temporary, Err: err}
	}
	if err := unix.Rename(temporary, link); err != nil {
		_ = unix.Unlink(temporary)
		return &os.LinkError{Op: "rename", Old: temporary, New: link, Err: err}
	}
	return nil
}

// lock keeps other wrappers from moving the names in a directory at the same time, so that a kill leaves at most one
// temporary link. Moving without it is safe too: where it cannot be had at all, nobody holds it.
func lock(dir string) (unlock func(), err error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}, nil
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		unix.Close(fd)
		return nil, ErrBusy
	}
	return func() { unix.Close(fd) }, nil
}

// patientLock waits for the lock as long as a wrapper could hold it, and goes on without it after that: anybody who can
// read the directory can hold it for ever.
func patientLock(dir string) (unlock func()) {
	for range 50 {
		if unlock, err := lock(dir); err == nil {
			return unlock
		}
		time.Sleep(20 * time.Millisecond)
	}
	return func() {}
}

// Select points the six names in a directory at their programs in mode, whether they lead to a wrapper, to a program
// of the other mode, or are not there yet. If one of them leads elsewhere, it moves none.
func (w Wrapper) Select(d, mode string) (Kept, error) {
	return w.moveAll(d, func(c chain, name string) (move, error) {
		if c.way == nil {
			c.link = in(d, name)
		}
		m, err := w.toProgram(c, mode, name)
		if err == nil && isWrapper(m.program) {
			err = fmt.Errorf("%q: %w", m.program, ErrRecursion)
		}
		m.fresh = c.way == nil
		return m, err
	})
}

// Reset makes the six names in a directory lead to a wrapper again: those that do stay as they are, the others are
// pointed at the wrapper in that directory, or at this one if there is none. If one of them leads elsewhere than to a
// wrapper or a program, it moves none.
func (w Wrapper) Reset(d string) (Kept, error) {
	wrapper := in(d, wrapperName)
	if !isWrapper(wrapper) {
		var err error
		if wrapper, err = w.ownPath(); err != nil {
			return nil, err
		}
	}
	return w.moveAll(d, func(c chain, name string) (move, error) {
		if c.way == nil {
			return move{}, fmt.Errorf("%q is not there: %w", in(d, name), unix.ENOENT)
		}
		if isWrapper(c.end) {
			return move{}, nil
		}
		target, err := from(c.link, wrapper)
		return move{link: c.link, target: target, back: c.content}, err
	})
}

// moveAll plans a move for every name, and makes those that change something if all can be made. The chain of a name that
// is not there has no way.
func (w Wrapper) moveAll(d string, plan func(chain, string) (move, error)) (Kept, error) {
	if w.Secure {
		return nil, ErrSecure
	}
	defer patientLock(d)()
	var moves []move
	for _, name := range names {
		path := in(d, name)
		c, err := follow(path)
		switch {
		case c.way == nil && errors.Is(err, unix.ENOENT) && isDirectory(d):
		case err != nil:
			return nil, fmt.Errorf("%q leads nowhere: %w", path, err)
		case c.link == "" && !isWrapper(c.end):
			return nil, fmt.Errorf("%q is neither a wrapper nor a link to a program of iptables", path)
		case !c.backend() && !isWrapper(c.end):
			return nil, fmt.Errorf("%q leads to %q, which is neither a wrapper nor a program of iptables", path, c.end)
		}
		m, err := plan(c, name)
		if err != nil {
			return nil, err
		}
		if m.link != "" && (m.save || m.fresh || m.back != m.target) {
			moves = append(moves, m)
		}
	}
	var links []string
	for _, m := range moves {
		links = append(links, m.link)
		if m.save {
			if err := maySave(m.link); err != nil {
				return nil, err
			}
		}
	}
	if err := mayMake(links); err != nil {
		return nil, err
	}
	return apply(moves)
}
