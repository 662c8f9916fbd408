// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of iptables-wrapper: what it does when it is called by its own name.
package command

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

const program = "iptables-wrapper"

// Set by the linker where the build knows better than the module: see the Makefile.
var version, revision string

type session struct {
	names  layout.Names
	stdout *bufio.Writer // which keeps an error of writing until the end
	stderr io.Writer
}

// Run runs a command and returns its exit status: 2 for wrong usage; 3 if a conclusive answer was needed and there was
// none; 128 and its number for a signal during a wait; 1 for any other failure.
func Run(p self.Process, args []string, stdout, stderr io.Writer) int {
	// A network namespace, /proc/thread-self and a trace by strace are those of one thread. It is never unlocked, so
	// that the runtime starts no other thread from one that has entered another namespace.
	runtime.LockOSThread()
	if len(args) == 0 { // before Linux 5.18 a program can be started without any
		args = []string{program}
	}
	// What the caller ignores stays ignored, as under systemd. By itself, the runtime ends the process at a write to
	// stdout or stderr that nobody reads.
	if process.Ignored(unix.SIGPIPE) {
		signal.Ignore(unix.SIGPIPE)
	}
	s := &session{
		names:  layout.Names{Self: p, Container: memory.ThisContainer()},
		stdout: bufio.NewWriter(stdout),
		stderr: stderr,
	}
	app := s.app()
	err := app.Run(args)
	if topic, ok := noHelpTopic(err); ok {
		err = unknownCommand(app, topic)
	}
	return max(s.printError(err), s.printError(unwritten(s.stdout.Flush())))
}

// app is set up so that only answers and requested help go to stdout, and so that every error comes back to Run: by
// itself the library prints help on stdout for a wrong flag, ignores surplus arguments, and exits.
func (s *session) app() *cli.App {
	app := &cli.App{
		Name:                  program,
		Usage:                 "run the iptables backend that the host uses",
		UsageText:             program + " COMMAND [options]",
		Description:           description,
		CustomAppHelpTemplate: cli.AppHelpTemplate + moreHelp,
		Writer:                s.stdout,
		ErrWriter:             s.stderr,
		Flags: []cli.Flag{
			&cli.BoolFlag{
				Name:               "version",
				Aliases:            []string{"v"},
				Usage:              "print the version",
				DisableDefaultText: true,
			},
		},
		Commands: []*cli.Command{
			s.detectCommand(), s.doctorCommand(), s.installCommand(), s.selectCommand(), s.resetCommand(),
			{Name: "version", Usage: "print version, revision, platform and Go version", Action: printVersion},
		},
		Before:         refuseVersionOfCommand,
		OnUsageError:   wrongFlag,
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			switch {
			case c.Args().Present():
				return unknownCommand(c.App, c.Args().First())
			case c.Bool("version"):
				return printVersion(c)
			}
			c.App.Writer = s.stderr
			_ = cli.ShowAppHelp(c) // fails only if the template is wrong
			return failure{status: 2}
		},
	}
	app.Setup() // which adds the command help
	for _, c := range app.Commands {
		if c.Name == "help" {
			c.Usage = "print this help, or the help for a command"
		}
		c.HelpName = program + " " + c.Name // the library's own has none
		c.HideHelpCommand = true
		c.OnUsageError = wrongFlag
		c.Before = checkUsage
	}
	return app
}

const description = `Called as iptables, iptables-save, iptables-restore, or one of their
ip6tables counterparts, it detects which backend the host uses, legacy or
nft, and replaces itself with that program.`

// moreHelp follows what the library says about commands and options.
const moreHelp = `
ENVIRONMENT:
   IPTABLES_WRAPPER_MODE   nft or legacy: use that backend, whatever the host
                           uses; auto: detect the host's
   IPTABLES_WRAPPER_DEBUG  1: each iptables call prints backend and reason
                           to stderr
   XTABLES_LOCKFILE        iptables-legacy's lock, which doctor checks;
                           /run/xtables.lock by default

EXIT STATUS:
   0    success
   1    failure; doctor: a problem was found
   2    wrong usage, or a wrong value of IPTABLES_WRAPPER_MODE
   3    select, detect --strict: the answer is not certain
   130  detect, select: a wait was ended by SIGINT
   143  detect, select: a wait was ended by SIGTERM
   126  an iptables call: the program for the host's backend cannot be run
   127  an iptables call: no program for the host's backend is installed
`

// printVersion prints one line: what it is, then in parentheses what that was built from and for, as far as it is
// known.
func printVersion(c *cli.Context) error {
	version, built := version, ""
	if revision != "" {
		built = "revision " + revision + ", "
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(version, info.Main.Version)
	}
	_, err := fmt.Fprintf(c.App.Writer, "%s version %s (%s%s/%s, %s)\n", program, version, built, runtime.GOOS,
		runtime.GOARCH, runtime.Version())
	return err
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

// rightDir is what to do about a directory that is not there, or has no commands.
const rightDir = "--dir with the directory of the commands"

// notThere reports whether an error says that a path leads to nothing, or not to a directory.
func notThere(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENAMETOOLONG)
}

// aboutDir adds to an error what to do about the directory that --dir or --root names, if that is what is wrong.
func aboutDir(c *cli.Context, err error) error {
	there := program + " install"
	for _, flag := range []string{"root", "dir"} {
		if c.IsSet(flag) {
			there += " --" + flag + " " + tree.Printable(c.String(flag))
		}
	}
	switch {
	case !c.IsSet("dir") && !c.IsSet("root"):
		return err
	case errors.Is(err, layout.ErrNotInstalled):
		return failure{1, err, there + ", which puts the wrapper in front of that iptables"}
	case errors.Is(err, layout.ErrForeign):
		return failure{1, err, there + " --force, which replaces it"}
	case notThere(err) && remedy(err) == "":
		return failure{1, err, rightDir}
	}
	return err
}

// ownDir is the directory of the commands to repoint. PATH never decides it: where it finds another iptables, the
// caller has to.
func (s *session) ownDir(c *cli.Context) (string, error) {
	own, err := dir(c, s.names)
	if err != nil || c.IsSet("dir") {
		return own, err
	}
	first, err := here.Dir(s.names)
	if err != nil || s.names.Tree.SameFile(first, own) { // PATH finds no other
		return own, nil
	}
	err = fmt.Errorf("%s: the first iptables in PATH is in %s, not in %s", c.Command.Name, first, own)
	return "", failure{1, err, "--dir " + first + " or --dir " + own}
}
