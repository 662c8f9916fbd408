// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// ErrUnchecked is returned when a program could not be run, so that its version is unknown. That is the case, for
// example, while an image is built for another architecture.
var ErrUnchecked = errors.New("its version could not be checked")

// Check returns what would keep a wrapper in the directory from working: nil if it finds iptables-nft for all six
// commands, new enough, and iptables-legacy for all or none of them. The remarks are what the user should know all the
// same, a line each.
//
// It starts one process; in a tree other than the process' own none, and none that others could have put there. The
// version is not checked then.
func Check(n layout.Names, dir string) (remarks []string, err error) {
	nft, legacy := find(n, dir, detect.NFT), find(n, dir, detect.Legacy)
	switch {
	case nft.none && legacy.none:
		return nil, fmt.Errorf("iptables 1.8.4 or newer is not installed: %w", nft.err)
	case nft.err == nil && legacy.none:
		remarks = append(remarks, onlyNFT)
	case nft.err != nil || legacy.err != nil:
		return nil, errors.Join(legacy.err, nft.err)
	}
	if !n.Tree.Own() {
		return remarks, nil
	}
	remark, err := checkNFT(n, nft.iptables)
	if remark != "" {
		remarks = append(remarks, "warning: "+remark)
	}
	return remarks, err
}

// onlyNFT is normal where a distribution has no other program.
const onlyNFT = "only iptables-nft is installed here: on a host that uses legacy, calls will end with status 127"

// checkNFT checks the version of iptables-nft. That it cannot be known is no error.
func checkNFT(n layout.Names, program string) (remark string, err error) {
	exposed := n.Tree.Exposed(program)
	if exposed != "" {
		return fmt.Sprintf("%q: %v: it was not started, because users other than root can change %q",
			program, ErrUnchecked, exposed), nil
	}
	line, err := version(Output, program, detect.NFT)
	switch {
	case errors.Is(err, ErrUnchecked):
		return err.Error(), nil
	case err != nil:
		return "", err
	case LosesRules(line):
		return fmt.Sprintf("%q loses parts of rules that %s or newer wrote: it prints %q", program, faithful, line), nil
	}
	return "", nil
}

// Programs returns the program that a wrapper in the directory would run for iptables, and the line that it prints
// about its version. The error says which of the six commands has none, or what is wrong with this one.
//
// start starts a program as Output does, and may refuse that: whose the program is can only be known of the one that
// was found here.
func Programs(n layout.Names, dir string, mode detect.Mode, start Start) (path, line string, err error) {
	found := find(n, dir, mode)
	if found.err != nil {
		return found.iptables, "", found.err
	}
	line, err = version(start, found.iptables, mode)
	return found.iptables, line, err
}

// found are the programs of one backend.
type found struct {
	iptables string // that of iptables itself, "" if there is none
	none     bool   // there is none for any of the six commands
	err      error  // what is wrong with the first command that has none
}

func find(n layout.Names, dir string, mode detect.Mode) found {
	f := found{none: true}
	for _, name := range programs.Names() {
		path, err := n.Find(dir, mode, name)
		f.err = cmp.Or(f.err, err)
		if !errors.Is(err, programs.ErrMissing) {
			f.none = false
		}
		if name == "iptables" {
			f.iptables = path
		}
	}
	return f
}

func version(start Start, program string, mode detect.Mode) (line string, err error) {
	output, stderr, err := start(program, "iptables", "--version")
	line = strings.TrimSpace(output)
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return line, fmt.Errorf("%q: %w: it is built for another architecture: %w", program, ErrUnchecked, err)
	case errors.Is(err, unix.ENOENT):
		return line, fmt.Errorf("%q: %w: its loader is missing: %w", program, ErrUnchecked, err)
	case err != nil: // what the loader says of a missing library
		return line, fmt.Errorf("%q: %w: %w: %s", program, ErrUnchecked, err, strings.TrimSpace(stderr))
	}
	return line, checkVersion(program, mode, line)
}

// Start runs a program under a name and returns what it prints, as Output does.
type Start func(program, name string, args ...string) (stdout, stderr string, err error)

