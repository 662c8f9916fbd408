// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

func (s *session) detectCommand() *cli.Command {
	output := choose("text", "table", "json")
	var strict bool
	return &cli.Command{
		Name:  "detect",
		Usage: "print the backend that the host uses: nft or legacy",
		Description: "Asks the kernel about this network namespace, and nothing else: neither what\n" +
			"is stored, nor the environment. Starts no process, changes nothing. A line on\n" +
			"stderr says so if the answer is a guess. Example:\n\n" +
			"   iptables-wrapper detect -o table\n\n" +
			"About another network namespace, from the node:\n\n" +
			"   nsenter -t PID -n iptables-wrapper detect",
		Flags: []cli.Flag{
			outputFlag(&output),
			boolFlag(&strict, "strict", "exit with status 3 unless the answer is certain"),
		},
		Action: func(*cli.Context) error {
			r, err := s.detect(output.value)
			if err != nil {
				return err
			}
			if !r.Certain {
				s.say("not certain: %s", r.Because())
			}
			if strict && !r.Certain {
				return failure{status: statusUncertain, try: program + " doctor, which says what to do about it"}
			}
			return nil
		},
	}
}

// detect prints the answer. Text asks what a call asks; the other forms ask everything.
func (s *session) detect(output string) (detect.Result, error) {
	if output == "text" {
		r, _ := detect.Host("") // what could not be asked is in the answer
		s.answer("%s", r.Backend)
		return r, nil
	}
	r, _ := detect.Survey()
	a := newReport(r)
	if output == "json" {
		return r, s.json(a)
	}
	s.printTable(a)
	return r, nil
}
