// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"regexp"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor/start"
)

func (s *session) doctorCommand() *cli.Command {
	output := choose("text", "json")
	return &cli.Command{
		Name:  "doctor",
		Usage: "print what is wrong with iptables, and what to do",
		Description: "Changes no rule and no file. Runs the container's iptables to see whether it\n" +
			"works. Exits with status 1 if there is a problem. Example:\n\n" +
			"   iptables-wrapper doctor",
		Flags:  []cli.Flag{outputFlag(&output)},
		Action: func(*cli.Context) error { return s.doctor(output.value) },
	}
}

func (s *session) doctor(output string) error {
	r := doctor.Examine(start.Limit, reference(version, buildInfo()))
	if output == "json" {
		err := s.json(r)
		if err != nil {
			return err
		}
	} else {
		for _, line := range r.Lines() {
			s.print("%s", line)
		}
	}
	if r.Problem() {
		return failure{status: statusFailure}
	}
	return nil
}

// release matches the tag of a release, and pseudo the version that Go makes of a commit.
var (
	release = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
	pseudo  = regexp.MustCompile(`^v.*\d{14}-([0-9a-f]{12})$`)
)

// reference returns the revision whose pages doctor links to: the tag of a release, otherwise the commit, otherwise
// main.
func reference(version string, info *debug.BuildInfo) string {
	tag := cmp.Or(version, info.Main.Version)
	if release.MatchString(tag) {
		return tag
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	commit := pseudo.FindStringSubmatch(tag)
	if commit != nil {
		return commit[1]
	}
	return "main"
}
