// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

func (s *session) installCommand() *cli.Command {
	return &cli.Command{
		Name:  "install",
		Usage: "make the six iptables commands run this wrapper",
		Description: "Copies the wrapper into DIR if it runs from elsewhere. Running it again\nchanges nothing. Example, in an image:\n\n" +
			"   COPY iptables-wrapper /usr/sbin/\n   RUN iptables-wrapper install",
		Flags: []cli.Flag{
			dirFlag(),
			checked(&cli.StringFlag{Name: "root", Usage: "install into the root file system at `ROOT`:\n\tDIR is a path in it, and nothing in it is run"}),
			checked(&cli.StringFlag{Name: "alternatives", Value: "auto",
				Usage: "`WHEN` to register with (update-)alternatives: auto\n\t(if the package manager uses it for iptables) or\n\t" +
					"never (plain symlinks)"}, "auto", "never"),
			boolFlag("force", "also replace files that are neither a wrapper nor a\n\tlink to iptables"),
			boolFlag("skip-checks", "do not check which iptables programs are installed"),
		},
		Action: s.install,
	}
}

func (s *session) selectCommand() *cli.Command {
	return &cli.Command{
		Name:  "select",
		Usage: "make the iptables commands run the host's backend",
		Description: "For an init container. Prints the backend. If the answer is not certain,\nnothing changes and the status is 3. If the " +
			"switch cannot be changed, this\ncontainer remembers the backend. Example:\n\n   iptables-wrapper select --wait 2m",
		Flags: append([]cli.Flag{
			dirFlag(),
			checked(&cli.StringFlag{Name: "mode", Usage: "backend to use; `MODE` is nft, legacy, or auto to\n\tdetect it (default: $" + programs.ModeVariable + ", or auto)"},
				"auto", "nft", "legacy"),
			boolFlag("guess", "if the answer is not certain, remember the best\n\tguess and exit with status 0; the commands run\n\tthe wrapper"),
		}, waitFlags()...),
		Action: s.selectMode,
	}
}

func (s *session) resetCommand() *cli.Command {
	return &cli.Command{
		Name:        "reset",
		Usage:       "make the iptables commands run this wrapper again",
		Description: "Forgets the backend, so the next call detects it again. Rules that were\nwritten stay. Example:\n\n   iptables-wrapper reset",
		Flags:       []cli.Flag{dirFlag()},
		Action:      s.reset,
	}
}

// selectMode detects unless a backend was given. What it detects is stored only if it is conclusive, and not in the network
// namespace of another container ("ip netns exec", nsenter --net), which this container's commands are not about.
func (s *session) selectMode(c *cli.Context) error {
	dir, err := s.ownDir(c)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil { // before a wait for nothing
		return fmt.Errorf("select: %w", err)
	}
	mode, err := s.variable()
	if c.IsSet("mode") {
		mode, err = programs.ParseMode(c.String("mode"))
	}
	if err != nil {
		return err
	}
	answer := detect.Memory{Mode: mode, Reason: detect.Override, Because: "somebody selected it"}
	guess := false
	if mode == "" {
		r := s.detectOrWait(c, dir, detect.Query{})
		why := r.Uncertainty()
		switch in := s.names.Container; {
		case in.OwnNetns == detect.No && in.OwnRoot != detect.No:
			why = "this is not the network namespace of the container's first process"
		case r.Conclusive && !waitFor(c).Ended(r):
			why = "kubelet's chains were not found; " + r.Because()
		}
		guess = why != "" && c.Bool("guess")
		if now := s.names.Look(dir)[0]; guess && now.Switched && now.Mode != "" {
			s.say("%s was stored before, and stays", now.Mode)
			fmt.Fprintln(s.stdout, now.Mode)
			return nil
		}
		if why != "" && !guess {
			fmt.Fprintln(s.stdout, r.Mode)
			return failure{3, fmt.Errorf("not certain, nothing changed: %s", why), ""}
		}
		answer = detect.Memory{Mode: r.Mode, Reason: r.Reason, Conclusive: r.Conclusive && !guess, Because: r.Because()}
		if r.Remembered != nil {
			answer = *r.Remembered
		}
		if guess {
			s.say("guessing %s: %s", r.Mode, why)
		}
	}
	selected, err := s.names.Select(dir, answer, guess)
	if err != nil {
		return fmt.Errorf("select %s: %w", answer.Mode, err)
	}
	if selected.Unwritable != nil {
		s.say("the links cannot be changed (%v); this container remembers %s instead, in %s", selected.Unwritable, answer.Mode, selected.Memory)
	}
	if guess && selected.Memory == "" {
		s.say("the guess cannot be remembered here")
	}
	fmt.Fprintln(s.stdout, answer.Mode)
	return nil
}

func (s *session) reset(c *cli.Context) error {
	dir, err := s.ownDir(c)
	if err != nil {
		return err
	}
	forgotten, err := s.names.Reset(dir)
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	fmt.Fprintf(s.stdout, "all iptables commands in %s run the wrapper\n", dir)
	if forgotten != "" {
		fmt.Fprintf(s.stdout, "removed %s\n", forgotten)
	}
	return nil
}

func (s *session) install(c *cli.Context) error {
	n, err := s.names, error(nil)
	if root := c.String("root"); root != "" {
		if n.Tree, err = tree.Open(root); err != nil {
			return fmt.Errorf("install: %w", err)
		}
	}
	dir, err := dir(c, n)
	if err != nil {
		return err
	}
	if !c.Bool("skip-checks") {
		switch err := install.Check(n, dir); {
		case errors.Is(err, install.ErrUnchecked):
			s.say("warning: %v", err)
		case err != nil:
			return failure{1, fmt.Errorf("install: %w", err), "install iptables with both backends first, or use --skip-checks"}
		}
	}
	changed, err := install.Install(n, dir, install.Options{Force: c.Bool("force"), Alternatives: c.String("alternatives") == "auto"})
	for _, line := range changed {
		fmt.Fprintln(s.stdout, line)
	}
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if len(changed) == 0 {
		fmt.Fprintf(s.stdout, "nothing to do: the iptables commands in %s run the wrapper\n", dir)
	}
	for _, path := range n.Others(dir) {
		s.say("warning: %s also runs iptables and bypasses the wrapper", path)
	}
	return nil
}
