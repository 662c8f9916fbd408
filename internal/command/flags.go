// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// checked is a flag whose value must be one of some words or, if there are none, a path.
func checked(f *cli.StringFlag, words ...string) cli.Flag {
	f.Action = func(c *cli.Context, value string) error {
		switch {
		case len(words) > 0 && !slices.Contains(words, value):
			return usagef(c, "--%s %q is not one of %s", f.Name, value, strings.Join(words, ", "))
		case value == "":
			return usagef(c, "--%s needs a path", f.Name)
		}
		return nil
	}
	return f
}

// Directories that --dir stands for where it is not given.
const (
	wrappersDir = "the\n\twrapper's own if iptables is there, else the\n\tfirst standard one that has it"
	clientsDir  = "that\n\tof the first iptables in the PATH of process 1"
)

func dirFlag(otherwise string) cli.Flag {
	return checked(&cli.StringFlag{
		Name:  "dir",
		Usage: "the iptables commands are in `DIR` (default: " + otherwise + ")",
	})
}

func boolFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

// waitFlags are --wait and what it waits for.
func waitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{
			Name:        "wait",
			DefaultText: "do not wait",
			Usage:       "wait for a certain answer, up to `DURATION`,\n\tsuch as 90s or 5m",
			Action: func(c *cli.Context, limit time.Duration) error {
				if limit <= 0 {
					return usagef(c, "--wait must be a positive duration such as 90s or 5m, not %s", limit)
				}
				return nil
			},
		},
		checked(&cli.StringFlag{
			Name:  "for",
			Value: "any",
			Usage: "the answer must rest on `EVIDENCE`: kubelet (its\n\tchains alone) or any",
		}, "any", "kubelet"),
	}
}

// waitFor is what --for says.
func waitFor(c *cli.Context) detect.WaitFor {
	if c.String("for") == "kubelet" {
		return detect.ForKubelet
	}
	return detect.ForAny
}