// mostOutput is how much a program may print: the rules of the largest clusters are 20 MB.
const mostOutput = 64 << 20

// errTooMuch is the error of a program that prints more.
var errTooMuch = fmt.Errorf("it prints more than %d MiB", mostOutput>>20)

// printed is what a program has printed, as far as that is not too much.
type printed struct {
	text strings.Builder
	err  error
}

func (p *printed) Write(b []byte) (int, error) {
	if p.text.Len()+len(b) > mostOutput {
		p.err = errTooMuch
		return 0, p.err // which closes the pipe
	}
	return p.text.Write(b)
}

// Output runs a program under a name and returns what it prints. After ten seconds it is killed, and the error is
// context.DeadlineExceeded, which says nothing about the program. One that prints more than 64 MiB fails.
func Output(program, name string, args ...string) (stdout, stderr string, err error) {
	return output(10*time.Second, program, append([]string{name}, args...))
}

func output(limit time.Duration, program string, argv []string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var out, errs printed
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = argv
	cmd.Stdin = nothing()
	cmd.Stdout = &out
	cmd.Stderr = &errs
	cmd.WaitDelay = time.Second // a child of it may still hold the pipe
	err = cmd.Run()
	if err != nil {
		err = cmp.Or(ctx.Err(), out.err, errs.err, err)
	}
	return out.text.String(), errs.text.String(), err
}

// nothing is an empty standard input. Without one, package exec opens /dev/null, which is not there while a root file
// system is built: chroot without mounting /dev.
func nothing() io.Reader { return strings.NewReader("") }

// release is a version of iptables.
type release [3]int

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

func (r release) before(other release) bool { return slices.Compare(r[:], other[:]) < 0 }

var (
	// oldest is the first release of iptables-nft that leaves rules of others alone which it does not know.
	oldest = release{1, 8, 4}

	// faithful is the first one that reads what later ones write. The ones before read a rule without the matches
	// that they do not know, and write it back so (kubernetes/kubernetes#112477, cloudnativelabs/kube-router#1370).
	faithful = release{1, 8, 8}
)

// backends are the words by which iptables says which backend it is.
var backends = map[detect.Mode]string{
	detect.NFT:    "(nf_tables)",
	detect.Legacy: "(legacy)",
}

// Backend returns the backend that a command names with its version: "iptables v1.8.9 (nf_tables)"; "" if it names
// none. The others of the six begin the line with names of their own, such as ip6tables or iptables-nft-restore.
func Backend(line string) detect.Mode {
	words := strings.Fields(line)
	if len(words) != 3 {
		return ""
	}
	if !strings.HasPrefix(words[0], "iptables") && !strings.HasPrefix(words[0], "ip6tables") {
		return ""
	}
	for mode, word := range backends {
		if words[2] == word {
			return mode
		}
	}
	return ""
}

// parseVersion reads a line such as "iptables v1.8.9 (nf_tables)".
func parseVersion(line string) (r release, backend string, err error) {
	_, err = fmt.Sscanf(line, "iptables v%d.%d.%d %s", &r[0], &r[1], &r[2], &backend)
	return r, backend, err
}

// LosesRules reports whether a line about its version is that of an iptables-nft that does not understand rules of
// newer ones, and loses parts of them when it writes a table again: "-m mark --mark 1 -j DROP" becomes "-j DROP".
func LosesRules(line string) bool {
	r, backend, err := parseVersion(line)
	return err == nil && backend == backends[detect.NFT] && r.before(faithful)
}

func checkVersion(program string, mode detect.Mode, line string) error {
	r, backend, err := parseVersion(line)
	if err != nil {
		return fmt.Errorf("%q: %w: it prints %q", program, ErrUnchecked, line)
	}
	if backend != backends[mode] {
		return fmt.Errorf("%q is not iptables for %s: it prints %q", program, mode, line)
	}
	if r.before(oldest) {
		return fmt.Errorf("%q is version %s, which corrupts rules: %s or newer is needed", program, r, oldest)
	}
	return nil
}
