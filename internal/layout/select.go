// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

var (
	// ErrNotWrapped means that the directory has no commands, or some that do not lead to the wrapper.
	ErrNotWrapped = errors.New("the commands do not run the wrapper")
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
	Kubelet evidence.Mode // the backend that kubelet's chains show for certain, which outranks the memory; "" if none
}

// Patience is how long a command that an administrator runs waits for the lock of DIR.
const Patience = 2 * time.Second

// Select makes the six names run a backend. A guess is only remembered, and the switch stays at the wrapper.
//
// It checks what must be writable before it changes anything. Names are laid first: that may fail, and changes no
// answer. M is written before S, so that a process that is killed in between leaves a memory that the next call carries
// out.
func (x Directory) Select(d evidence.Decision, guess bool) error {
	err := x.Dir.Lock(Patience)
	if err != nil {
		return err
	}
	names, err := x.unlaid()
	if err != nil {
		return err
	}
	program := ""
	if guess {
		err = x.takesGuess(d.Mode, len(names) > 0)
	} else {
		program, err = x.target(d.Mode, len(names) > 0)
	}
	if err != nil {
		return err
	}
	if len(names) > 0 {
		err = x.lay(names)
		if err != nil {
			return err
		}
	}
	err = x.remember(d, guess)
	if program == "" {
		return err
	}
	return x.Dir.Replace(program, Switch) // the switch counts, with or without a memory
}

// unlaid returns the names that are to be laid: those that lead to the running file without a switch, or all six in an
// empty directory that somebody named.
func (x Directory) unlaid() ([]string, error) {
	_, err := Content(x.Dir)
	if err != nil {
		return nil, err
	}
	var names []string
	missing := 0
	for _, n := range Look(x.Dir, x.Running) {
		switch {
		case n.Missing:
			missing++
		case n.Switch != "" && !x.Dir.IsAt(n.Switch):
			return nil, fmt.Errorf("%q leads through the switch in %q: %w", x.Dir.Join(n.Name), n.Switch, ErrNotWrapped)
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

// remembers reports whether the memory can be written.
func (x Directory) remembers() bool { return x.Memory.Dir != nil && x.Memory.Dir.Writable() == nil }

// takesGuess returns nil if the next call would run a guess. lays: names must be laid first.
func (x Directory) takesGuess(mode evidence.Mode, lays bool) error {
	denied := x.Dir.Writable()
	stored := Stored(x.Dir)
	switch {
	case lays && denied != nil:
		return denied
	case stored == mode.Other():
		return fmt.Errorf("%w: the switch is at %s; reset it first", ErrNowhere, stored)
	case x.remembers(), lays: // names in a volume are for another container, which has a memory of its own
		return nil
	}
	return ErrNowhere
}

// target returns what the switch is to contain, "" if the memory alone makes the next call run the backend. lays: names
// must be laid first.
func (x Directory) target(mode evidence.Mode, lays bool) (string, error) {
	denied := x.Dir.Writable()
	if lays && denied != nil {
		return "", denied
	}
	_, err := exec.Find(mode, "iptables", x.Dir.Path())
	if err != nil {
		return "", err
	}
	stored := Stored(x.Dir)
	program := ContentFor(x.Dir, mode)
	switch {
	case program != "" && denied == nil:
		return program, nil
	case stored == mode:
		return "", nil
	case stored == "" && x.remembers() && x.Kubelet == mode.Other():
		return "", fmt.Errorf("%w: kubelet's chains are in %s, and outrank the memory", ErrNowhere, x.Kubelet)
	case stored == "" && x.remembers():
		return "", nil
	case stored != "" && denied != nil: // no call runs the wrapper, which could follow the memory or the variable
		return "", fmt.Errorf("the switch is at %s: %w", stored, denied)
	case denied != nil:
		return "", fmt.Errorf("%w: %w", ErrNowhere, denied)
	}
	return "", fmt.Errorf("%w: only a multi-call program such as %s can be in the switch", ErrNowhere,
		iptables.MultiCall(mode))
}

// remember writes M, if there is one.
func (x Directory) remember(d evidence.Decision, guess bool) error {
	if x.Memory.Dir == nil {
		return nil
	}
	if guess {
		said, err := x.Memory.Make(d)
		if err == nil && said.Mode != d.Mode {
			err = fmt.Errorf("%w: another process has remembered %s", ErrNowhere, said.Mode)
		}
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
	return Lay(x.Dir, linkTo(x.Dir, x.Wrapper), names)
}

// Reset forgets what is stored: the switch points to the wrapper again, and M is removed. It checks what must be
// writable before it changes anything.
func (x Directory) Reset() error {
	err := x.Dir.Lock(Patience)
	if err != nil {
		return err
	}
	content, err := Content(x.Dir)
	if err != nil {
		return err
	}
	moved := storedMode(content) != ""
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
		err = x.pointToWrapper()
	}
	if err != nil {
		return err
	}
	return x.Memory.Forget()
}

// pointToWrapper points the switch at the wrapper beside it, or at the running one where there is none.
func (x Directory) pointToWrapper() error {
	_, err := x.Dir.Lstat(Wrapper)
	if err == nil {
		return x.Dir.Replace(Wrapper, Switch)
	}
	err = checkName(x.Wrapper)
	if err != nil {
		return err
	}
	return x.Dir.Replace(x.Wrapper, Switch)
}
