// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of iptables-wrapper: what it does when it is called by its own name.
package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

const program = "iptables-wrapper"

// version is set by the linker where the build knows better than the module: see the Makefile.
var version string

type session struct {
	names  layout.Names
	stdout *page
	stderr io.Writer
}

// Run runs a command and returns its exit status: 2 for wrong usage; 3 if a conclusive answer was needed and there was
// none; 128 and its number for a signal during a wait; 1 for any other failure.
func Run(p self.Process, args []string, stdout, stderr io.Writer) int {
	// A network namespace, /proc/thread-self and a trace by strace are those of one thread. It is never unlocked, so that the
	// runtime starts no other thread from one that has entered another namespace.
	runtime.LockOSThread()
	s := &session{layout.Names{Self: p, Container: memory.ThisContainer()}, newPage(stdout), stderr}
	if len(args) == 0 { // before Linux 5.18 a program can be started without any
		args = []string{program}
	}
	err := s.app().Run(args)
	if _, ok := err.(cli.ExitCoder); ok { // the library's own: help for a command that does not exist
		err = failure{2, fmt.Errorf("unknown command %q", args[len(args)-1]), seeHelp}
	}
	if err = cmp.Or(err, s.stdout.err); err != nil {
		return s.printError(err)
	}
	return 0
}

// app is set up so that only answers and requested help go to stdout, and so that every error comes back to Run: by
// itself the library prints help on stdout for a wrong flag, ignores surplus arguments, and exits.
func (s *session) app() *cli.App {
	commands := []*cli.Command{
		s.detectCommand(), s.doctorCommand(), s.installCommand(), s.selectCommand(), s.resetCommand(),
		completionCommand(), helpCommand(), versionCommand(),
	}
	for _, c := range commands {
		c.HideHelpCommand = true
		c.Flags = append(c.Flags, cli.HelpFlag) // which the library adds only when the command runs, and completion wants now
		c.OnUsageError = explain
		c.Before = refuseSurplus
	}
	return &cli.App{
		Name:                  program,
		Usage:                 "run the iptables backend that the host uses",
		UsageText:             program + " COMMAND [options]",
		Description:           description,
		CustomAppHelpTemplate: cli.AppHelpTemplate + moreHelp,
		Writer:                s.stdout,
		ErrWriter:             s.stderr,
		HideHelpCommand:       true,
		Flags: []cli.Flag{
			cli.HelpFlag, // which the library adds only to an app that has no command "help"
			&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version", DisableDefaultText: true},
		},
		Commands:       commands,
		OnUsageError:   explain,
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			switch {
			case c.Bool("version"):
				return c.App.Run(slices.Concat([]string{program, "version"}, c.Args().Slice()))
			case c.Args().Present():
				return usagef(c, "unknown command %q", c.Args().First())
			}
			return usagef(c, "missing command: one of %s", strings.Join(commandNames(c.App), ", "))
		},
	}
}

const description = `Called as iptables, iptables-save, iptables-restore, or one of their ip6tables counterparts, it
detects which backend the host uses, legacy or nft, and replaces itself with that program.`

// moreHelp follows what the library says about commands and options.
const moreHelp = `
ENVIRONMENT:
   IPTABLES_WRAPPER_MODE     nft or legacy: use that backend, whatever the host uses; auto: detect it
   IPTABLES_WRAPPER_DEBUG    1: for each iptables call, print the mode and the reason to stderr
   XTABLES_LOCKFILE          iptables-legacy's lock, /run/xtables.lock by default; doctor checks it
   NO_COLOR, TERM=dumb       detect and doctor print no colours

EXIT STATUS:
   0    success
   1    failure; doctor: a problem was found
   2    wrong usage
   3    select, detect --strict: the answer is not conclusive
   126  an iptables call: the program for the host's backend cannot be run
   127  an iptables call: no program for the host's backend is installed

EXAMPLES:
   COPY iptables-wrapper /usr/sbin/      in an image, after iptables was installed
   RUN iptables-wrapper install

   iptables-wrapper doctor               in a container whose rules have no effect
`

func commandNames(app *cli.App) (names []string) {
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	return names
}

// refuseSurplus refuses more arguments than the command has, which the library ignores.
func refuseSurplus(c *cli.Context) error {
	most := min(1, len(c.Command.ArgsUsage))
	if c.Args().Len() > most {
		return usagef(c, "unexpected argument %q", c.Args().Get(most))
	}
	return nil
}

func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "print help for the program or a command", ArgsUsage: "[COMMAND]",
		Action: func(c *cli.Context) error {
			return c.App.Run(slices.Concat([]string{program}, c.Args().Slice(), []string{"--help"}))
		},
	}
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version",
		Action: func(c *cli.Context) error {
			if info, ok := debug.ReadBuildInfo(); ok && version == "" {
				version = info.Main.Version
			}
			fmt.Fprintln(c.App.Writer, program, "version", version)
			return nil
		},
	}
}

// failure is the end of a command with a status. Without an error, the answer has said what there is to say.
type failure struct {
	status int
	err    error
	hint   string
}

func (f failure) Error() string { return fmt.Sprint(f.err) }
func (f failure) Unwrap() error { return f.err }

const seeHelp = "see " + program + " --help"

// usagef is wrong usage of a command, or of the program itself.
func usagef(c *cli.Context, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if c.Command.Name != program {
		err = fmt.Errorf("%s: %w", c.Command.Name, err)
	}
	return failure{2, err, "see " + c.Command.HelpName + " --help"}
}

func (s *session) say(format string, args ...any) {
	// An error may join several: a line each.
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n"+program+": ")
	fmt.Fprintf(s.stderr, "%s: %s\n", program, text)
}

// printError prints what went wrong and what to do, and returns the exit status.
func (s *session) printError(err error) int {
	f := failure{1, err, ""}
	errors.As(err, &f)
	if f.err != nil {
		s.say("%v", err)
	}
	if f.hint != "" {
		s.say("hint: %s", f.hint)
	}
	return f.status
}

// variable returns what IPTABLES_WRAPPER_MODE asks for: "" for auto.
func (s *session) variable() (detect.Mode, error) {
	mode, err := s.names.Self.Override()
	if err != nil {
		return "", failure{2, err, seeHelp}
	}
	return mode, nil
}

// dir is the directory that --dir names, or the wrapper's own.
func dir(c *cli.Context, n layout.Names) (string, error) {
	if dir := c.String("dir"); dir != "" {
		return dir, nil
	}
	return n.Dir()
}

// ownDir is the directory of the commands to repoint. PATH never decides it: where it finds another iptables, the caller has to.
func (s *session) ownDir(c *cli.Context) (string, error) {
	own, err := dir(c, s.names)
	if err != nil || c.IsSet("dir") {
		return own, err
	}
	if first, err := here.Dir(s.names); err == nil && !s.names.Tree.SameFile(first, own) {
		return "", failure{1, fmt.Errorf("%s: the first iptables in PATH is in %s, not in %s", c.Command.Name, first, own),
			"say which: --dir " + first + " or --dir " + own}
	}
	return own, nil
}
