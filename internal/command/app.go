// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of iptables-wrapper: it runs if the program is called by its own name.
package command

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

const program = "iptables-wrapper"

// version is set by the linker if the Makefile builds the program. Otherwise the version of the module is used.
var version string

// session is one run of the command line.
type session struct {
	stdout *bufio.Writer // keeps an error of writing until Flush
	stderr io.Writer
	wrong  error // the error of CommandNotFound, which cannot return one
}

// Run runs a command and returns its exit status.
func Run(args []string, stdout, stderr io.Writer) int {
	s := &session{stdout: bufio.NewWriter(stdout), stderr: stderr}
	err := s.app().Run(args)
	if err == nil {
		err = s.wrong
	}
	return max(s.printError(err), s.printError(s.stdout.Flush()))
}

// app is the command line. Without these settings, the library prints help on stdout for a wrong flag, ignores surplus
// arguments, and ends the process with its own status.
func (s *session) app() *cli.App {
	app := &cli.App{
		Name:                  program,
		Usage:                 "run the iptables backend that the host uses",
		UsageText:             program + " COMMAND [options]",
		Version:               versionText(),
		Description:           description,
		CustomAppHelpTemplate: cli.AppHelpTemplate + moreHelp,
		Writer:                s.stdout,
		ErrWriter:             s.stderr,
		Commands: []*cli.Command{
			s.detectCommand(), s.selectCommand(), s.installCommand(), s.resetCommand(), s.doctorCommand(),
			{Name: "version", Usage: "print the version", Action: printVersion},
		},
		CommandNotFound: s.unknownCommand,
		OnUsageError:    wrongFlag,
		ExitErrHandler:  func(*cli.Context, error) {},
		Action:          s.withoutCommand,
	}
	app.Setup() // adds the command help
	for _, c := range app.Commands {
		c.HideHelpCommand = true
		c.OnUsageError = wrongFlag
		c.Before = refuseSurplus
	}
	return app
}

const description = `Called as iptables, iptables-save, iptables-restore, or one of their
ip6tables counterparts, it asks the kernel which backend the host uses, nft
or legacy, and becomes that backend's program.`

// moreHelp follows the library's help for commands and options.
const moreHelp = `
ENVIRONMENT:
   IPTABLES_WRAPPER_BACKEND  nft or legacy: the backend of a call, whatever
                             the host uses; auto: the same as unset

EXIT STATUS:
   0    success
   1    failure; doctor: there is a problem
   2    wrong usage, or a wrong value of IPTABLES_WRAPPER_BACKEND
   3    detect --strict, select --strict: the answer is not certain
   126  an iptables call: the backend's program cannot be executed
   127  an iptables call: the backend's program, or its loader, is missing
`

// withoutCommand is called by the library if the first argument is no command, or missing.
func (s *session) withoutCommand(c *cli.Context) error {
	if c.Args().Present() {
		s.unknownCommand(c, c.Args().First())
		return nil
	}
	c.App.Writer = s.stderr
	_ = cli.ShowAppHelp(c) // fails only if the template is wrong
	return failure{status: statusUsage}
}

func (s *session) unknownCommand(c *cli.Context, name string) {
	s.wrong = usagef(c, "unknown command %q. %s", name, cli.SuggestCommand(c.App.Commands, name))
}

func wrongFlag(c *cli.Context, err error, _ bool) error { return usagef(c, "%w", err) }

// refuseSurplus refuses more arguments than a command takes: one if its help shows an argument, otherwise none.
func refuseSurplus(c *cli.Context) error {
	takes := 0
	if c.Command.ArgsUsage != "" {
		takes = 1
	}
	if c.Args().Len() > takes {
		return usagef(c, "unexpected argument %q", c.Args().Get(takes))
	}
	return nil
}

// usagef returns the error for wrong usage of a command, or of the program.
func usagef(c *cli.Context, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if c.Command.Name == program {
		return failure{status: statusUsage, err: fmt.Errorf("%w (see %s --help)", err, program)}
	}
	return failure{status: statusUsage, err: fmt.Errorf("%s: %w (see %s)", c.Command.Name, err, help(c))}
}

func help(c *cli.Context) string { return program + " " + c.Command.Name + " --help" }

func printVersion(c *cli.Context) error {
	cli.ShowVersion(c)
	return nil
}

// versionText returns the version, and in parentheses the revision, the platform and the version of Go.
func versionText() string {
	info := buildInfo()
	revision := ""
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			revision = "revision " + setting.Value[:min(12, len(setting.Value))] + ", "
		}
	}
	return fmt.Sprintf("%s (%s%s/%s, %s)", cmp.Or(version, info.Main.Version, "unknown"), revision,
		runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// buildInfo returns what the linker recorded in this program. It is empty if the linker recorded nothing.
func buildInfo() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return &debug.BuildInfo{}
	}
	return info
}
