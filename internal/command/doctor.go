// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

func (s *session) doctorCommand() *cli.Command {
	var directory path
	output := choose("text", "json")
	return &cli.Command{
		Name:  "doctor",
		Usage: "say what is wrong with iptables, and what to do",
		Description: "Changes no rule and no file. Runs the container's iptables to see whether it\n" +
			"works. Exits with status 1 if there is a problem. Example:\n\n" +
			"   iptables-wrapper doctor",
		Flags:  []cli.Flag{dirFlag(&directory, clientsDir), outputFlag(&output)},
		Action: func(*cli.Context) error { return s.doctor(string(directory), output.value) },
	}
}

func (s *session) doctor(directory, output string) error {
	r := doctor.Examine(directory, start.Limit)
	if output == "json" {
		err := s.json(r)
		if err != nil {
			return err
		}
	} else {
		for _, line := range r.Lines() {
			s.answer("%s", line)
		}
	}
	if r.Problem() {
		return failure{status: statusFailure}
	}
	return nil
}
