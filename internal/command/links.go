// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

func (s *session) installCommand() *cli.Command {
	return &cli.Command{
		Name:  "install",
		Usage: "make the six iptables commands run this wrapper",
		Description: "Copies the wrapper into DIR if it runs from elsewhere. Running it again changes nothing. Example, in an image:\n\n" +
			"   COPY iptables-wrapper /usr/sbin/\n   RUN iptables-wrapper install",
		Flags: []cli.Flag{
			dirFlag(),
			pathFlag("root", "install into the root file system at `ROOT`; DIR is a path in it, and nothing in it is run", false),
			enumFlag(&cli.StringFlag{Name: "alternatives", Value: "auto",
				Usage: "`WHEN` to register with (update-)alternatives: auto (if the package manager\n" +
					"uses it for iptables) or never (plain symlinks)"}, "auto", "never"),
			boolFlag("force", "also replace files that are neither a wrapper nor a link to iptables"),
			boolFlag("skip-checks", "do not check which iptables programs are installed"),
		},
		Action: s.install,
	}
}

func (s *session) selectCommand() *cli.Command {
	return &cli.Command{
		Name:  "select",
		Usage: "detect the mode now, repoint the iptables commands to it, and print it",
		Description: "For an init container. If the answer is not conclusive, nothing changes and the status is 3. If the links cannot be\n" +
			"changed, this container remembers the mode. Example:\n\n   iptables-wrapper select --wait 2m",
		Flags: []cli.Flag{
			dirFlag(),
			enumFlag(&cli.StringFlag{Name: "mode", Usage: "use `MODE`: auto, nft or legacy (default: $" + programs.ModeVariable + ", or auto)"},
				"auto", "nft", "legacy"),
			waitFlag(),
		},
		Action: s.selectMode,
	}
}

func (s *session) resetCommand() *cli.Command {
	return &cli.Command{
		Name:        "reset",
		Usage:       "point the iptables commands back at this wrapper, and forget the mode",
		Description: "The next call detects the mode again. Rules that were written stay. Example:\n\n   iptables-wrapper reset",
		Flags:       []cli.Flag{dirFlag()},
		Action:      s.reset,
	}
}

// selectMode detects unless a mode was given. What it detects is stored only if it is conclusive, and not in the network
// namespace of another container ("ip netns exec", nsenter --net), which this container's links are not about.
func (s *session) selectMode(c *cli.Context) error {
	dir, err := dir(c, s.w)
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
	if mode == "" {
		var remembered detect.Mode
		if s.w.Look(dir)[0].Wrapper { // its calls may have added rules by a guess, which are no evidence
			remembered = doctor.RememberedIn(s.w, dir)
		}
		r, err := s.detectOrWait(c, detect.Query{Installed: doctor.Installed(s.w, dir)}, remembered)
		if err != nil {
			return err
		}
		mode = r.Mode
		why := r.Uncertainty()
		if here := s.w.Container(); r.Conclusive && here.OwnNetns == detect.No && here.OwnRoot != detect.No {
			why = "this is not the network namespace of the container's first process"
		}
		if why != "" {
			fmt.Fprintln(s.stdout, mode)
			return failure{3, fmt.Errorf("not conclusive, links left alone: %s", why), ""}
		}
	}
	remembered, fixed, err := s.w.Select(dir, mode)
	if err != nil {
		return fmt.Errorf("select %s: %w", mode, err)
	}
	if fixed != nil {
		s.say("the links cannot be changed (%v); this container remembers %s instead, in %s", fixed, mode, remembered)
	}
	fmt.Fprintln(s.stdout, mode)
	return nil
}

func (s *session) reset(c *cli.Context) error {
	dir, err := dir(c, s.w)
	if err != nil {
		return err
	}
	forgotten, err := s.w.Reset(dir)
	if err != nil {
		return failure{1, fmt.Errorf("reset: %w", err), "run: iptables-wrapper install (with --force to replace files that are not iptables)"}
	}
	fmt.Fprintf(s.stdout, "all iptables commands in %s run the wrapper\n", dir)
	if forgotten != "" {
		fmt.Fprintf(s.stdout, "removed %s\n", forgotten)
	}
	return nil
}

func (s *session) install(c *cli.Context) error {
	w := s.w
	if root := c.String("root"); root != "" {
		tree, err := links.OpenTree(root)
		if err != nil {
			return fmt.Errorf("install: %w", err)
		}
		defer tree.Close()
		w = w.In(tree)
	}
	dir, err := dir(c, w)
	if err != nil {
		return err
	}
	if !c.Bool("skip-checks") {
		switch err := install.Check(w, dir); {
		case errors.Is(err, install.ErrUnchecked):
			s.say("warning: %v", err)
		case err != nil:
			return failure{1, err, "install iptables with both backends first, or use --skip-checks"}
		}
	}
	changed, err := install.Install(w, dir, install.Options{Force: c.Bool("force"), Alternatives: c.String("alternatives") == "auto"})
	for _, line := range changed {
		fmt.Fprintln(s.stdout, line)
	}
	if err != nil {
		hint := ""
		switch {
		case errors.Is(err, install.ErrRefused):
			hint = "to replace it, use --force"
		case errors.Is(err, install.ErrAlternatives):
			hint = "to create plain symlinks instead, use --alternatives=never"
		}
		return failure{1, fmt.Errorf("install: %w", err), hint}
	}
	if len(changed) == 0 {
		fmt.Fprintf(s.stdout, "nothing to do: the iptables commands in %s run the wrapper\n", dir)
	}
	for _, path := range install.Others(w, dir) {
		s.say("warning: %s also runs iptables and bypasses the wrapper", path)
	}
	return nil
}
