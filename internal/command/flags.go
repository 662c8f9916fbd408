// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// enums are the values of the flags and arguments that take one of several words. Completion offers them too.
var enums = map[string][]string{
	"detect output":        {"text", "table", "json", "env", "nfd"},
	"doctor output":        {"text", "json"},
	"install alternatives": {"auto", "never"},
	"select mode":          {"auto", "nft", "legacy"},
	"completion":           {"bash", "zsh", "fish"},
}

// examples are values of flags, for the messages about wrong ones.
var examples = map[string]string{
	"dir": "/usr/sbin", "root": "/mnt/image", "netns": "/run/netns/NAME", "pid": "1", "wait": "90s", "mode": "legacy",
	"output": "json", "alternatives": "never",
}

// enumFlag is a string flag that takes one of the words of enums.
func enumFlag(command string, f *cli.StringFlag) *cli.StringFlag {
	words := enums[command+" "+f.Name]
	f.Action = func(_ *cli.Context, value string) error {
		if !slices.Contains(words, value) {
			return usagef(command, "--%s %q is not one of %s", f.Name, value, strings.Join(words, ", "))
		}
		return nil
	}
	return f
}

// pathFlag is a flag for a path, which must not be empty.
func pathFlag(command, name, usage string) *cli.PathFlag {
	return &cli.PathFlag{Name: name, Usage: usage, TakesFile: true, Action: func(_ *cli.Context, path string) error {
		if path == "" {
			return usagef(command, "--%s needs a path such as %s", name, examples[name])
		}
		return nil
	}}
}

func dirFlag(command string) cli.Flag {
	return pathFlag(command, "dir", "`DIR` that holds the iptables commands (default: the wrapper's own\n"+
		"if iptables is there, otherwise the first standard one that has it)")
}

func waitFlag(command string) cli.Flag {
	return &cli.DurationFlag{
		Name: "wait", DefaultText: "do not wait",
		Usage: "wait for a conclusive answer, up to `DURATION`: 90s, 5m",
		Action: func(_ *cli.Context, d time.Duration) error {
			if d <= 0 {
				return usagef(command, "--wait must be a positive duration such as 90s or 5m, not %s", d)
			}
			return nil
		},
	}
}

// explain rewrites the library's errors about flags: it names neither the command nor a value that would do, and writes
// one dash for any flag.
func explain(c *cli.Command, err error) error {
	var command string
	flags := []cli.Flag{}
	if c != nil {
		command, flags = c.Name, c.Flags
	}
	text := err.Error()
	_, name, _ := strings.Cut(text, " -")
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimLeft(name, "-")
	if i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }); i >= 0 {
		name = flags[i].Names()[0]
	}
	_, value, quoted := strings.Cut(text, `value "`)
	value, _, _ = strings.Cut(value, `"`)
	switch {
	case strings.HasPrefix(text, "flag provided but not defined"):
		return usagef(command, "unknown flag --%s", name)
	case strings.HasPrefix(text, "flag needs an argument"):
		return usagef(command, "--%s needs a value: --%[1]s %[2]s", name, examples[name])
	case strings.HasPrefix(text, "invalid boolean"):
		return usagef(command, "--%s takes no value, not %q", name, value)
	case quoted:
		return usagef(command, "--%s %q is no valid value: --%[1]s %[3]s", name, value, examples[name])
	}
	return usagef(command, "%v", err)
}
