// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	osexec "os/exec"
	"slices"
	"strings"
	"time"
)

// oldest is the first iptables-nft that is safe beside other versions: older ones corrupt rules that they do not know.
var oldest = [3]int{1, 8, 4}

// ErrUnchecked: a program could not be run here, so its version is not known. That happens when an image is built for
// another architecture.
var ErrUnchecked = errors.New("its version could not be checked")

// Check says what keeps the programs that a wrapper in the directory would use from doing their work: nil if those for
// all six names are there in both modes and iptables-nft is new enough. It starts one process, but none of a root file
// system that was entered from outside: there the version is not checked.
func (w Wrapper) Check(d string) error {
	_, missing := w.programs(d, "legacy")
	nft, err := w.programs(d, "nft")
	if err := errors.Join(missing, err); err != nil || w.inRoot {
		return err
	}
	_, err = version(nft, "nft")
	return err
}

// Programs returns the program that a wrapper in the directory would run for iptables in a mode and the line that it says
// of its version. The error says which of the six names has none, or what is wrong with this one.
func (w Wrapper) Programs(d, mode string) (path, line string, err error) {
	if path, err = w.programs(d, mode); err != nil {
		return path, "", err
	}
	line, err = version(path, mode)
	return path, line, err
}

// programs finds those of all six names, and returns that of iptables.
func (w Wrapper) programs(d, mode string) (iptables string, err error) {
	var missing []error
	for _, name := range names {
		path, err := w.find(mode, name, d)
		if err != nil && !slices.ContainsFunc(missing, func(e error) bool { return e.Error() == err.Error() }) {
			missing = append(missing, err)
		}
		if name == "iptables" {
			iptables = path
		}
	}
	return iptables, errors.Join(missing...)
}

func version(program, mode string) (line string, err error) {
	output, _, err := Output(program, "iptables", "--version")
	line = strings.TrimSpace(output)
	if err != nil {
		return line, fmt.Errorf("%q: %w: %w", program, ErrUnchecked, err)
	}
	return line, checkVersion(program, mode, output)
}

// Output runs one of iptables' programs under a name and returns what it prints. It ends it after ten seconds.
func Output(program, name string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := osexec.CommandContext(ctx, program)
	cmd.Args = append([]string{name}, args...)
	cmd.WaitDelay = time.Second // a child of it may still hold the pipe
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// checkVersion reads the line "iptables v1.8.9 (nf_tables)".
func checkVersion(program, mode, output string) error {
	var v [3]int
	var backend string
	if _, err := fmt.Sscanf(output, "iptables v%d.%d.%d %s", &v[0], &v[1], &v[2], &backend); err != nil {
		return fmt.Errorf("%q: %w: it says %q", program, ErrUnchecked, output)
	}
	if backend != map[string]string{"nft": "(nf_tables)", "legacy": "(legacy)"}[mode] {
		return fmt.Errorf("%q is not iptables for %s: it says %q", program, mode, output)
	}
	if slices.Compare(v[:], oldest[:]) < 0 {
		return fmt.Errorf("%q is version %d.%d.%d, which corrupts rules: 1.8.4 or newer is needed", program, v[0], v[1], v[2])
	}
	return nil
}
