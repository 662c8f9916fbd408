// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package install makes the six commands in a directory run the wrapper: it puts the wrapper's file there, lays the
// switch, and makes the six names lead to it.
package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

var (
	// ErrNoIptables means that there is no program for either backend. Nothing was changed.
	ErrNoIptables = errors.New("iptables is not installed")
	// ErrOverwritten means that the wrapper's file has the place of iptables' own program. Nothing was changed.
	ErrOverwritten = errors.New("it is the wrapper, in the place of iptables' own program")
	// ErrProgram means that one of the six names is a program of iptables, or that the path of one leads through it.
	// Nothing was changed.
	ErrProgram = errors.New("iptables' own program has this name, or is found through it")
	// ErrBypassed means that a name does not lead to the switch at the end of the installation.
	ErrBypassed = errors.New("it does not lead to the switch")
)

// Done is what an installation reports.
type Done struct {
	Lines   []string // the changes in order, or one line if nothing was changed
	Remarks []string // what the user should know; no failures
}

// did adds a change.
func (d *Done) did(format string, args ...any) {
	d.Lines = append(d.Lines, fmt.Sprintf(format, args...))
}

func (d *Done) remark(format string, args ...any) {
	d.Remarks = append(d.Remarks, fmt.Sprintf(format, args...))
}

// Install makes the six commands in a directory run this wrapper, which was called as argv0. directory "" is that of
// the running file if one of the commands is there, otherwise the first one that has iptables. Before it changes
// anything, Install refuses a directory that other users can write and, unless forced, names that belong neither to
// iptables nor to the wrapper.
//
// Whatever step fails, each of the six names leads to the same program as before, or to the wrapper. An error may come
// after changes: Done is valid then, too. The errors wrap the variables of this package, link.ErrForeign and
// file.ErrExposed.
func Install(argv0, directory string, force bool) (done Done, err error) {
	running, content, err := runningFile(argv0)
	if err != nil {
		return done, err
	}
	if directory == "" {
		directory = defaultDirectory(filepath.Dir(running))
	}
	if directory == "" {
		return done, whyNone()
	}
	directory, err = absolute(directory)
	if err != nil {
		return done, err
	}
	d, err := link.Open(directory)
	if err != nil {
		return done, err
	}
	defer d.Close()
	_ = d.Lock(link.Patience) // without the lock, it continues: see link.Patience
	w := work{Dir: d, content: content, done: &done}
	err = w.refuse(force)
	if err == nil {
		err = w.change()
	}
	if err == nil {
		err = w.verify()
	}
	if err != nil {
		return done, err
	}
	if len(done.Lines) == 0 {
		done.did("nothing to do: the iptables commands in %q run the wrapper", d.Path())
	}
	w.remarks()
	return done, nil
}

// defaultDirectory returns the directory of the running file if one of the six names is there, otherwise the first one
// that has iptables, "" if none has.
func defaultDirectory(running string) string {
	hasName := func(name string) bool {
		_, err := os.Lstat(running + "/" + name)
		return err == nil
	}
	if slices.ContainsFunc(exec.Names(), hasName) {
		return running
	}
	first := ""
	rank := len(iptables.Dirs())
	for _, b := range detect.Backends() {
		program, _ := exec.Find(b, "iptables")
		i := slices.Index(iptables.Dirs(), filepath.Dir(program.Path))
		if i >= 0 && i < rank {
			first, rank = iptables.Dirs()[i], i
		}
	}
	return first
}

// work is one installation.
type work struct {
	*link.Dir

	content []byte // of the running file
	done    *Done
}

// refuse returns an error if the installation must not start.
func (w work) refuse(force bool) error {
	err := w.CheckSafe()
	if err == nil {
		err = w.checkPrograms()
	}
	if err != nil || force {
		return err
	}
	_, err = w.Stored()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, n := range link.Look(w.Dir) {
		if w.isForeign(n) {
			return fmt.Errorf("%q: %w", w.Join(n.Name), link.ErrForeign)
		}
	}
	return nil
}

