// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/process"
)

func (s *session) detectCommand() *cli.Command {
	return &cli.Command{
		Name:  "detect",
		Usage: "print the backend that the host uses: nft or legacy",
		Description: "Asks the kernel about this network namespace, changes nothing and starts no\n" +
			"process. A line on stderr says so if the answer is a guess, and if iptables\n" +
			"in this container runs the other backend. Example:\n\n   iptables-wrapper detect -o table",
		Flags: append([]cli.Flag{
			checked(&cli.StringFlag{
				Name: "output", Aliases: []string{"o"}, Value: "text",
				Usage: "`FORMAT` is text (the backend alone), table (all\n\tevidence, for people), json (all evidence), env\n\t" +
					"(for a shell's eval) or nfd (a file for Node\n\tFeature Discovery)",
			}, "text", "table", "json", "env", "nfd"),
			boolFlag("strict", "exit with status 3 if the answer is not certain"),
			checked(&cli.StringFlag{Name: "netns", Usage: "inspect the network namespace at `PATH`,\n\tsuch as /run/netns/NAME"}),
			&cli.StringFlag{Name: "pid", Usage: "inspect the network namespace of process `N`"},
		}, waitFlags()...),
		Action: s.detect,
	}
}

func (s *session) detect(c *cli.Context) error {
	variable, err := s.variable()
	elsewhere := c.IsSet("netns") || c.IsSet("pid")
	if err == nil && elsewhere {
		err = s.enterNetns(c)
	}
	if err != nil {
		return err
	}
	dir, noDir := here.Dir(s.names)
	q := detect.Query{Override: variable, Everything: true}
	r := s.detectOrWait(c, dir, q)
	if r.Reason == detect.Default && r.Of(detect.NFT, detect.IPv4).Supported == detect.Yes {
		q.DryRun = true // as a call that adds something would
		r = here.Ask(s.names, dir, q)
	}
	a := answer{Result: r, Network: here.ThisNetwork(s.names.Container, r)}
	if !elsewhere && noDir == nil {
		now, _ := here.Look(s.names, dir, q, r)
		a.Here = &now
	}
	s.answer(c.String("output"), a)
	s.remark(a)
	if !a.Conclusive && c.Bool("strict") {
		return failure{status: 3}
	}
	return nil
}

// detectOrWait answers the query, after a wait if one was asked for. There is no point in waiting for kubelet's chains where no
// kubelet makes any.
func (s *session) detectOrWait(c *cli.Context, dir string, q detect.Query) detect.Result {
	limit, what := c.Duration("wait"), waitFor(c)
	r := here.Ask(s.names, dir, q)
	if limit == 0 || q.Override != "" || what.Ended(r) {
		return r
	}
	if what == detect.ForKubelet && here.ThisNetwork(s.names.Container, r).Own {
		s.say("not waiting for kubelet: %s", here.PodNetwork)
		return r
	}
	signals := make(chan os.Signal, 1)
	for _, number := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		// What the caller ignores stays ignored: the runtime by itself would end the process at SIGTERM.
		if process.Ignored(number) {
			signal.Ignore(number)
		} else {
			signal.Notify(signals, number)
		}
	}
	go func() { // process 1 of a container receives only the signals that it asks for
		number := (<-signals).(unix.Signal)
		fmt.Fprintf(s.stderr, "%s: ended by a signal: %v\n", program, number)
		os.Exit(128 + int(number)) // the status that shells give it
	}()
	// From here on a signal ends the wait: somebody may go by this line.
	goal := map[detect.WaitFor]string{detect.ForAny: "kubelet's chains, or rules", detect.ForKubelet: "kubelet's chains"}[what]
	s.say("waiting up to %s for %s: %s", limit, goal, cmp.Or(r.Uncertainty(), "so far, "+r.Because()))
	wait := detect.Query{WaitFor: what, Guessed: s.names.Memory().Guessed("")}
	if r.Remembered != nil {
		wait.Remembered = *r.Remembered
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	found, err := wait.Wait(ctx)
	signal.Stop(signals) // one that comes later ends the process
	if err != nil {
		s.say("timed out")
	} else {
		s.say("found: %v", found)
	}
	return here.Ask(s.names, dir, q)
}

// enterNetns moves this thread into the network namespace that the flags name: by a file or a process.
func (s *session) enterNetns(c *cli.Context) error {
	path := c.String("netns")
	pid, err := strconv.ParseUint(c.String("pid"), 10, 31)
	switch {
	case c.IsSet("netns") && c.IsSet("pid"):
		return usagef(c, "--netns and --pid cannot be used together")
	case c.IsSet("pid") && (err != nil || pid == 0):
		return usagef(c, "--pid %q is not a process ID such as 1", c.String("pid"))
	case c.IsSet("pid"):
		path = fmt.Sprintf("/proc/%d/ns/net", pid)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0) // so it does not block on a FIFO
	if err == nil {
		defer unix.Close(fd)
		err = unix.Setns(fd, unix.CLONE_NEWNET)
	}
	hint := ""
	switch {
	case err == nil:
		s.names.Container = memory.ThisContainer()
		return nil
	case errors.Is(err, unix.EINVAL):
		hint = "it is not a network namespace"
	case errors.Is(err, unix.ENOENT) && c.IsSet("pid"):
		hint = "no process with that ID is visible here; a Pod sees the host's processes only with hostPID: true"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		hint = "this needs CAP_SYS_ADMIN, and CAP_SYS_PTRACE for another user's process"
	}
	return failure{1, fmt.Errorf("detect: enter the network namespace %q: %w", path, err), hint}
}

// answer is what detect prints: the host's backend and, in this container's own network namespace, what iptables runs.
// Its JSON form is docs/detect.schema.json.
type answer struct {
	detect.Result
	Here    *here.Here   `json:"here,omitempty"`
	Network here.Network `json:"network"`
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

func (s *session) answer(format string, a answer) {
	switch format {
	case "text":
		fmt.Fprintln(s.stdout, a.Mode)
	case "table":
		s.summary(a)
		s.tables(a.Result)
	case "json":
		s.json(a)
	case "env": // lines for a shell's eval. No value needs quotes
		fmt.Fprintf(s.stdout, "IPTABLES_MODE=%s\nIPTABLES_REASON=%s\nIPTABLES_CONCLUSIVE=%t\n", a.Mode, a.Reason, a.Conclusive)
	case "nfd": // a file that Node Feature Discovery turns into labels of the node. A guess is not a feature of the node
		mode := map[bool]detect.Mode{true: a.Mode, false: "unknown"}[a.Conclusive]
		fmt.Fprintf(s.stdout, "iptables.mode=%s\niptables.reason=%s\niptables.conclusive=%t\n", mode, a.Reason, a.Conclusive)
	}
}
