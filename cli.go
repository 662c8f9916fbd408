// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// statusInconclusive is the exit status of a command that needs a conclusive answer and got none.
const statusInconclusive = 3

// version is set by the linker where the build knows better than the module: see the Makefile.
var version string

// commandLine runs a command and returns its exit status: 0, 2 for a call that makes no sense, 1 or what the command
// says for anything else.
func commandLine(w exec.Wrapper, args []string, stdout, stderr io.Writer) int {
	out := &answers{Writer: stdout}
	a := app(w, out, stderr)
	err := onceEach(a, args)
	if err == nil {
		err = a.Run(args)
	}
	if _, ok := err.(cli.ExitCoder); ok { // as it is: one that wraps os/exec's ExitError is ours
		err = usageError{err} // the library's own: help for a command that there is not
	}
	if err == nil {
		err = out.err
	}
	if err != nil {
		return complain(stderr, err)
	}
	return 0
}

// onceEach refuses a flag that is given twice: the library takes the last, and what the caller meant is not known.
func onceEach(a *cli.App, args []string) error {
	if len(args) < 2 {
		return nil
	}
	command := a.Command(args[1])
	if command == nil {
		return nil // an error of its own
	}
	seen := map[cli.Flag]bool{}
	for rest := args[2:]; len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' && rest[0] != "--"; rest = rest[1:] {
		name, _, hasValue := strings.Cut(strings.TrimLeft(rest[0], "-"), "=")
		i := slices.IndexFunc(command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
		if i < 0 {
			continue
		}
		flag := command.Flags[i]
		if seen[flag] {
			return usageError{fmt.Errorf("%s: --%s is given twice", command.Name, flag.Names()[0])}
		}
		seen[flag] = true
		if _, isBool := flag.(*cli.BoolFlag); !isBool && !hasValue && len(rest) > 1 {
			rest = rest[1:] // its value
		}
	}
	return nil
}

