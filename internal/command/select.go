// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/choose"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

func selectBackend(c *cli.Context) error {
	named := detect.Backend(c.Args().First())
	strict := c.Bool("strict")
	if !c.Args().Present() {
		r, err := decideNow(strict)
		if err != nil {
			return fmt.Errorf("select: %w", err)
		}
		return keep(c, r)
	}
	if !named.Valid() {
		return usagef(c, "backend %q is not one of nft, legacy", named)
	}
	if strict {
		return usagef(c, "--strict cannot be combined with a named backend")
	}
	return keep(c, detect.Result{Backend: named, Certain: true})
}

// decideNow returns the backend that the host uses, or an error if it must not be stored.
func decideNow(strict bool) (detect.Result, error) {
	if !link.OwnNetwork() {
		return detect.Result{}, remedy.ErrOtherNetwork
	}
	r, err := detect.Host("")
	switch {
	case r.Certain:
		return r, nil
	case plan.IsScarce(err):
		return r, fmt.Errorf("%w: %w", plan.ErrScarce, err)
	case err != nil:
		return r, fmt.Errorf("%w: %w", remedy.ErrNotAsked, err)
	case strict:
		return r, cli.Exit(fmt.Errorf("%w: %s", remedy.ErrNotStored, r), statusUncertain)
	}
	return r, nil // r says why a guess is one
}

// keep points the switch at the program that a call with this result runs, and records that backend.
func keep(c *cli.Context, r detect.Result) error {
	d, err := choose.OpenSwitched()
	if err != nil {
		return fmt.Errorf("select %s: %w", r.Backend, err)
	}
	defer d.Close()
	backend, program, err := plan.Guess(r, func(b detect.Backend) (exec.Program, error) {
		return exec.Find(b, "iptables", d.Path)
	})
	if err == nil {
		err = choose.Select(d, backend, program.Path)
	}
	if err != nil {
		return fmt.Errorf("select %s: %w", backend, err)
	}
	printLine(c.App.Writer, "the commands in %s run %s", d.Path, backend)
	if !r.Certain {
		say(c.App.ErrWriter, "%v: %s", remedy.ErrUncertain, r)
	}
	record, err := link.OpenRecord()
	if err == nil && link.OwnContainer() {
		err = record.Put(backend)
	}
	if err != nil {
		say(c.App.ErrWriter, "%s is stored, but not recorded: %v", backend, err)
	}
	return nil
}

// reset resets what it can: the record even if there is no switch, and the switch even if the record cannot be opened.
func reset(c *cli.Context) error {
	record, recordErr := link.OpenRecord()
	d, switchErr := choose.OpenSwitched()
	err := cmp.Or(switchErr, choose.Reset(record, d))
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if recordErr != nil {
		say(c.App.ErrWriter, "a record, if there is one, stays: %v", recordErr)
	}
	printLine(c.App.Writer, "the next call in %s decides again", d.Path)
	return nil
}
