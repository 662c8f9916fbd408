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

// examples are values of flags, by any of their names, for the messages about wrong ones.
var examples = map[string]string{
	"dir": "/usr/sbin", "root": "/mnt/image", "netns": "/run/netns/NAME", "pid": "1", "wait": "90s", "mode": "legacy",
	"output": "json", "o": "json", "for": "kubelet", "alternatives": "never",
}

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
			return usagef(c, "--%s needs a path such as %s", name, examples[name])
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
		&cli.StringFlag{
			Name: "wait", DefaultText: "do not wait", Usage: "wait for a certain answer, up to `DURATION`,\n\tsuch as 90s or 5m",
			Action: func(c *cli.Context, value string) error {
				if d, err := time.ParseDuration(value); err != nil || d <= 0 {
					return usagef(c, "--wait must be a positive duration such as 90s or 5m, not %q", value)
				}
				return nil
			},
		},
		enumFlag(&cli.StringFlag{Name: "for", Value: "any", Usage: "what --wait waits for: `EVIDENCE` is kubelet\n\t" +
			"(its chains alone) or any"}, "any", "kubelet"),
	}
}

// wait is what --wait and --for say.
func wait(c *cli.Context) (limit time.Duration, what detect.WaitFor) {
	limit, _ = time.ParseDuration(c.String("wait")) // which has been checked; 0 without it
	if c.String("for") == "kubelet" {
		return limit, detect.ForKubelet
	}
	return limit, detect.ForAny
}
