// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/call"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

type detectFlags struct {
	output choice
	strict bool
	wait   patience
}

func (s *session) detectCommand() *cli.Command {
	f := &detectFlags{output: choose("text", "table", "json"), wait: newPatience()}
	return &cli.Command{
		Name:  "detect",
		Usage: "print the backend that the host uses: nft or legacy",
		Description: "Asks the kernel about this network namespace. Starts no process, changes\n" +
			"nothing. If " + call.ModeVariable + " is set, that is the answer. Lines on\n" +
			"stderr say if it is a guess, and if iptables in this container runs the\n" +
			"other backend. Example:\n\n" +
			"   iptables-wrapper detect -o table\n\n" +
			"About another network namespace, from the node:\n\n" +
			"   nsenter -t PID -n iptables-wrapper detect",
		Flags: append([]cli.Flag{
			outputFlag(&f.output),
			boolFlag(&f.strict, "strict", "exit with status 3 unless the answer is certain"),
		}, f.wait.flags()...),
		Action: func(*cli.Context) error { return s.detect(f) },
	}
}

func (s *session) detect(f *detectFlags) error {
	variable, err := override()
	if err != nil {
		return err
	}
	place := doctor.At("")
	h := s.askHost(place, evidence.Query{
		Override:   variable,
		DryRun:     true, // as a call that adds to table filter
		Everything: true, // conflicts, too
	}, &f.wait)
	return s.report(newAnswer(place, h), f, f.wait.met(place, h.Result))
}

// report prints an answer. met says that it is one that --strict asks for.
func (s *session) report(a answer, f *detectFlags, met bool) (err error) {
	switch f.output.value {
	case "table":
		s.printTable(a)
	case "json":
		err = s.json(a)
	default:
		s.answer("%s", a.Mode)
	}
	s.remark(a)
	if err != nil || !f.strict || met {
		return err
	}
	if a.Conclusive {
		err = fmt.Errorf("detect: %s", withoutKubelet(a.Host))
	} // otherwise the remark has said it
	return failure{status: statusUncertain, err: err, try: moreCertain(a.Host)}
}

// override is what IPTABLES_WRAPPER_MODE says.
func override() (evidence.Mode, error) {
	mode, err := call.Override()
	if err != nil {
		err = failure{statusUsage, err, "set it to one of these, or unset it"}
	}
	return mode, err
}

// askHost finds out what the host uses, after a wait if one was asked for. The environment's answer does not change.
func (s *session) askHost(place doctor.Place, q evidence.Query, wait *patience) doctor.Host {
	h := place.Host(q)
	met := func(r evidence.Result) bool { return wait.met(place, r) }
	if q.Override != "" || wait.limit <= 0 || met(h.Result) {
		return h
	}
	goal := "a certain answer"
	if wait.goal.value == forKubelet {
		goal = "kubelet's chains"
	}
	s.say("waiting up to %s for %s; so far: %s", wait.limit, goal, h)
	ctx, cancel := context.WithTimeout(context.Background(), wait.limit)
	defer cancel()
	_, err := evidence.Wait(ctx, func() evidence.Result { return place.Host(evidence.Query{}).Result }, met)
	if err != nil {
		s.say("nothing more found after %s", wait.limit)
	}
	return place.Host(q)
}

// withoutKubelet says why a certain answer is not what --for kubelet asks for.
func withoutKubelet(h doctor.Host) string { return "kubelet's chains were not found; " + h.Because }

// moreCertain says what to do about an answer that is not certain enough.
func moreCertain(h doctor.Host) string {
	switch {
	case h.Reason == evidence.Override:
		return "again without " + call.ModeVariable
	case h.Conclusive:
		return "--wait 2m if kubelet is starting, or --for any"
	}
	return program + " doctor, which says what to do about it"
}

// remark says what makes the answer less than the whole truth.
func (s *session) remark(a answer) {
	if a.differs() {
		s.say("iptables in this container runs the other backend: %s; run: iptables-wrapper doctor", a.Here)
	}
	if a.Conflict != "" && a.Conflict != a.Uncertainty {
		s.say("conflict: %s; run: iptables-wrapper doctor", a.Conflict)
	}
	if !a.Conclusive {
		s.say("not certain: %s", a.Uncertainty)
	}
}