// checkPrograms returns an error if there is no program that the commands could run, or if the wrapper is in the place
// of one.
func (w work) checkPrograms() error {
	if w.program(detect.NFT) == "" && w.program(detect.Legacy) == "" {
		return whyNone(w.Path())
	}
	path := w.overwritten()
	if path != "" {
		return fmt.Errorf("%q: %w", path, ErrOverwritten)
	}
	for _, b := range detect.Backends() {
		for hop := range link.Hops(w.program(b)) {
			if slices.Contains(exec.Names(), filepath.Base(hop)) && w.IsAt(filepath.Dir(hop)) {
				return fmt.Errorf("%q: %w", hop, ErrProgram)
			}
		}
	}
	return nil
}

// whyNone returns why iptables was found for neither backend: it is not installed, or cannot be used where it is.
func whyNone(dirs ...string) error {
	for _, b := range detect.Backends() {
		_, err := exec.Find(b, "iptables", dirs...)
		if !errors.Is(err, exec.ErrMissing) {
			return err
		}
	}
	return fmt.Errorf("%w in %s", ErrNoIptables, strings.Join(append(dirs, iptables.Dirs()...), ", "))
}

// program returns the path of a backend's iptables, "" if there is none.
func (w work) program(b detect.Backend) string {
	program, err := exec.Find(b, "iptables", w.Path())
	if err != nil {
		return ""
	}
	return program.Path
}

// isForeign reports whether a name belongs neither to iptables nor to the wrapper. A broken link may be replaced.
func (w work) isForeign(n link.Name) bool {
	switch {
	case n.Missing, n.Wrapper, n.Backend != "", n.Switch != "", errors.Is(n.Err, os.ErrNotExist):
		return false
	}
	return !w.isCopy(n.Name)
}

// isCopy reports whether a name is a hard link to a multi-call program, or a copy of the wrapper.
func (w work) isCopy(name string) bool {
	st, err := w.Stat(name)
	if err != nil {
		return false
	}
	for _, b := range detect.Backends() {
		if file.IsAt(w.program(b), st) {
			return true
		}
	}
	content, err := os.ReadFile(w.Join(name))
	return err == nil && string(content) == string(w.content)
}

// change makes the changes. After each of them, each name leads to the same program as before, or to the wrapper.
func (w work) change() error {
	err := w.writeWrapper()
	if err != nil {
		return err
	}
	err = w.pointSwitch()
	if err != nil {
		return err
	}
	groups := w.groups()
	err = w.lay(func(name string) bool { return len(groups) > 0 && w.managed(name) })
	if err != nil {
		return err
	}
	for _, g := range groups {
		w.register(g)
	}
	return w.lay(func(string) bool { return false })
}

// pointSwitch points the switch at the wrapper beside it.
func (w work) pointSwitch() error {
	content, err := w.Readlink(link.Switch)
	if err == nil && content == link.Wrapper {
		return nil
	}
	err = w.Replace(link.Wrapper, link.Switch)
	if err == nil {
		w.done.did("%s -> %s", w.Join(link.Switch), link.Wrapper)
	}
	return err
}

// lay links the names that do not lead to the switch to it, except some.
func (w work) lay(except func(name string) bool) error {
	var names []string
	for _, n := range link.Look(w.Dir) {
		if !w.LeadsToSwitch(n) && !except(n.Name) {
			names = append(names, n.Name)
		}
	}
	err := w.Lay(names)
	if err == nil && len(names) > 0 {
		w.done.did("%s -> %s", w.Join(strings.Join(names, ", ")), link.Switch)
	}
	return err
}

// verify returns an error if one of the names does not lead to the switch.
func (w work) verify() error {
	for _, n := range link.Look(w.Dir) {
		switch {
		case n.Err != nil:
			return fmt.Errorf("%q: %w: %w", w.Join(n.Name), ErrBypassed, n.Err)
		case !w.LeadsToSwitch(n):
			return fmt.Errorf("%q: %w, but to %q", w.Join(n.Name), ErrBypassed, n.ResolvesTo)
		}
	}
	return nil
}
