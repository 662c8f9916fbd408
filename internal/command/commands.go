// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// commands returns all commands but help, which is the library's.
func commands() []*cli.Command {
	return []*cli.Command{{
		Name:  "detect",
		Usage: "print the backend that the host uses: nft or legacy",
		Description: "Asks the kernel about this network namespace. If the answer is a guess,\n" +
			"prints why on stderr. The answer ignores the environment, the switch and\n" +
			"the record. The table and JSON formats also show what iptables would run\n" +
			"here; that does depend on them. Makes no rule and no file; the kernel may\n" +
			"load modules. Example:\n\n" +
			"   iptables-wrapper detect -o table\n\n" +
			"For another network namespace, from the node:\n\n" +
			"   nsenter -t PID -n iptables-wrapper detect",
		Flags: []cli.Flag{
			outputFlag("text", "table", "json"),
			boolFlag("strict", "exit with status 3 unless the answer is certain"),
		},
		Action: detectBackend,
	}, {
		Name:      "select",
		Usage:     "store the host's backend, or the one that you name",
		ArgsUsage: "[nft|legacy]",
		Description: "Makes the six commands run the backend that the host uses, or the one that\n" +
			"you name, until reset. If nothing proves the host's backend, the answer is a\n" +
			"guess. Prints the directory, and what the commands there run now. Example, in\n" +
			"the entry point of a container with a writable root:\n\n" +
			"   iptables-wrapper select && exec agent",
		Flags: []cli.Flag{
			boolFlag("strict", "do not store a guess: exit with status 3"),
		},
		Action: selectBackend,
	}, {
		Name:  "install",
		Usage: "make the six iptables commands run this wrapper",
		Description: "Copies the wrapper into DIR if it runs from elsewhere. A backend that was\n" +
			"stored is forgotten. Example, in an image:\n\n" +
			"   COPY iptables-wrapper /usr/sbin/\n" +
			"   RUN iptables-wrapper install",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name:        "dir",
				DefaultText: "where iptables is",
				Usage:       "`DIR` has the iptables commands",
				Action:      checkDirectory,
			},
			boolFlag("force", "replace files that are not iptables' own"),
		},
		Action: installWrapper,
	}, {
		Name:  "reset",
		Usage: "forget the backend: the next call decides again",
		Description: "Makes the six commands run the wrapper again, and removes the record of this\n" +
			"network namespace. Rules stay where they are. Example:\n\n" +
			"   iptables-wrapper reset",
		Action: reset,
	}, {
		Name:  "doctor",
		Usage: "print what is wrong with iptables, and what to do",
		Description: "Changes no rule and no file. Runs the container's iptables to see whether it\n" +
			"works. Exits with status 1 if there is a problem. Example:\n\n" +
			"   iptables-wrapper doctor",
		Flags:  []cli.Flag{outputFlag("text", "json")},
		Action: examine,
	}, {
		Name:  "version",
		Usage: "print the version",
		Action: func(c *cli.Context) error {
			cli.ShowVersion(c)
			return nil
		},
	}}
}

// outputFlag is the flag for the format of the output. The first format is the default.
func outputFlag(formats ...string) cli.Flag {
	list := strings.Join(formats, ", ")
	return &cli.StringFlag{
		Name:    "output",
		Aliases: []string{"o"},
		Value:   formats[0],
		Usage:   "`FORMAT`: " + list,
		Action: func(c *cli.Context, format string) error {
			if !slices.Contains(formats, format) {
				return usagef(c, "output %q is not one of %s", format, list)
			}
			return nil
		},
	}
}

func boolFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

// checkDirectory refuses the value of --dir if it is no directory. An empty one is often an unset shell variable.
func checkDirectory(c *cli.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return usagef(c, "%q is not a directory", path)
	}
	return nil
}

// installWrapper prints the changes even if there is an error, because it may come after some of them.
func installWrapper(c *cli.Context) error {
	changes, remarks, err := install.Install(c.String("dir"), c.Bool("force"))
	for _, change := range changes {
		printLine(c.App.Writer, "%s", change)
	}
	for _, remark := range remarks {
		say(c.App.ErrWriter, "%s", remark)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", remedy.ErrInstall, err)
	}
	return nil
}

func examine(c *cli.Context) error {
	r := doctor.Examine(run.Limit, pagesOf(ownVersion()))
	if c.String("output") == "json" {
		err := printJSON(c.App.Writer, r)
		if err != nil {
			return err
		}
	} else {
		for _, line := range r.Lines() {
			printLine(c.App.Writer, "%s", line)
		}
	}
	if r.Problem() {
		return cli.Exit("", statusFailure)
	}
	return nil
}

// pagesOf returns the tag that has the pages of a release, and the main branch for a build between two releases.
func pagesOf(version string) string {
	if regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(version) {
		return version
	}
	return "main"
}
