// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

func (s *session) selectCommand() *cli.Command {
	return &cli.Command{
		Name:  "select",
		Usage: "make the iptables commands run the host's backend",
		Description: "For an init container. Prints the backend. If the answer is not certain,\n" +
			"nothing changes and the status is 3. If the switch cannot be changed, this\n" +
			"container remembers the backend. Example, on a node of Kubernetes:\n\n" +
			"   iptables-wrapper select --wait 2m --for kubelet",
		Flags: append([]cli.Flag{
			dirFlag(wrappersDir),
			checked(&cli.StringFlag{
				Name: "mode",
				Usage: "backend to use; `MODE` is nft, legacy, or auto to\n\t" +
					"detect it (default: $" + programs.ModeVariable + ", or auto)",
			}, "auto", "nft", "legacy"),
			boolFlag("guess", "if the answer is not certain, remember the best\n\t"+
				"guess and exit with status 0; the commands run\n\tthe wrapper"),
		}, waitFlags()...),
		Action: s.selectBackend,
	}
}

func (s *session) resetCommand() *cli.Command {
	return &cli.Command{
		Name:  "reset",
		Usage: "make the iptables commands run this wrapper again",
		Description: "Forgets the backend, so the next call detects it again. Rules that were\n" +
			"written stay. Example:\n\n   iptables-wrapper reset",
		Flags:  []cli.Flag{dirFlag(wrappersDir)},
		Action: s.reset,
	}
}

// selectBackend detects the backend unless one was given, and stores it. What was detected is stored only if it is
// certain.
func (s *session) selectBackend(c *cli.Context) error {
	dir, err := s.ownDir(c)
	if err != nil {
		return err
	}
	err = s.isDir(dir) // before a wait for nothing
	if err != nil {
		return aboutDir(c, fmt.Errorf("select: %w", err))
	}
	mode, err := s.requested(c)
	if err != nil {
		return err
	}
	if mode != "" {
		s.sayNoWait(c, mode)
		_, err = s.store(dir, detect.Memory{Mode: mode, Reason: detect.Override, Because: "somebody selected it"},
			false)
		return aboutDir(c, err)
	}
	r := s.detectOrWait(c, dir, detect.Query{Everything: true}) // what detect says is what is stored
	doubt := s.doubt(r, waitFor(c))
	switch {
	case doubt == "":
		_, err = s.store(dir, found(r), false)
		return aboutDir(c, err)
	case c.Bool("guess"):
		return aboutDir(c, s.guess(dir, r, doubt))
	}
	fmt.Fprintln(s.stdout, r.Mode)
	return failure{
		status: 3,
		err:    fmt.Errorf("not certain, nothing changed: %s", doubt),
		try:    "--mode with the host's backend if you know it, or --guess to go on without",
	}
}

// isDir returns an error if a path leads to no directory.
func (s *session) isDir(path string) error {
	st, err := s.names.Tree.Stat(path)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	return tree.PathError("stat", path, err)
}

// requested is the backend that --mode asks for, or else the variable: "" for auto.
func (s *session) requested(c *cli.Context) (detect.Mode, error) {
	if c.IsSet("mode") {
		return programs.ParseMode(c.String("mode"))
	}
	return s.variable()
}

// sayNoWait says that there is no wait, because the variable has decided. With --mode, --wait and --for are refused;
// but who sets the variable need not know which flags a script uses.
func (s *session) sayNoWait(c *cli.Context, mode detect.Mode) {
	if c.IsSet("wait") || c.IsSet("for") {
		s.say("%s=%s decides, so --wait and --for have no effect", programs.ModeVariable, mode)
	}
}

// doubt says why a result must not be stored as certain, "" if it may. The commands of this container are not about the
// network namespace of another one ("ip netns exec", nsenter --net).
func (s *session) doubt(r detect.Result, needed detect.WaitFor) string {
	in := s.names.Container
	switch {
	case in.OwnNetns == detect.No && in.OwnRoot != detect.No:
		return "this is not the network namespace of the container's first process"
	case r.Conclusive && !needed.EndedBy(r):
		return withoutKubelet(r)
	}
	return r.Uncertainty()
}

// withoutKubelet says what a certain answer rests on where kubelet's chains were needed.
func withoutKubelet(r detect.Result) string {
	return "kubelet's chains were not found; " + r.Because()
}

// found is what the container remembers of a result.
func found(r detect.Result) detect.Memory {
	if r.Remembered != nil {
		return *r.Remembered
	}
	return detect.Memory{Mode: r.Mode, Reason: r.Reason, Conclusive: r.Conclusive, Because: r.Because()}
}

// guess remembers the best guess, unless a backend was stored before, which is no worse.
func (s *session) guess(dir string, r detect.Result, doubt string) error {
	now := s.names.Look(dir)[0]
	if now.Switched && now.Mode != "" {
		s.say("%s was stored before, and stays", now.Mode)
		fmt.Fprintln(s.stdout, now.Mode)
		return nil
	}
	s.say("guessing %s: %s", r.Mode, doubt)
	guess := found(r)
	if r.Remembered == nil {
		guess.Conclusive = false
	}
	laid := wrapped(s.names.Look(dir))
	selected, err := s.store(dir, guess, true)
	if err != nil || selected.Memory != "" {
		return err
	}
	if !laid { // such as an empty directory for another container, whose own memory counts
		s.say("the guess cannot be remembered here, so each call decides again")
		return nil
	}
	return failure{
		status: 3,
		err:    errors.New("not certain, and the guess cannot be remembered here, so each call decides again"),
		try:    inEnvironment(r.Mode),
	}
}

// inEnvironment is what to do where a backend can neither be stored nor remembered.
func inEnvironment(mode detect.Mode) string {
	return programs.ModeVariable + "=" + string(mode) + " in the environment of the container"
}

// wrapped reports whether all commands run the wrapper.
func wrapped(commands []layout.Status) bool {
	return !slices.ContainsFunc(commands, func(s layout.Status) bool { return !s.Wrapper })
}

// store makes the commands in the directory run a backend, or the container remember it, and prints it.
func (s *session) store(dir string, answer detect.Memory, guess bool) (layout.Selected, error) {
	selected, err := s.names.Select(dir, answer, guess)
	if err != nil {
		err = fmt.Errorf("select %s: %w", answer.Mode, err)
	}
	if errors.Is(err, unix.EROFS) && remedy(err) == "" {
		return selected, failure{1, err, inEnvironment(answer.Mode)}
	}
	if err != nil {
		return selected, err
	}
	if selected.Unwritable != nil {
		s.say("the switch cannot be changed (%v); this container remembers %s instead, in %s",
			selected.Unwritable, answer.Mode, selected.Memory)
	}
	fmt.Fprintln(s.stdout, answer.Mode)
	return selected, nil
}

func (s *session) reset(c *cli.Context) error {
	dir, err := s.ownDir(c)
	if err != nil {
		return err
	}
	forgotten, err := s.names.Reset(dir)
	if err != nil {
		return aboutDir(c, fmt.Errorf("reset: %w", err))
	}
	fmt.Fprintf(s.stdout, "all iptables commands in %s run the wrapper\n", tree.Printable(dir))
	if forgotten != "" {
		fmt.Fprintf(s.stdout, "removed %s\n", forgotten)
	}
	return nil
}