// app is set up so that nothing but answers and requested help goes to stdout, and so that every error comes back to
// commandLine: by itself the library prints help on stdout for a wrong flag, passes over surplus arguments, and exits.
func app(w exec.Wrapper, stdout, stderr io.Writer) *cli.App {
	wait := &cli.DurationFlag{
		Name: "wait", DefaultText: "not at all",
		Usage: "wait until the answer is conclusive, for `DURATION` at most: 90s, 5m",
	}
	directory := &cli.PathFlag{Name: "dir", Usage: "the `DIR` of the six names (default: where this program's file is,\n" +
		"if they or iptables-nft are there; else where those are)"}
	commands := []*cli.Command{
		{
			Name:  "detect",
			Usage: "print the backend that this network namespace uses: nft or legacy",
			Description: "Asks the kernel, changes nothing and starts no process. If the answer is not conclusive, a line on\n" +
				"stderr says why. Example:\n\n   iptables-wrapper detect -o table",
			Flags: []cli.Flag{
				&choice{&cli.StringFlag{
					Name: "output", Aliases: []string{"o"}, Value: "text",
					Usage: "print it as `FORMAT`: text (the word), table (all evidence, for people), json (all evidence, for\n" +
						"programs), env (lines for a shell's eval) or nfd (lines for Node Feature Discovery)",
				}, []string{"text", "table", "json", "env", "nfd"}},
				&cli.BoolFlag{Name: "strict", Usage: "end with status 3 if the answer is not conclusive", DisableDefaultText: true},
				wait,
				&cli.StringFlag{
					Name: "netns", TakesFile: true,
					Usage: "look into the network namespace at `PATH`, as \"ip netns add\" makes it",
				},
				&cli.StringFlag{Name: "pid", Usage: "look into the network namespace of the process `N`"},
			},
			Action: func(c *cli.Context) error { return detectCommand(w, c, stdout, stderr) },
		},
		{
			Name:  "doctor",
			Usage: "say what iptables can and cannot do here, and what to do about it",
			Description: "Writes no rule. Runs iptables' programs to see whether they work, and asks the kernel for matches and\n" +
				"targets, for which it may load modules. Status 1 if there is a problem. Example:\n\n   iptables-wrapper doctor",
			Flags: []cli.Flag{
				directory,
				&choice{
					&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "print it as `FORMAT`: table or json"},
					[]string{"table", "json"},
				},
			},
			Action: func(c *cli.Context) error {
				return doctorCommand(w, c.String("dir"), c.String("output"), stdout, stderr)
			},
		},
		{
			Name:  "install",
			Usage: "point the six names of iptables at this program",
			Description: "Copies this program into DIR if it runs from elsewhere. Run again, it changes nothing. Example:\n\n" +
				"   COPY iptables-wrapper /usr/sbin/\n   RUN iptables-wrapper install",
			Flags: []cli.Flag{
				directory,
				&cli.PathFlag{Name: "root", Usage: "install into the root file system at `ROOT`, from outside; DIR is a path in it.\n" +
					"Runs nothing that is in it, and needs CAP_SYS_CHROOT"},
				&choice{&cli.StringFlag{
					Name: "alternatives", Value: "auto",
					Usage: "register with update-alternatives or alternatives `WHEN`: auto (where the names are under them,\n" +
						"so that they keep the wrapper) or never (plain links)",
				}, []string{"auto", "never"}},
				&cli.BoolFlag{Name: "force", Usage: "also replace what is neither a wrapper nor a link to iptables"},
				&cli.BoolFlag{Name: "skip-checks", Usage: "do not check which iptables programs are there"},
			},
			Action: func(c *cli.Context) error {
				if c.IsSet("root") {
					if err := enterRoot(&w, c.String("root")); err != nil {
						return err
					}
				}
				options := exec.Options{Force: c.Bool("force"), Alternatives: c.String("alternatives") == "auto"}
				return install(w, c.String("dir"), options, c.Bool("skip-checks"), stdout, stderr)
			},
		},
		{
			Name:  "select",
			Usage: "decide now, point the six names at the programs of that mode, and print the mode",
			Description: "For an init step; runs nothing. Status 3 if the answer is not conclusive (the names stay as they\n" +
				"are), 1 if they cannot be moved. Example:\n\n   iptables-wrapper select --mode auto",
			Flags: []cli.Flag{
				directory,
				&choice{
					&cli.StringFlag{Name: "mode", Usage: "take `MODE`: auto, nft or legacy (default: $" + modeVariable + ", or auto)"},
					[]string{"auto", "nft", "legacy"},
				},
				wait,
			},
			Action: func(c *cli.Context) error { return selectCommand(w, c, stdout, stderr) },
		},
		{
			Name:        "reset",
			Usage:       "point the six names at this program again",
			Description: "The next call decides afresh. Example:\n\n   iptables-wrapper reset",
			Flags:       []cli.Flag{directory},
			Action:      func(c *cli.Context) error { return reset(w, c.String("dir"), stdout) },
		},
		{
			Name:        "completion",
			Usage:       "print a script that completes this command line in a shell",
			Description: "Example:\n\n   source <(iptables-wrapper completion bash)",
			ArgsUsage:   "bash|zsh|fish",
			Action:      func(c *cli.Context) error { return printCompletion(c, stdout) },
		},
	}
	onUsageError := func(_ *cli.Context, err error, _ bool) error { return usageError{err} }
	for _, c := range commands {
		c.HideHelpCommand = true
		c.OnUsageError = onUsageError
		c.Before = func(c *cli.Context) error {
			most := min(1, len(arguments(c.Command)))
			if c.Args().Len() > most {
				return usageError{fmt.Errorf("%s: unexpected argument %q", c.Command.Name, c.Args().Get(most))}
			}
			if c.IsSet("dir") && c.String("dir") == "" {
				return usageError{fmt.Errorf("%s: the directory is empty", c.Command.Name)}
			}
			if c.IsSet("wait") && c.Duration("wait") <= 0 {
				return usageError{fmt.Errorf("%s: wait %s is no time to wait", c.Command.Name, c.Duration("wait"))}
			}
			for _, f := range c.Command.Flags {
				if f, ok := f.(*choice); ok {
					if err := f.check(c); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	return &cli.App{
		Name:  "iptables-wrapper",
		Usage: "run the iptables that the host uses",
		Description: "Under the names iptables, iptables-save, iptables-restore and their ip6tables twins, this program becomes\n" +
			"the one of the backend that the host uses. " + modeVariable + "=nft or =legacy decides for it;\n" +
			debugVariable + "=1 makes it say on stderr what it does.",
		Writer:          stdout,
		ErrWriter:       stderr,
		HideHelpCommand: true,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "print the version", DisableDefaultText: true}},
		Commands:        commands,
		Before: func(c *cli.Context) error {
			if c.Bool("version") && c.Args().Present() {
				return usageError{fmt.Errorf("unexpected argument %q", c.Args().First())}
			}
			return nil
		},
		OnUsageError:   onUsageError,
		ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				_, err := fmt.Fprintln(stdout, "iptables-wrapper version", versionString())
				return err
			}
			if c.Args().Present() {
				return usageError{fmt.Errorf("unknown command %q", c.Args().First())}
			}
			return usageError{errors.New("missing command")}
		},
	}
}

