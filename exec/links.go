// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A name is moved by making a temporary link beside it and renaming it over the old one. At every instant, and after a
// kill at any instant, each name leads to the wrapper or to a program. Not promised: that a move survives a power
// failure, and that nobody else changes a name between our look at it and the rename.

// ErrBusy: another process is moving the names.
var ErrBusy = errors.New("another process is moving them")

// move is a name that is to lead to a target.
type move struct {
	link   string // what is replaced
	target string // a path, or a file name in the directory of link
	save   bool   // link is the wrapper's own file, not a link: keep the file under its other name
}

// Keep points every name beside the called one that leads to this wrapper at its program in mode, and returns how many
// it moved. Names that lead elsewhere, or nowhere, stay as they are. It gives up at the first error, and where another
// process is at it: what was not moved is as good as before.
func (w Wrapper) Keep(mode string) (int, error) {
	if w.Secure {
		return 0, errors.New("the caller has fewer rights than this process")
	}
	d := dir(w.called)
	unlock, err := lock(d, unix.LOCK_NB)
	if err != nil {
		return 0, err
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
			return 0, err
		}
		moves = append(moves, m)
	}
	return apply(moves)
}

// toProgram plans to point a name at its program. The program is looked for from where the link is, not from where the
// caller came: a link in a system directory must not lead into a directory that only this call has named.
func (w Wrapper) toProgram(c chain, mode, name string) (move, error) {
	m := move{link: c.link}
	if c.link == "" {
		m.link, m.save = c.end, true
	}
	program, err := w.find(mode, name, dir(m.link))
	if err != nil {
		return move{}, err
	}
	m.target, err = from(m.link, program)
	return m, err
}

// from returns what a link must contain to lead to a file: its name alone if they are in the same directory.
func from(link, file string) (string, error) {
	if dir(link) == dir(file) {
		return base(file), nil
	}
	return absolute(file)
}

// apply makes the moves and returns how many of them were made. Links go first, because they may lead to files.
func apply(moves []move) (int, error) {
	made := 0
	for _, save := range []bool{false, true} {
		for _, m := range moves {
			if m.save != save {
				continue
			}
			if save {
				if err := saveWrapper(m.link); err != nil {
					return made, err
				}
			}
			if err := point(m.link, m.target); err != nil {
				return made, err
			}
			made++
		}
	}
	return made, nil
}

// saveWrapper gives the wrapper's file its own name beside the one that will be moved.
func saveWrapper(file string) error {
	saved := in(dir(file), wrapperName)
	err := unix.Link(file, saved)
	if err == nil || errors.Is(err, unix.EEXIST) && isWrapper(saved) {
		return nil
	}
	return fmt.Errorf("save the wrapper: %w", &os.LinkError{Op: "link", Old: file, New: saved, Err: err})
}

// point makes link lead to target, in one step. A temporary link that a killed process left is used up.
func point(link, target string) error {
	temporary := in(dir(link), "."+base(link)+"."+wrapperName)
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
// temporary link. Moving without it is safe too, so where it cannot be had, nobody holds it.
func lock(dir string, how int) (unlock func(), err error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}, nil
	}
	if err := unix.Flock(fd, unix.LOCK_EX|how); errors.Is(err, unix.EWOULDBLOCK) {
		unix.Close(fd)
		return nil, ErrBusy
	}
	return func() { unix.Close(fd) }, nil
}

// Select points the six names in a directory at their programs in mode, whether they lead to a wrapper or to a program
// of the other mode, and returns how many it moved. If one of them leads elsewhere, it moves none.
func (w Wrapper) Select(d, mode string) (int, error) {
	return w.moveAll(d, func(c chain, name string) (move, error) {
		return w.toProgram(c, mode, name)
	})
}

// Reset makes the six names in a directory lead to this wrapper again, and returns how many it moved. If one of them
// leads elsewhere than to a wrapper or a program, it moves none.
func (w Wrapper) Reset(d string) (int, error) {
	own, err := w.ownPath()
	if err != nil {
		return 0, err
	}
	return w.moveAll(d, func(c chain, _ string) (move, error) {
		if c.link == "" {
			return move{}, nil // the wrapper's own file
		}
		target, err := from(c.link, own)
		return move{link: c.link, target: target}, err
	})
}

// moveAll plans a move for every name, and makes those that change something if all can be made.
func (w Wrapper) moveAll(d string, plan func(chain, string) (move, error)) (int, error) {
	unlock, err := lock(d, 0)
	if err != nil {
		return 0, err
	}
	defer unlock()
	var moves []move
	for _, name := range names {
		path := in(d, name)
		c, err := follow(path)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q leads nowhere: %w", path, err)
		case c.link == "" && !isWrapper(c.end), !isBackend(base(c.end)) && !isWrapper(c.end):
			return 0, fmt.Errorf("%q leads to %q, which is neither a wrapper nor a program of iptables", path, c.end)
		}
		m, err := plan(c, name)
		if err != nil {
			return 0, err
		}
		if old, err := os.Readlink(m.link); m.link != "" && (err != nil || old != m.target) {
			moves = append(moves, m)
		}
	}
	return apply(moves)
}
