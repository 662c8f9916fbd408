// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of iptables-wrapper: it runs if the program is called by its own name.
//
//	stdout  results
//	stderr  lines for people, each after the program's name. An error has a second line with what to do.
package command

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"
)

const program = "iptables-wrapper"

// version is set by the linker if the Makefile builds the program. Otherwise Go records the module's version, which it
// makes from the tag or the commit.
var version string

// Exit statuses of the command line. Those of a call that fails are in internal/remedy.
const (
	statusFailure   = 1
	statusUsage     = 2
	statusUncertain = 3
)

// Run runs a command and returns its exit status.
func Run(args []string, stdout, stderr io.Writer) int {
	results := &checkedWriter{Writer: stdout}
	var unknown error // what CommandNotFound cannot return
	app := newApp(func(c *cli.Context, name string) { unknown = unknownCommand(c, name) })
	app.Writer = results
	app.ErrWriter = stderr
	err := app.Run(args)
	return printError(stderr, cmp.Or(results.err, err, unknown))
}

// newApp returns the command line. Without these settings, the library prints help on stdout for a wrong flag, ignores
// surplus arguments, and ends the process with its own status.
func newApp(notFound cli.CommandNotFoundFunc) *cli.App {
	wrongFlag := func(c *cli.Context, err error, _ bool) error { return usagef(c, "%w", err) }
	platform := fmt.Sprintf("(%s/%s, %s)", runtime.GOOS, runtime.GOARCH, runtime.Version())
	app := &cli.App{
		Name:                  program,
		Usage:                 "run the iptables backend that the host uses",
		UsageText:             program + " COMMAND [options]",
		Version:               ownVersion() + " " + platform,
		Description:           description,
		CustomAppHelpTemplate: cli.AppHelpTemplate + moreHelp,
		Commands:              commands(),
		CommandNotFound:       notFound,
		OnUsageError:          wrongFlag,
		ExitErrHandler:        func(*cli.Context, error) {},
		Action:                withoutCommand,
	}
	app.Setup() // adds the command help
	for _, c := range app.Commands {
		c.HelpName = program + " " + c.Name // the library leaves out that of help
		c.HideHelpCommand = true
		c.OnUsageError = wrongFlag
		c.Before = refuseSurplus
	}
	return app
}

const description = `Called as iptables, iptables-save, iptables-restore, or one of their
ip6tables counterparts, it asks the kernel which backend the host uses, nft
or legacy, and becomes that backend's program.`

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

func ownVersion() string {
	info, recorded := debug.ReadBuildInfo()
	if version == "" && recorded {
		return info.Main.Version
	}
	return cmp.Or(version, "unknown")
}

// withoutCommand is called by the library if the first argument is no command, or missing.
func withoutCommand(c *cli.Context) error {
	if c.Args().Present() {
		return unknownCommand(c, c.Args().First())
	}
	c.App.Writer = c.App.ErrWriter // the help is not what a script asked for
	_ = cli.ShowAppHelp(c)         // fails only if the template is wrong
	return cli.Exit("", statusUsage)
}

func unknownCommand(c *cli.Context, name string) error {
	for _, known := range c.App.Commands {
		if isTypo(name, known.Name) {
			return usagef(c, "unknown command %q. Did you mean %q?", name, known.Name)
		}
	}
	return usagef(c, "unknown command %q", name)
}

// isTypo reports whether a word and a command begin with the same letter, and then differ in one place, by at most two
// letters. So nobody who types uninstall or remove is sent to a command that does something else.
func isTypo(word, command string) bool {
	first := 0
	for first < min(len(word), len(command)) && word[first] == command[first] {
		first++
	}
	word, command = word[first:], command[first:]
	for word != "" && command != "" && word[len(word)-1] == command[len(command)-1] {
		word, command = word[:len(word)-1], command[:len(command)-1]
	}
	return first > 0 && max(len(word), len(command)) <= 2
}

// refuseSurplus refuses more arguments than a command takes: one if its help shows an argument, otherwise none.
func refuseSurplus(c *cli.Context) error {
	takes := 0
	if c.Command.ArgsUsage != "" {
		takes = 1
	}
	if c.Args().Len() <= takes {
		return nil
	}
	surplus := c.Args().Get(takes)
	if strings.HasPrefix(surplus, "-") {
		return usagef(c, "option %q must stand before the argument", surplus)
	}
	return usagef(c, "unexpected argument %q", surplus)
}

func usagef(c *cli.Context, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return cli.Exit(fmt.Errorf("%w (see %s --help)", err, c.Command.HelpName), statusUsage)
}
