// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
)

type selectFlags struct {
	dir   path
	mode  choice
	guess bool
	wait  patience
}

func (s *session) selectCommand() *cli.Command {
	f := &selectFlags{mode: choice{words: []string{"nft", "legacy"}}, wait: newPatience()}
	return &cli.Command{
		Name:  "select",
		Usage: "decide now, and make the commands run that backend",
		Description: "Prints the backend. If the answer is not certain, nothing changes and the\n" +
			"status is 3. Example, in an init container on a Kubernetes node:\n\n" +
			"   iptables-wrapper select --wait 2m --for kubelet --guess",
		Flags: append([]cli.Flag{
			dirFlag(&f.dir, wrappersDir),
			&cli.GenericFlag{
				Name:  "mode",
				Value: &f.mode,
				Usage: "`MODE` is nft or legacy; without it,\n\t" + call.ModeVariable + " or the host decides",
			},
			boolFlag(&f.guess, "guess", "if the answer is not certain, remember the best guess"),
		}, f.wait.flags()...),
		Action: func(*cli.Context) error { return s.selectBackend(f) },
	}
}

// selectBackend stores the backend that the user named, or the one that the host uses.
func (s *session) selectBackend(f *selectFlags) error {
	mode, err := override()
	if err != nil {
		return err
	}
	source := call.ModeVariable
	if f.mode.value != "" {
		mode = evidence.Mode(f.mode.value)
		source = "select --mode"
	}
	x, err := target(f.dir)
	if err != nil {
		return fmt.Errorf("select: %w", err)
	}
	if mode != "" {
		because := source + " said so"
		d := evidence.Decision{Mode: mode, Reason: evidence.Selected, Conclusive: true, Because: because}
		x.Kubelet = kubelets(evidence.Query{}.Ask())
		return s.store(x, d, false)
	}
	place := doctor.At(x.Dir.Path())
	h := s.askHost(place, evidence.Query{DryRun: true}, &f.wait)
	if f.dir == "" && doctor.ThisNetwork(h).Process1 == evidence.No {
		// As a CNI plugin in a Pod's namespace: what is found here is not about the commands of this container.
		const try = "--dir with the directory of the commands, if they are for this namespace"
		return failure{statusFailure, errors.New("select: this is not the network namespace of process 1"), try}
	}
	d := h.Result.Decision
	if d.Reason == evidence.Remembered {
		d = place.Memory.Read() // with the reason that it had
	}
	if f.wait.met(place, h.Result) {
		return s.store(x, d, false)
	}
	return s.uncertain(x, d, h, f.guess)
}

// kubelets is the backend that kubelet's chains show for certain, "" if they show none.
func kubelets(r evidence.Result) evidence.Mode {
	if r.Conclusive && r.Reason.Kubelet() {
		return r.Mode
	}
	return ""
}

// uncertain goes on with an answer that must not be stored as certain.
func (s *session) uncertain(x layout.Directory, d evidence.Decision, h doctor.Host, guess bool) error {
	doubt := h.Uncertainty
	if h.Conclusive {
		doubt = withoutKubelet(h)
	}
	if !guess {
		const try = "--mode with the host's backend if you know it, or --guess to go on without it"
		return failure{statusUncertain, fmt.Errorf("select: not certain, nothing changed: %s", doubt), try}
	}
	stored := layout.Stored(x.Dir)
	if stored != "" { // which is no worse
		s.say("%s was stored before, and stays", stored)
		s.answer("%s", stored)
		return nil
	}
	s.say("guessing %s: %s", d.Mode, doubt)
	d.Conclusive = false
	return s.store(x, d, true)
}

// target is what select and reset change. Process 1 says whether the memory here is this container's; the directory was
// named, or is the wrapper's own.
func target(named path) (layout.Directory, error) {
	directory := string(named)
	if directory == "" {
		directory = layout.DefaultDirectory()
	}
	if directory == "" {
		return layout.Directory{}, fmt.Errorf("no iptables in a standard directory: %w", layout.ErrNotWrapped)
	}
	d, itself, err := layout.OpenDirectory(directory)
	if err != nil {
		return layout.Directory{}, err
	}
	x := layout.Directory{Dir: d, Wrapper: layout.RunningPath(), Named: named != "" && itself}
	_, x.Running = layout.Running()
	x.Memory = ownMemory(d)
	return x, nil
}

// ownMemory is the container's memory if this process may change it.
func ownMemory(beside *dir.Dir) memory.Memory {
	if os.Geteuid() != 0 || !memory.OfContainer() {
		return memory.Memory{}
	}
	return memory.Find(beside)
}

func (s *session) store(x layout.Directory, d evidence.Decision, guess bool) error {
	err := x.Select(d, guess)
	if err != nil {
		return fmt.Errorf("select %s: %w", d.Mode, err)
	}
	s.answer("%s", d.Mode)
	return nil
}

func (s *session) resetCommand() *cli.Command {
	var directory path
	return &cli.Command{
		Name:  "reset",
		Usage: "forget the backend: the next call decides again",
		Description: "Makes the six names run the wrapper again, and removes what this container\n" +
			"remembers. Rules that were written stay. Example:\n\n   iptables-wrapper reset",
		Flags:  []cli.Flag{dirFlag(&directory, wrappersDir)},
		Action: func(*cli.Context) error { return s.reset(directory) },
	}
}

func (s *session) reset(directory path) error {
	x, err := target(directory)
	if err == nil {
		err = x.Reset()
	}
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	s.say("the next iptables call in %q decides again", x.Dir.Path())
	return nil
}
