// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/urfave/cli/v2"
)

// enumFlag is a flag that takes one of several words.
func enumFlag(f *cli.StringFlag, words ...string) cli.Flag {
	f.Action = func(c *cli.Context, value string) error {
		if !slices.Contains(words, value) {
			return usagef(c, "--%s %q is not one of %s", f.Name, value, strings.Join(words, ", "))
		}
		return nil
	}
	return f
}

// pathFlag is a flag for a file or a directory.
func pathFlag(name, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Usage: usage, Action: func(c *cli.Context, path string) error {
		if path == "" {
			return usagef(c, "--%s needs a path", name)
		}
		return nil
	}}
}

func dirFlag() cli.Flag {
	return pathFlag("dir", "`DIR` that holds the iptables commands (default:\n\tthe wrapper's own if iptables is there, else\n\t"+
		"the first standard one that has it)")
}

func boolFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

// waitFlags are --wait and what it waits for.
func waitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{
			Name: "wait", DefaultText: "do not wait", Usage: "wait for a certain answer, up to `DURATION`,\n\tsuch as 90s or 5m",
			Action: func(c *cli.Context, limit time.Duration) error {
				if limit <= 0 {
					return usagef(c, "--wait must be a positive duration such as 90s or 5m, not %s", limit)
				}
				return nil
			},
		},
		enumFlag(&cli.StringFlag{Name: "for", Value: "any", Usage: "what --wait waits for: `EVIDENCE` is kubelet\n\t" +
			"(its chains alone) or any"}, "any", "kubelet"),
	}
}

// waitFor is what --for says.
func waitFor(c *cli.Context) detect.WaitFor {
	if c.String("for") == "kubelet" {
		return detect.ForKubelet
	}
	return detect.ForAny
}
