// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"
)

// choice is the value of a flag that must be one of some words.
type choice struct {
	value string
	words []string
}

func choose(words ...string) choice { return choice{value: words[0], words: words} }

func (c *choice) String() string { return c.value }

// Set is called by package flag, which adds the value and the flag to the error.
func (c *choice) Set(value string) error {
	for _, word := range c.words {
		if word == value {
			c.value = value
			return nil
		}
	}
	return errors.New("not one of " + strings.Join(c.words, ", "))
}

// path is the value of a flag that names a file. An empty one is refused: it is often an unset shell variable.
type path string

func (p *path) String() string { return string(*p) }

// Set is called by package flag.
func (p *path) Set(value string) error {
	if value == "" {
		return errors.New("a path is needed")
	}
	*p = path(value)
	return nil
}

func outputFlag(output *choice) cli.Flag {
	return &cli.GenericFlag{
		Name:    "output",
		Aliases: []string{"o"},
		Value:   output,
		Usage:   "`FORMAT`: " + strings.Join(output.words, ", "),
	}
}

func boolFlag(destination *bool, name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Destination: destination, Usage: usage, DisableDefaultText: true}
}