func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

func detectCommand(w exec.Wrapper, c *cli.Context, stdout, stderr io.Writer) error {
	override, err := modeFromEnvironment(w)
	if err != nil {
		return err
	}
	format := formatOf(c.String("output"))
	if err := enterNetns(c); err != nil {
		return err
	}
	q := query(w, override)
	q.Everything = format.everything
	r := look(q, c, stderr)
	if err := format.print(stdout, r); err != nil {
		return err
	}
	switch {
	case r.Conclusive:
		return nil
	case c.Bool("strict"):
		return failure{statusInconclusive, fmt.Errorf("not conclusive: %s", doubt(r)), ""}
	case !format.saysAll:
		fmt.Fprintf(stderr, "iptables-wrapper: not conclusive: %s\n", doubt(r))
	}
	return nil
}

// enterNetns moves this thread to where it was told to look.
func enterNetns(c *cli.Context) error {
	path := c.String("netns")
	switch {
	case c.IsSet("netns") && c.IsSet("pid"):
		return usageError{errors.New("detect: --netns and --pid contradict each other")}
	case c.IsSet("netns") && path == "":
		return usageError{errors.New("detect: the network namespace is empty")}
	case c.IsSet("pid"):
		pid, err := strconv.ParseUint(c.String("pid"), 10, 31)
		if err != nil || pid == 0 {
			return usageError{fmt.Errorf("detect: pid %q is not the number of a process", c.String("pid"))}
		}
		path = fmt.Sprintf("/proc/%d/ns/net", pid)
	case path == "":
		return nil
	}
	runtime.LockOSThread() // unlike exec.LockThread, it sees to it that no other thread is made in that namespace
	err := detect.EnterNetns(path)
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT) && c.IsSet("pid"):
		hint = "there is no such process here, or it has ended; a Pod sees the host's with hostPID"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		hint = "it needs CAP_SYS_ADMIN, and CAP_SYS_PTRACE for another user's process"
	}
	return failure{1, fmt.Errorf("detect: %w", err), hint}
}

// look answers the query, after a wait if one was asked for.
func look(q detect.Query, c *cli.Context, stderr io.Writer) detect.Result {
	limit := c.Duration("wait")
	if limit == 0 || q.Override != "" {
		return q.Run()
	}
	first := q
	first.Everything = false
	r := first.Run()
	if !r.Conclusive {
		endBySignal()
		fmt.Fprintf(stderr, "iptables-wrapper: waiting up to %s for kubelet's chains, or rules: %s\n", limit, doubt(r))
		var blind error
		r, blind = first.Wait(limit)
		switch {
		case r.Conclusive:
			fmt.Fprintf(stderr, "iptables-wrapper: found: %s\n", because(r))
		case blind != nil:
			fmt.Fprintf(stderr, "iptables-wrapper: the time is over (looked every %s: %v)\n", detect.PollInterval, blind)
		default:
			fmt.Fprintln(stderr, "iptables-wrapper: the time is over")
		}
	}
	if q.Everything {
		return q.Run()
	}
	return r
}

