// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// usagef is wrong usage of a command, or of the program itself.
func usagef(c *cli.Context, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	name := c.Command.Name
	if name == program {
		return failure{2, err, seeHelp}
	}
	return failure{2, fmt.Errorf("%s: %w", name, err), program + " " + name + " --help"}
}

const seeHelp = program + " --help"

// checkUsage refuses what the library ignores.
func checkUsage(c *cli.Context) error {
	if err := refuseSurplus(c); err != nil {
		return err
	}
	if flag := repeated(c); flag != "" {
		return usagef(c, "%s is given more than once", flag)
	}
	return refuseIgnored(c)
}

// refuseSurplus refuses more arguments than the command has.
func refuseSurplus(c *cli.Context) error {
	allowed := 0
	if c.Command.ArgsUsage != "" { // help takes the name of a command
		allowed = 1
	}
	if c.Args().Len() > allowed {
		return usagef(c, "unexpected argument %q", c.Args().Get(allowed))
	}
	return nil
}

// refuseVersionOfCommand refuses --version before a command, which would run without a word about it.
func refuseVersionOfCommand(c *cli.Context) error {
	if c.Bool("version") && c.Args().Present() {
		return usagef(c, "unexpected argument %q", c.Args().First())
	}
	return nil
}

// exclusive are the flags of a command of which one would be ignored beside the other.
var exclusive = map[string][][2]string{
	"detect": {
		{"netns", "pid"},
	},
	"doctor": {
		{"check", "stale"},
		{"check", "all"},
		{"check", "output"},
		{"stale", "all"},
		{"stale", "output"},
		{"all", "output"},
	},
	"select": {
		{"mode", "wait"},
		{"mode", "for"},
		{"mode", "guess"},
	},
}

// refuseIgnored refuses a flag that would change nothing beside the others.
func refuseIgnored(c *cli.Context) error {
	for _, pair := range exclusive[c.Command.Name] {
		if given(c, pair[0]) && given(c, pair[1]) {
			return usagef(c, "%s and %s cannot be used together", spelled(c, pair[0]), spelled(c, pair[1]))
		}
	}
	// select never takes an answer that rests on something else. detect prints one, unless it must not.
	if c.Command.Name == "detect" && c.IsSet("for") && !c.IsSet("wait") && !c.Bool("strict") {
		return usagef(c, "--for needs --wait or --strict")
	}
	return nil
}

// without has the values with which a flag asks for no more than if it were left out. A path may be called like one of
// them.
var without = map[string]string{
	"mode": "auto", "output": "text", "check": "false", "stale": "false", "all": "false", "guess": "false",
}

// given reports whether a flag was given a value that asks for something.
func given(c *cli.Context, flag string) bool {
	return c.IsSet(flag) && c.String(flag) != without[flag]
}

// repeated returns a flag that was given twice, under either of its names, "" if there is none: the library takes the
// last and ignores the others.
func repeated(c *cli.Context) string {
	seen := map[string]bool{}
	words := c.Lineage()[1].Args().Tail()
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		name, _, hasValue := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
		words = words[1:]
		f := flagCalled(c, name)
		if f == nil { // "--" and "-" end the flags
			return ""
		}
		first := f.Names()[0]
		if seen[first] {
			return dashed(first)
		}
		seen[first] = true
		_, isBool := f.(*cli.BoolFlag)
		if !hasValue && !isBool && len(words) > 0 {
			words = words[1:]
		}
	}
	return ""
}

func flagCalled(c *cli.Context, name string) cli.Flag {
	for _, f := range c.Command.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// spelled is a flag as it was given, with its value where that matters.
func spelled(c *cli.Context, flag string) string {
	switch flag {
	case "mode", "output":
		return "--" + flag + " " + c.String(flag)
	}
	return "--" + flag
}

// unknownCommand is the error for a command that does not exist.
func unknownCommand(app *cli.App, typed string) error {
	question := cli.SuggestCommand(app.Commands, typed) // Did you mean "detect"?
	_, nearest, _ := strings.Cut(question, `"`)
	nearest, _, _ = strings.Cut(nearest, `"`)
	return failure{2, fmt.Errorf("unknown command %q%s", typed, didYouMean(typed, nearest)), seeHelp}
}

// noHelpTopic returns the command that help was asked for, if there is no such command. The library says so by an
// error of its own.
func noHelpTopic(err error) (topic string, ok bool) {
	if _, own := err.(cli.ExitCoder); !own {
		return "", false
	}
	topic, ok = strings.CutPrefix(err.Error(), "No help topic for '")
	return strings.TrimSuffix(topic, "'"), ok
}

// wrongFlag says what is wrong with a flag. The library's messages drop one dash of it, and it would print help on
// stdout.
func wrongFlag(c *cli.Context, err error, _ bool) error {
	message := err.Error()
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: -"); ok {
		nearest := cli.SuggestFlag(c.Command.Flags, name, false)
		return usagef(c, "unknown flag %q%s", dashed(name), didYouMean(name, nearest))
	}
	if name, ok := strings.CutPrefix(message, "flag needs an argument: -"); ok {
		return usagef(c, "%s needs a value", dashed(name))
	}
	var value, name string
	if scanned(message, "invalid boolean value %q for -%s", &value, &name) {
		return usagef(c, "%s takes no value", dashed(name))
	}
	if scanned(message, "invalid value %q for flag -%s", &value, &name) {
		return usagef(c, "%s %q is not a duration such as 90s or 5m", dashed(name), value)
	}
	if syntax, ok := strings.CutPrefix(message, "bad flag syntax: "); ok && printable(syntax) != syntax {
		return usagef(c, "bad flag syntax: %q", syntax)
	}
	if flag := repeated(c); flag != "" { // under two names, which the library refuses by itself
		return usagef(c, "%s is given more than once", flag)
	}
	return usagef(c, "%w", err)
}

// scanned takes the value and the name of a flag out of a message of package flag, which goes on after a colon.
func scanned(message, format string, value, name *string) bool {
	_, err := fmt.Sscanf(message, format, value, name)
	*name = strings.TrimSuffix(*name, ":")
	return err == nil
}

// dashed is a flag as people write it: -o, --output.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// didYouMean suggests what the library takes for the nearest. It always finds something, so the first letter must be
// right.
func didYouMean(typed, nearest string) string {
	word := strings.Trim(nearest, "-")
	if word == "" || !strings.HasPrefix(typed, word[:1]) {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", nearest)
}
