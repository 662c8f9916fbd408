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

// examples are values of flags, for the messages about wrong ones.
var examples = map[string]string{
	"dir": "/usr/sbin", "root": "/mnt/image", "netns": "/run/netns/NAME", "pid": "1", "wait": "90s", "mode": "legacy",
	"output": "json", "for": "kubelet", "alternatives": "never",
}

// enum is a flag that takes one of several words.
type enum struct {
	*cli.StringFlag
	words []string
}

func enumFlag(f *cli.StringFlag, words ...string) *enum {
	f.Action = func(c *cli.Context, value string) error {
		if !slices.Contains(words, value) {
			return usagef(c, "--%s %q is not one of %s", f.Name, value, strings.Join(words, ", "))
		}
		return nil
	}
	return &enum{f, words}
}

// pathFlag is a flag for a file or a directory.
func pathFlag(name, usage string, file bool) *cli.PathFlag {
	return &cli.PathFlag{Name: name, Usage: usage, TakesFile: file, Action: func(c *cli.Context, path string) error {
		if path == "" {
			return usagef(c, "--%s needs a path such as %s", name, examples[name])
		}
		return nil
	}}
}

func dirFlag() cli.Flag {
	return pathFlag("dir", "`DIR` that holds the iptables commands (default: the wrapper's own\n"+
		"if iptables is there, otherwise the first standard one that has it)", false)
}

func boolFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, DisableDefaultText: true}
}

func waitFlag() cli.Flag {
	return &cli.DurationFlag{
		Name: "wait", DefaultText: "do not wait",
		Usage: "wait for a conclusive answer, up to `DURATION`: 90s, 5m",
		Action: func(c *cli.Context, d time.Duration) error {
			if d <= 0 {
				return usagef(c, "--wait must be a positive duration such as 90s or 5m, not %s", d)
			}
			return nil
		},
	}
}

func forFlag() cli.Flag {
	return enumFlag(&cli.StringFlag{Name: "for", Value: "any",
		Usage: "what --wait waits for: `EVIDENCE` that is conclusive (any), or kubelet's chains (kubelet)"}, "any", "kubelet")
}

// waitFor is what --for says.
func waitFor(c *cli.Context) detect.WaitFor {
	if c.String("for") == "kubelet" {
		return detect.ForKubelet
	}
	return detect.ForAny
}

// explain rewrites the library's errors about flags: it names neither the command nor a value that would do, and writes
// one dash for any flag.
func explain(c *cli.Context, err error, _ bool) error {
	text := err.Error()
	_, name, _ := strings.Cut(text, " -")
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimLeft(name, "-")
	for _, f := range c.Command.Flags {
		if slices.Contains(f.Names(), name) {
			name = f.Names()[0]
		}
	}
	_, value, quoted := strings.Cut(text, `value "`)
	value, _, _ = strings.Cut(value, `"`)
	switch {
	case strings.HasPrefix(text, "flag provided but not defined"):
		return usagef(c, "unknown flag --%s", name)
	case strings.HasPrefix(text, "flag needs an argument"):
		return usagef(c, "--%s needs a value; example: --%[1]s %[2]s", name, examples[name])
	case strings.HasPrefix(text, "invalid boolean"):
		return usagef(c, "--%s takes no value, not %q", name, value)
	case quoted:
		return usagef(c, "--%s %q is not a valid value; example: --%[1]s %[3]s", name, value, examples[name])
	}
	return usagef(c, "%v", err)
}