// endBySignal makes SIGINT and SIGTERM end the process at once, also where it is the first of a container and the kernel
// would ignore them. What the caller has it ignore stays ignored.
func endBySignal() {
	signals := make(chan os.Signal, 1)
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM} {
		if exec.Ignored(s) {
			signal.Ignore(s)
		} else {
			signal.Notify(signals, s)
		}
	}
	go func() { os.Exit(128 + int((<-signals).(unix.Signal))) }()
}

// enterRoot is chroot(2) with an explanation.
func enterRoot(w *exec.Wrapper, root string) error {
	if root == "" {
		return usageError{errors.New("install: the root is empty")}
	}
	err := w.EnterRoot(root)
	if err == nil {
		return nil
	}
	hint := ""
	if errors.Is(err, unix.EPERM) {
		hint = "who is not root can say: unshare --map-root-user iptables-wrapper install --root ..."
	}
	return failure{1, fmt.Errorf("install: %w", err), hint}
}

func install(w exec.Wrapper, dir string, options exec.Options, skipChecks bool, stdout, stderr io.Writer) error {
	dir, err := orOwn(w, dir)
	if err != nil {
		return err
	}
	if !skipChecks {
		switch err := w.Check(dir); {
		case errors.Is(err, exec.ErrUnchecked):
			fmt.Fprintf(stderr, "iptables-wrapper: warning: %v\n", err)
		case err != nil:
			return failure{1, err, "install iptables with both backends first, or use --skip-checks"}
		}
	}
	changed, err := w.Install(dir, options)
	for _, line := range changed {
		fmt.Fprintln(stdout, line)
	}
	if err != nil {
		hint := ""
		switch {
		case errors.Is(err, exec.ErrRefused):
			hint = "--force replaces it"
		case errors.Is(err, exec.ErrAlternatives):
			hint = "--alternatives never makes plain links instead"
		}
		return failure{1, fmt.Errorf("install: %w", err), hint}
	}
	if len(changed) == 0 {
		fmt.Fprintf(stdout, "nothing to do: the six names in %s lead to the wrapper\n", dir)
	}
	for _, path := range w.Others(dir) {
		fmt.Fprintf(stderr, "iptables-wrapper: warning: %s is iptables too, and not the wrapper\n", path)
	}
	return nil
}

func selectCommand(w exec.Wrapper, c *cli.Context, stdout, stderr io.Writer) error {
	dir, err := orOwn(w, c.String("dir"))
	if err != nil {
		return err
	}
	selected, err := modeFromEnvironment(w)
	if c.IsSet("mode") {
		if selected, err = parseMode(c.String("mode")); err != nil {
			err = usageError{fmt.Errorf("select: mode %w", err)}
		}
	}
	if err != nil {
		return err
	}
	if selected == "" {
		if _, err := os.Stat(dir); c.IsSet("wait") && err != nil { // before a wait for nothing
			return failure{1, fmt.Errorf("select: %w", err), ""}
		}
		r := look(query(w, ""), c, stderr)
		selected = r.Mode
		why := ""
		if !r.Conclusive {
			why = doubt(r)
		} else if detect.InOwnNetns() == detect.No {
			why = "this is not the network namespace of the container's first process"
		}
		if why != "" {
			fmt.Fprintln(stdout, selected)
			return failure{statusInconclusive, fmt.Errorf("not conclusive, links left alone: %s", why), ""}
		}
	}
	if _, err := w.Select(dir, string(selected)); err != nil {
		return failure{1, fmt.Errorf("select %s: %w", selected, err), ""}
	}
	_, err = fmt.Fprintln(stdout, selected)
	return err
}

func reset(w exec.Wrapper, dir string, stdout io.Writer) error {
	dir, err := orOwn(w, dir)
	if err != nil {
		return err
	}
	moved, err := w.Reset(dir)
	if err != nil {
		return failure{1, fmt.Errorf("reset: %w", err), "iptables-wrapper install makes the names anew"}
	}
	_, err = fmt.Fprintf(stdout, "%d of the six names in %s moved: all lead to the wrapper\n", len(moved), dir)
	return err
}

// orOwn is the directory of this program if none was given.
func orOwn(w exec.Wrapper, dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	return w.Dir()
}
