// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

func (s *session) detectCommand() *cli.Command {
	return &cli.Command{
		Name:  "detect",
		Usage: "print the backend that the host uses: nft or legacy",
		Description: "Asks the kernel about this network namespace, changes nothing and starts no\n" +
			"process. " + programs.ModeVariable + ", if it is set, is the answer, in every\n" +
			"format: the commands obey it too. A line on stderr says so if the answer is\n" +
			"a guess, and if iptables in this container runs the other backend. Example:\n\n" +
			"   iptables-wrapper detect -o table\n\nFormats:\n\n" +
			listed(formats),
		Flags: append([]cli.Flag{
			outputFlag(formats),
			boolFlag("strict", "exit with status 3 if the answer is not certain"),
			checked(&cli.StringFlag{
				Name:  "netns",
				Usage: "inspect the network namespace at `PATH`,\n\tsuch as /run/netns/NAME",
			}),
			&cli.StringFlag{Name: "pid", Usage: "inspect the network namespace of process `N`"},
		}, waitFlags()...),
		Action: s.detect,
	}
}

func (s *session) detect(c *cli.Context) error {
	variable, err := s.variable()
	if err != nil {
		return err
	}
	elsewhere := c.IsSet("netns") || c.IsSet("pid")
	if elsewhere {
		err = s.enterNetns(c)
	}
	if err != nil {
		return err
	}
	dir, noDir := here.Dir(s.names)
	q := detect.Query{Override: variable, Everything: true}
	r := s.detectOrWait(c, dir, q)
	output := chosen(c)
	undecided := r.Reason == detect.Default && r.Of(detect.NFT, detect.IPv4).Supported == detect.Yes
	if undecided && !output.withoutDryRun {
		q.DryRun = true // as a call that adds something would
		r = here.Ask(s.names, dir, q)
	}
	a := answer{Result: r, Network: here.ThisNetwork(s.names.Container, r)}
	if !elsewhere && noDir == nil {
		runs, host := here.Look(s.names, dir, q, r)
		a.Here = &runs
		a.contradict(host)
	}
	output.print(s, a)
	s.remark(a)
	if !c.Bool("strict") {
		return nil
	}
	if !a.Conclusive {
		return failure{status: 3, try: moreCertain(a)}
	}
	if !waitFor(c).EndedBy(a.Result) {
		const try = "--wait 2m if kubelet is starting, or --for any"
		return failure{3, errors.New(withoutKubelet(a.Result)), try}
	}
	return nil
}

// moreCertain says what to do about an answer that is not certain.
func moreCertain(a answer) string {
	switch {
	case a.Reason == detect.Override:
		return "again without " + programs.ModeVariable
	case a.Here == nil: // doctor looks at this container's own network alone
		return "--output table, which prints all evidence"
	}
	return program + " doctor, which says what to do about it"
}

// detectOrWait answers the query, after a wait if one was asked for. There is no point in waiting for kubelet's chains
// where no kubelet makes any.
func (s *session) detectOrWait(c *cli.Context, dir string, q detect.Query) detect.Result {
	limit := c.Duration("wait")
	needed := waitFor(c)
	r := here.Ask(s.names, dir, q)
	if q.Override != "" {
		s.sayNoWait(c, q.Override)
		return r
	}
	if limit == 0 || needed.EndedBy(r) {
		return r
	}
	if needed == detect.ForKubelet && here.ThisNetwork(s.names.Container, r).Own {
		s.say("not waiting for kubelet: %s", here.PodNetwork)
		return r
	}
	signals := s.endBySignal()
	// From here on a signal ends the wait: somebody may go by this line.
	goal := "kubelet's chains, or rules"
	if needed == detect.ForKubelet {
		goal = "kubelet's chains"
	}
	s.say("waiting up to %s for %s: %s", limit, goal, cmp.Or(r.Uncertainty(), "so far, "+r.Because()))
	s.wait(limit, dir, needed)
	signal.Stop(signals) // one that comes later ends the process
	return here.Ask(s.names, dir, q)
}

// endBySignal ends the process with the status that shells give it, because process 1 of a container receives only the
// signals that it asks for. What the caller ignores stays ignored: the runtime by itself would end the process at
// SIGTERM.
func (s *session) endBySignal() chan os.Signal {
	signals := make(chan os.Signal, 1)
	for _, number := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		if process.Ignored(number) {
			signal.Ignore(number)
		} else {
			signal.Notify(signals, number)
		}
	}
	go func() {
		number := (<-signals).(unix.Signal)
		fmt.Fprintf(s.stderr, "%s: ended by a signal: %v\n", program, number)
		os.Exit(128 + int(number))
	}()
	return signals
}

// wait waits for more than is known, and says how that ended. It asks with what the container remembers, and whether
// somebody has guessed, which may change meanwhile.
func (s *session) wait(limit time.Duration, dir string, needed detect.WaitFor) {
	end := time.After(limit)
	for {
		r := here.Ask(s.names, dir, detect.Query{})
		if needed.EndedBy(r) {
			s.say("found: %v", r)
			return
		}
		select {
		case <-time.After(detect.PollInterval):
		case <-end:
			s.say("timed out")
			return
		}
	}
}

// enterNetns moves this thread into the network namespace that the flags name: by a file or a process.
func (s *session) enterNetns(c *cli.Context) error {
	path := c.String("netns")
	if c.IsSet("pid") {
		pid, err := strconv.ParseUint(c.String("pid"), 10, 31)
		if err != nil || pid == 0 {
			return usagef(c, "--pid %q is not a process ID such as 1", c.String("pid"))
		}
		path = fmt.Sprintf("/proc/%d/ns/net", pid)
	}
	err := setNetns(path)
	if err == nil {
		s.names.Container = memory.ThisContainer()
		return nil
	}
	try := ""
	switch {
	case errors.Is(err, unix.EINVAL), notThere(err) && !c.IsSet("pid"):
		try = "the file of a network namespace, such as /run/netns/NAME or /proc/1/ns/net"
	case errors.Is(err, unix.ENOENT) && c.IsSet("pid"):
		try = "a process ID that is visible here; a Pod sees the host's processes only with hostPID: true"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		try = "again with CAP_SYS_ADMIN, and CAP_SYS_PTRACE for another user's process"
	}
	return failure{1, fmt.Errorf("detect: enter the network namespace %q: %w", path, err), try}
}

func setNetns(path string) error {
	const dontBlock = unix.O_NONBLOCK | unix.O_NOCTTY // on a FIFO or a terminal
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|dontBlock, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

// remark says what makes the answer less than the whole truth.
func (s *session) remark(a answer) {
	if a.Here != nil && a.Here.Differs {
		s.say("iptables in this container is %s: it differs from the host; run: iptables-wrapper doctor", a.Here)
	}
	if a.Network.Own && !a.Conclusive {
		s.say(here.PodNetwork)
	}
	for _, c := range a.Conflicts {
		s.say("conflict: %s; run: iptables-wrapper doctor", c.Explain())
	}
	if !a.Conclusive {
		s.say("not certain: %s", a.Uncertainty())
	}
}
