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
		Description: "Asks only the kernel, about this network namespace. Reads neither the\n" +
			"environment nor the stored or recorded backend. Starts no process, changes\n" +
			"nothing. If the answer is a guess, prints that on stderr. Example:\n\n" +
			"   iptables-wrapper detect -o table\n\n" +
			"For another network namespace, from the node:\n\n" +
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
			if !r.Certain && (strict || output.value == "text") { // the other forms contain it
				s.say("not certain: %s", r.Because())
			}
			if strict && !r.Certain {
				return failure{status: statusUncertain, try: program + " doctor, which prints what to do about it"}
			}
			return nil
		},
	}
}

// detect prints the result. For text it asks what a call asks, for the other formats everything.
func (s *session) detect(output string) (detect.Result, error) {
	if output == "text" {
		r, _ := detect.Host("") // r.Because has the error, too
		s.print("%s", r.Backend)
		return r, nil
	}
	r, _ := detect.Survey()
	rep := newReport(r)
	if output == "json" {
		return r, s.json(rep)
	}
	s.printTable(rep)
	return r, nil
}
