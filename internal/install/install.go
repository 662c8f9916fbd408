// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package install makes the six commands in a directory run the wrapper: it puts the wrapper's file there, lays the
// switch, and makes the six names lead through it.
package install

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

var (
	// ErrNoIptables means that there is no program for either backend. Nothing was changed.
	ErrNoIptables = errors.New("iptables is not installed")
	// ErrOverwritten means that the wrapper is in the place of iptables' own program. Nothing was changed.
	ErrOverwritten = errors.New("it is the wrapper, in the place of iptables' own program")
	// ErrExposed means that other users can change the directory. Nothing was changed.
	ErrExposed = errors.New("other users could replace the wrapper there")
	// ErrBypassed means that a name does not lead through the switch at the end.
	ErrBypassed = errors.New("it does not lead through the switch")
)

// Done is what an installation reports.
type Done struct {
	Lines   []string // what was changed, in order, or one line that says that nothing was
	Remarks []string // what the user should know, no failure
}

// did notes that something was changed.
func (d *Done) did(format string, args ...any) {
	d.Lines = append(d.Lines, fmt.Sprintf(format, args...))
}

func (d *Done) remark(format string, args ...any) {
	d.Remarks = append(d.Remarks, fmt.Sprintf(format, args...))
}

// Install makes the six commands in a directory run this wrapper; "" is layout.DefaultDirectory. A switch that is there
// already keeps its content. Unless forced, Install refuses names that belong neither to iptables nor to the wrapper,
// and a directory that other users can change, before it changes anything.
//
// Whatever step fails, each of the six names leads to what it led to, or to the wrapper. An error may come after
// changes: Done is valid then, too. The errors are the variables of this package, and layout.ErrForeign.
func Install(directory string, force bool) (Done, error) {
	if directory == "" {
		directory = layout.DefaultDirectory()
	}
	if directory == "" {
		return Done{}, fmt.Errorf("%w in %s", ErrNoIptables, strings.Join(iptables.Dirs(), ", "))
	}
	d, err := layout.Open(directory)
	if err != nil {
		return Done{}, err
	}
	defer d.Close()
	return install(d, force)
}

func install(d *dir.Dir, force bool) (done Done, err error) {
	err = d.Lock(layout.Patience)
	if err != nil {
		return done, err
	}
	w := work{Dir: d, done: &done}
	w.content, err = runningFile()
	if err != nil {
		return done, err
	}
	err = w.refuse(force)
	if err != nil {
		return done, err
	}
	err = w.change()
	if err == nil {
		err = w.verify()
	}
	if err != nil {
		return done, err
	}
	if len(done.Lines) == 0 {
		done.did("nothing to do: the iptables commands in %q run the wrapper", d.Path())
	}
	d.Unlock() // what follows starts programs, and changes nothing
	w.remarks()
	return done, w.lackCapabilities()
}

// work is one installation.
type work struct {
	*dir.Dir

	content []byte // of the running file
	done    *Done
}

// refuse returns an error if nothing must be changed.
func (w work) refuse(force bool) error {
	if w.program(evidence.NFT) == "" && w.program(evidence.Legacy) == "" {
		return fmt.Errorf("%w in %q, nor in %s", ErrNoIptables, w.Path(), strings.Join(iptables.Dirs(), ", "))
	}
	if path := w.overwritten(); path != "" {
		return fmt.Errorf("%q: %w", path, ErrOverwritten)
	}
	if force {
		return nil
	}
	st, err := w.Stat()
	if err != nil {
		return err
	}
	if exposed(st) {
		return fmt.Errorf("%q, of user %d, has the mode %#o: %w", w.Path(), st.Uid, st.Mode&0o7777, ErrExposed)
	}
	_, err = layout.Content(w.Dir)
	if err != nil {
		return err
	}
	for _, n := range w.look() {
		if w.isForeign(n) {
			return fmt.Errorf("%q: %w or iptables' own", w.Join(n.Name), layout.ErrForeign)
		}
	}
	return nil
}

// program returns the path of a backend's iptables, "" if there is none.
func (w work) program(mode evidence.Mode) string {
	path, err := exec.Find(mode, "iptables", w.Path())
	if err != nil {
		return ""
	}
	return path
}

// exposed reports whether a user other than root and the caller can change a file or directory.
func exposed(st unix.Stat_t) bool {
	const others = 0o022
	return st.Uid != 0 && int(st.Uid) != unix.Geteuid() || st.Mode&others != 0
}

// look returns where the six names lead.
func (w work) look() []layout.Name {
	running, _ := dir.IDAt(layout.RunningPath()) // without it, Look goes by the name iptables-wrapper
	return layout.Look(w.Dir, running)
}

// isForeign reports whether a name is neither iptables' nor the wrapper's. A broken link belongs to nobody.
func (w work) isForeign(n layout.Name) bool {
	switch {
	case n.Missing, n.Wrapper, n.Mode != "", n.Switch != "", errors.Is(n.Err, os.ErrNotExist):
		return false
	}
	return !w.isCopy(n.Name)
}

// isCopy reports whether a name is a hard link to a multi-call program, or a copy of the wrapper.
func (w work) isCopy(name string) bool {
	id, err := w.ID(name)
	if err != nil {
		return false
	}
	for _, mode := range evidence.Modes() {
		if id.IsAt(w.program(mode)) {
			return true
		}
	}
	content, _, err := w.Read(name)
	return err == nil && string(content) == string(w.content)
}

// change makes the changes. After each of them, each name leads to what it led to, or to the wrapper.
func (w work) change() error {
	err := w.writeWrapper()
	if err != nil {
		return err
	}
	err = w.laySwitch()
	if err != nil {
		return err
	}
	groups := w.groups()
	err = w.link(func(name string) bool { return len(groups) > 0 && w.managed(name) })
	if err != nil {
		return err
	}
	for _, g := range groups {
		w.register(g)
	}
	return w.link(func(string) bool { return false })
}

// laySwitch makes the switch, or makes it lead to the wrapper again if it leads nowhere, or is foreign and forced.
func (w work) laySwitch() error {
	_, err := layout.Content(w.Dir)
	if err == nil {
		_, err = w.ID(layout.Switch)
	}
	if err == nil {
		return nil
	}
	err = w.Replace(layout.Wrapper, layout.Switch)
	if err == nil {
		w.done.did("%s -> %s", w.Join(layout.Switch), layout.Wrapper)
	}
	return err
}

// link makes the names that do not lead through the switch links to it, except some.
func (w work) link(except func(name string) bool) error {
	var names []string
	for _, n := range w.look() {
		if !w.leads(n) && !except(n.Name) {
			names = append(names, n.Name)
		}
	}
	err := layout.Lay(w.Dir, layout.Wrapper, names)
	if err == nil && len(names) > 0 {
		w.done.did("%s -> %s", w.Join(strings.Join(names, ", ")), layout.Switch)
	}
	return err
}

// leads reports whether a name leads through the switch of this directory.
func (w work) leads(n layout.Name) bool { return n.Switch != "" && w.IsAt(n.Switch) }

// verify looks once more where the names lead.
func (w work) verify() error {
	for _, n := range w.look() {
		switch {
		case n.Err != nil:
			return fmt.Errorf("%q: %w: %w", w.Join(n.Name), ErrBypassed, n.Err)
		case !w.leads(n):
			return fmt.Errorf("%q: %w, but to %q", w.Join(n.Name), ErrBypassed, n.ResolvesTo)
		}
	}
	return nil
}
