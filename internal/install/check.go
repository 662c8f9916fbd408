// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Check returns what would keep a wrapper in the directory from working: nil if it finds programs for all six
// commands in both backends and iptables-nft is new enough. It starts one process; in a tree other than the process'
// own none, and none that others could have put there. The version is not checked then.
func Check(n layout.Names, dir string) error {
	legacy, noLegacy := find(n, dir, detect.Legacy)
	nft, noNFT := find(n, dir, detect.NFT)
	if legacy == "" && nft == "" && errors.Is(noLegacy, programs.ErrMissing) && errors.Is(noNFT, programs.ErrMissing) {
		return fmt.Errorf("iptables 1.8.4 or newer is not installed: %w", noNFT)
	}
	if err := errors.Join(noLegacy, noNFT); err != nil || !n.Tree.Own() {
		return err
	}
	if exposed := n.Tree.Exposed(nft); exposed != "" {
		return fmt.Errorf("%q: %w: it was not started, because %q can be changed by others than root", nft, ErrUnchecked, exposed)
	}
	_, err := version(nft, detect.NFT)
	return err
}

// Programs returns the program that a wrapper in the directory would run for iptables, and the line that it prints
// about its version. The error says which of the six commands has none, or what is wrong with this one.
func Programs(n layout.Names, dir string, mode detect.Mode) (path, line string, err error) {
	if path, err = find(n, dir, mode); err != nil {
		return path, "", err
	}
	line, err = version(path, mode)
	return path, line, err
}

// find returns the program of iptables itself, "" if there is none, and what is wrong with the first of the six
// commands that has none.
func find(n layout.Names, dir string, mode detect.Mode) (iptables string, err error) {
	for _, name := range programs.Names() {
		path, missing := n.Find(dir, mode, name)
		if err = cmp.Or(err, missing); name == "iptables" {
			iptables = path
		}
	}
	return iptables, err
}

func version(program string, mode detect.Mode) (line string, err error) {
	output, stderr, err := Output(program, "iptables", "--version")
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

// Output runs a program under a name and returns what it prints. After ten seconds it is killed, and the error is
// context.DeadlineExceeded, which says nothing about the program.
func Output(program, name string, args ...string) (stdout, stderr string, err error) {
	return output(10*time.Second, program, append([]string{name}, args...))
}

func output(limit time.Duration, program string, argv []string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = argv
	cmd.WaitDelay = time.Second // a child of it may still hold the pipe
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.String(), errs.String(), err
}

// LosesRules reports whether a program of the nft backend, of which this is the line about its version, does not
// understand rules of newer ones and loses parts of them when it writes a table again: up to 1.8.7, "-m mark --mark 1
// -j DROP" becomes "-j DROP".
func LosesRules(line string) bool {
	var v [3]int
	n, _ := fmt.Sscanf(line, "iptables v%d.%d.%d (nf_tables)", &v[0], &v[1], &v[2])
	return n == len(v) && slices.Compare(v[:], []int{1, 8, 8}) < 0
}

// checkVersion reads a line such as "iptables v1.8.9 (nf_tables)".
func checkVersion(program string, mode detect.Mode, line string) error {
	var v [3]int
	var backend string
	if _, err := fmt.Sscanf(line, "iptables v%d.%d.%d %s", &v[0], &v[1], &v[2], &backend); err != nil {
		return fmt.Errorf("%q: %w: it prints %q", program, ErrUnchecked, line)
	}
	if want := map[detect.Mode]string{detect.NFT: "(nf_tables)", detect.Legacy: "(legacy)"}[mode]; backend != want {
		return fmt.Errorf("%q is not iptables for %s: it prints %q", program, mode, line)
	}
	if slices.Compare(v[:], []int{1, 8, 4}) < 0 { // older versions change rules of others that they do not know
		return fmt.Errorf("%q is version %d.%d.%d, which corrupts rules: 1.8.4 or newer is needed", program, v[0], v[1], v[2])
	}
	return nil
}
