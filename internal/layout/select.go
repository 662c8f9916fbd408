// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

var (
	// ErrNotWrapped means that the directory has no commands, or some that do not lead to the wrapper.
	ErrNotWrapped = errors.New("the commands do not run the wrapper")
	// ErrForeign means that the name of the switch is taken.
	ErrForeign = errors.New("it is not the wrapper's")
	// ErrNowhere means that an answer can be stored neither in the switch nor in the memory.
	ErrNowhere = errors.New("it can be stored neither in the switch nor in the container's memory")
)

// Directory is what select and reset change: the switch in a directory, and the container's memory.
type Directory struct {
	Dir     *dir.Dir
	Memory  memory.Memory // the zero Memory where it must not be changed
	Running dir.ID        // the running file
	Wrapper string        // its path
	Named   bool          // an administrator named the directory, so names may be laid in an empty one
}

// tries is how often select and reset try to get the lock: for 2 s.
const tries = 2000

// Select makes the six names run a backend. A guess is only remembered, and the switch stays at the wrapper.
//
// What must be writable is checked before anything is changed. M is written before S, so that a process that is killed
// in between leaves a memory that the next call carries out.
func (x Directory) Select(d evidence.Decision, guess bool) error {
	err := x.Dir.Lock(tries)
	if err != nil {
		return err
	}
	names, err := x.unlaid()
	if err != nil {
		return err
	}
	program, err := x.target(d, guess, len(names) > 0)
	if err != nil {
		return err
	}
	err = x.remember(d, guess)
	if err != nil && program == "" {
		return err
	}
	if len(names) > 0 {
		err = x.lay(names)
	}
	if err == nil && program != "" {
		err = x.Dir.Replace(program, Switch)
	}
	return err
}

// unlaid returns the names that do not lead through the switch yet, and may be made to: those of the running file, or
// all six in an empty directory that somebody named.
func (x Directory) unlaid() ([]string, error) {
	now, err := x.Dir.Readlink(Switch)
	if err == nil && !IsOurs(now) || err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("%q: %w", x.Dir.Join(Switch), ErrForeign)
	}
	var names []string
	missing := 0
	for _, n := range Look(x.Dir, x.Running) {
		switch {
		case n.Missing:
			missing++
		case n.Switch != "":
		case n.Wrapper:
			names = append(names, n.Name)
		default:
			return nil, fmt.Errorf("%q: %w", x.Dir.Join(n.Name), ErrNotWrapped)
		}
	}
	if missing < len(exec.Names()) {
		return names, nil
	}
	if !x.Named {
		return nil, fmt.Errorf("no iptables in %q: %w", x.Dir.Path(), ErrNotWrapped)
	}
	return exec.Names(), nil
}

// target decides how an answer is stored: it returns what the switch is to contain, or "" if the memory does it.
func (x Directory) target(d evidence.Decision, guess, lays bool) (string, error) {
	denied := x.Dir.Writable()
	if lays && denied != nil {
		return "", denied
	}
	remembers := x.Memory.Dir != nil && x.Memory.Dir.Writable() == nil
	if guess {
		if remembers || lays { // a volume for another container, which has a memory of its own
			return "", nil
		}
		return "", ErrNowhere
	}
	_, err := exec.Find(d.Mode, "iptables", x.Dir.Path())
	if err != nil {
		return "", err
	}
	program := Program(x.Dir, d.Mode)
	stored := Stored(x.Dir)
	switch {
	case program != "" && denied == nil:
		return program, nil
	case stored == d.Mode, stored == "" && remembers:
		return "", nil
	case denied != nil:
		return "", fmt.Errorf("%w: %w", ErrNowhere, denied)
	}
	return "", fmt.Errorf("%w: only a multi-call program such as %s can be in the switch", ErrNowhere, multiCall(d.Mode))
}

// remember writes M, if there is one.
func (x Directory) remember(d evidence.Decision, guess bool) error {
	if x.Memory.Dir == nil {
		return nil
	}
	if guess {
		_, err := x.Memory.Make(d)
		return err
	}
	return x.Memory.Set(d)
}

// lay makes names lead through the switch.
func (x Directory) lay(names []string) error {
	for _, name := range names {
		id, err := x.Dir.ID(name)
		if err == nil && id == x.Running {
			return adopt(Place{Command: x.Dir.Join(name), Dir: x.Dir, Running: x.Running})
		}
	}
	return Lay(x.Dir, beside(x.Dir, x.Wrapper), names)
}

// Reset forgets what is stored: the switch leads to the wrapper again, and M is removed. What must be writable is
// checked before anything is changed.
func (x Directory) Reset() error {
	err := x.Dir.Lock(tries)
	if err != nil {
		return err
	}
	now, noSwitch := x.Dir.Readlink(Switch)
	if noSwitch == nil && !IsOurs(now) {
		return fmt.Errorf("%q: %w", x.Dir.Join(Switch), ErrForeign)
	}
	moved := noSwitch == nil && !isWrapper(now)
	if moved {
		err = x.Dir.Writable()
	}
	if err == nil && x.Memory.Exists() {
		err = x.Memory.Dir.Writable()
	}
	if err != nil {
		return err
	}
	if moved {
		err = x.Dir.Replace(x.wrapper(), Switch)
	}
	if err != nil {
		return err
	}
	return x.Memory.Forget()
}

// wrapper is what the switch contains where it leads to the wrapper.
func (x Directory) wrapper() string {
	_, err := x.Dir.Lstat(Wrapper)
	if err == nil {
		return Wrapper
	}
	return x.Wrapper
}
