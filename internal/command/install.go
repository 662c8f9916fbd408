// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
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
			dirFlag(&directory, wrappersDir),
			boolFlag(&force, "force", "replace files that are not iptables' own, and accept\n\t"+
				"a directory that others can write to"),
		},
		Action: func(*cli.Context) error { return s.install(string(directory), force) },
	}
}

// install prints what was done also beside an error, which may come half-way.
func (s *session) install(directory string, force bool) error {
	done, err := install.Install(directory, force)
	for _, line := range done.Lines {
		s.answer("%s", line)
	}
	for _, remark := range done.Remarks {
		s.say("%s", remark)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("install: %w", err)
	if errors.Is(err, install.ErrCapabilities) {
		return failure{statusFailure, err, install.Setcap + " for this file, or with the capabilities that the program has"}
	}
	return err
}
