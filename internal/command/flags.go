// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// choice is the value of a flag that must be one of some words.
type choice struct {
	value string
	words []string
}

func choose(words ...string) choice { return choice{value: words[0], words: words} }

func (c *choice) String() string { return c.value }

// Set is called by package flag, which puts value and flag before the error.
func (c *choice) Set(value string) error {
	for _, word := range c.words {
		if word == value {
			c.value = value
			return nil
		}
	}
	return errors.New("not one of " + strings.Join(c.words, ", "))
}

// path is the value of a flag that names a file. An empty one is a shell's variable that is not set.
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

func dirFlag(dir *path, otherwise string) cli.Flag {
	return &cli.GenericFlag{
		Name:        "dir",
		Value:       dir,
		DefaultText: otherwise,
		Usage:       "`DIR` has the iptables commands",
	}
}

// Directories that --dir stands for where it is not given.
const (
	wrappersDir = "the wrapper's own"
	clientsDir  = "by PATH"
)

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

// patience is what --wait and --for say: for how long to wait, and for what.
type patience struct {
	limit time.Duration
	goal  choice
}

const (
	forAny     = "any"
	forKubelet = "kubelet"
)

func newPatience() patience { return patience{goal: choose(forAny, forKubelet)} }

func (p *patience) flags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{
			Name:        "wait",
			Destination: &p.limit,
			DefaultText: "do not wait",
			Usage:       "wait up to `DURATION`, such as 90s, for a certain\n\tanswer",
		},
		&cli.GenericFlag{
			Name:  "for",
			Value: &p.goal,
			Usage: "`EVIDENCE` that must decide: any, or kubelet\n\t(its chains alone)",
		},
	}
}

// met reports whether a result is what --for asks for. What the container remembers counts by the reason that it was
// remembered for.
func (p *patience) met(place doctor.Place, r evidence.Result) bool {
	reason := r.Reason
	if reason == evidence.Remembered {
		reason = place.Memory.Read().Reason
	}
	return r.Conclusive && (p.goal.value == forAny || reason.Kubelet())
}
