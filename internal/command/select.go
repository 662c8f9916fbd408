// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// errOtherNetwork means that the answer may not apply to the commands of this container, as for an agent in a Pod's
// network namespace.
var errOtherNetwork = errors.New("this is not known to be the network namespace of process 1")

func (s *session) selectCommand() *cli.Command {
	var strict bool
	return &cli.Command{
		Name:      "select",
		Usage:     "decide now, or take this backend, and store it",
		ArgsUsage: "[nft|legacy]",
		Description: "Makes the six commands run the backend that the host uses, or the one that\n" +
			"you name, until reset. If nothing proves the host's backend, the answer is a\n" +
			"guess. Prints the directory in which it was stored. Example, in the entry\n" +
			"point of a container with a writable root:\n\n" +
			"   iptables-wrapper select && exec agent",
		Flags: []cli.Flag{
			boolFlag(&strict, "strict", "do not store a guess: exit with status 3"),
		},
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return s.selectHost(strict)
			}
			named := detect.Backend(c.Args().First())
			if !named.Valid() {
				return usagef(c, "backend %q is not one of nft, legacy", named)
			}
			if strict {
				return usagef(c, "--strict cannot be combined with a named backend")
			}
			return s.selectNamed(named)
		},
	}
}

// selectHost stores the backend that the host uses.
func (s *session) selectHost(strict bool) error {
	if !link.OwnNetwork() {
		return fmt.Errorf("select: %w", errOtherNetwork)
	}
	d, err := link.Switched()
	if err != nil {
		return fmt.Errorf("select: %w", err)
	}
	defer d.Close()
	r, err := detect.Host("")
	if call.Scarce(err) && !r.Certain {
		return fmt.Errorf("select: %w", err)
	}
	if strict && !r.Certain {
		return failure{
			status: statusUncertain,
			err:    fmt.Errorf("select: not certain, nothing is stored: %s", r),
			try:    "name the host's backend if you know it, or select without --strict",
		}
	}
	backend, p, err := call.Find(r, "iptables", d.Path())
	err = s.store(d, backend, p, err)
	if err == nil && !r.Certain {
		s.say("not certain: %s", r)
	}
	return err
}

// selectNamed stores a backend that the user names.
func (s *session) selectNamed(b detect.Backend) error {
	d, err := link.Switched()
	if err != nil {
		return fmt.Errorf("select: %w", err)
	}
	defer d.Close()
	p, err := exec.Find(b, "iptables", d.Path())
	return s.store(d, b, p, err)
}

// store points the switch at the program of a backend, unless err says that it was not found.
func (s *session) store(d *link.Dir, b detect.Backend, p exec.Program, err error) error {
	if err == nil {
		err = d.Select(b, p.Path)
	}
	if err != nil {
		return fmt.Errorf("select %s: %w", b, err)
	}
	s.print("%s in %s", b, d.Path())
	return nil
}

func (s *session) resetCommand() *cli.Command {
	return &cli.Command{
		Name:  "reset",
		Usage: "forget the backend: the next call decides again",
		Description: "Makes the six commands run the wrapper again, and removes the record of this\n" +
			"network namespace. Rules stay where they are. Example:\n\n" +
			"   iptables-wrapper reset",
		Action: func(*cli.Context) error { return s.reset() },
	}
}

func (s *session) reset() error {
	record, err := link.OpenRecord()
	if err != nil {
		s.say("a record, if there is one, stays: %v", err)
	}
	d, missing := link.Switched()
	err = cmp.Or(missing, link.Reset(record, d))
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	s.print("the next call in %s decides again", d.Path())
	return nil
}
