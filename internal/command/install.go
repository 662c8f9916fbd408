// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
)

func (s *session) installCommand() *cli.Command {
	var directory path
	var force bool
	return &cli.Command{
		Name:  "install",
		Usage: "make the six iptables commands run this wrapper",
		Description: "Copies the wrapper into DIR if it runs from elsewhere. Running it again\n" +
			"changes nothing. Example, in an image:\n\n" +
			"   COPY iptables-wrapper /usr/sbin/\n" +
			"   RUN iptables-wrapper install",
		Flags: []cli.Flag{
			&cli.GenericFlag{
				Name:        "dir",
				Value:       &directory,
				DefaultText: "where iptables is",
				Usage:       "`DIR` has the iptables commands",
			},
			boolFlag(&force, "force", "replace files that are not iptables' own"),
		},
		Action: func(*cli.Context) error { return s.install(string(directory), force) },
	}
}

// install prints the changes even if there is an error, because it may come after some of them.
func (s *session) install(directory string, force bool) error {
	changes, remarks, err := install.Install(directory, force)
	for _, line := range changes {
		s.print("%s", line)
	}
	for _, remark := range remarks {
		s.say("%s", remark)
	}
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}
