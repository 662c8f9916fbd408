// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os/signal"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
)

// statusInconclusive is the exit status of a command that needs a conclusive answer and got none.
const statusInconclusive = 3

func (s *session) detectCommand() *cli.Command {
	const name = "detect"
	return &cli.Command{
		Name:  name,
		Usage: "print the backend that this network namespace uses: nft or legacy",
		Description: "Asks the kernel, changes nothing and starts no process. A line on stderr reports an answer that is not\n" +
			"conclusive, and an iptables in this container that runs the other backend. Example:\n\n   iptables-wrapper detect -o table",
		Flags: []cli.Flag{
			enumFlag(name, &cli.StringFlag{
				Name: "output", Aliases: []string{"o"}, Value: "text",
				Usage: "output `FORMAT`: text (just the mode), table (all evidence, human-readable),\n" +
					"json (all evidence), env (shell variables) or nfd (Node Feature Discovery)",
			}),
			&cli.BoolFlag{Name: "strict", Usage: "exit with status 3 if the answer is not conclusive", DisableDefaultText: true},
			waitFlag(name),
			pathFlag(name, "netns", "inspect the network namespace at `PATH`, for example /run/netns/NAME"),
			&cli.StringFlag{Name: "pid", Usage: "inspect the network namespace of process `N`"},
		},
		Action: s.detect,
	}
}

func (s *session) detect(c *cli.Context) error {
	variable, err := s.variable()
	if err != nil {
		return err
	}
	if err := enterNetns(c); err != nil {
		return err
	}
	elsewhere := c.IsSet("netns") || c.IsSet("pid")
	format := formats[c.String("output")]
	q := detect.Query{Override: variable, Everything: true}
	if dir, err := s.w.Dir(); err == nil {
		q.Installed = doctor.Installed(s.w, dir)
	}
	var remembered detect.Mode
	if !elsewhere && variable == "" {
		remembered = s.w.Memory(s.w.Container()).Mode()
	}
	r, err := s.detectOrWait(c, q, remembered)
	if err != nil {
		return err
	}
	if guess := r.Reason == detect.OnlyInstalled || r.Reason == detect.Default; guess && r.Of(detect.NFT, detect.IPv4).Supported == detect.Yes {
		q.DryRun = true // as a call that adds something would
		r = doctor.Ask(q, remembered)
	}
	a := answer{Result: r, Network: doctor.ThisNetwork(s.w, r)}
	if !elsewhere {
		a.Here = s.here(variable, remembered, a.Result)
	}
	if err := format.print(s.page(), a); err != nil {
		return err
	}
	if !format.saysAll {
		for _, line := range a.remarks() {
			s.say("%s", line)
		}
	}
	switch {
	case a.Conclusive:
		return nil
	case c.Bool("strict"):
		return failure{statusInconclusive, fmt.Errorf("not conclusive: %s", a.Uncertainty()), ""}
	case !format.saysAll:
		s.say("not conclusive: %s", a.Uncertainty())
	}
	return nil
}

// here is what iptables runs in this container; nil where the wrapper's directory cannot be found. The host is what the
// evidence shows, so with an override it has to be asked.
func (s *session) here(variable, remembered detect.Mode, host detect.Result) *doctor.Here {
	dir, err := s.w.Dir()
	if err != nil {
		return nil
	}
	if variable != "" {
		host = detect.Host()
	}
	h := doctor.Look(s.w, dir, variable, remembered, host)
	return &h
}

// detectOrWait answers the query, after a wait if one was asked for.
func (s *session) detectOrWait(c *cli.Context, q detect.Query, remembered detect.Mode) (detect.Result, error) {
	limit := c.Duration("wait")
	r := doctor.Ask(q, remembered)
	if limit == 0 || q.Override != "" || r.Conclusive {
		return r, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	// What the caller ignores stays ignored: the runtime by itself would end the process at SIGTERM.
	interrupt, terminate := ctx, ctx
	if process.Ignored(unix.SIGINT) {
		signal.Ignore(unix.SIGINT)
	} else {
		interrupt, stop = signal.NotifyContext(ctx, unix.SIGINT)
		defer stop()
		terminate = interrupt
	}
	if process.Ignored(unix.SIGTERM) {
		signal.Ignore(unix.SIGTERM)
	} else {
		terminate, stop = signal.NotifyContext(interrupt, unix.SIGTERM)
		defer stop()
	}
	// From here on a signal ends the wait: somebody may go by this line.
	s.say("waiting up to %s for kubelet's chains, or rules: %s", limit, r.Uncertainty())
	waited := q
	waited.DryRun, waited.Everything, waited.Remembered = false, false, remembered
	r, err := waited.Wait(terminate)
	switch {
	case r.Conclusive:
		s.say("found: %v", r)
	case ctx.Err() != nil && err != nil && !errors.Is(err, ctx.Err()):
		s.say("timed out (checked every %s: %v)", detect.PollInterval, err)
	case ctx.Err() != nil:
		s.say("timed out")
	case interrupt.Err() != nil:
		return r, failure{128 + int(unix.SIGINT), errors.New("interrupted"), ""}
	default:
		return r, failure{128 + int(unix.SIGTERM), errors.New("terminated"), ""}
	}
	return doctor.Ask(q, remembered), nil
}
