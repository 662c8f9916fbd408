// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"fmt"
	osexec "os/exec"
	"slices"
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
	var missing []error
	for _, mode := range []string{"legacy", "nft"} {
		for _, name := range names {
			_, err := w.find(mode, name, d)
			if err != nil && !slices.ContainsFunc(missing, func(e error) bool { return e.Error() == err.Error() }) {
				missing = append(missing, err)
			}
		}
	}
	if missing != nil {
		return errors.Join(missing...)
	}
	nft, err := w.find("nft", "iptables", d)
	if err != nil || w.inRoot {
		return err
	}
	output, err := Output(nft, "iptables", "--version")
	if err != nil {
		return fmt.Errorf("%q: %w: %w", nft, ErrUnchecked, err)
	}
	return checkVersion(nft, output)
}

// Output runs one of iptables' programs under a name and returns what it prints on both outputs. It ends it after ten
// seconds.
func Output(program, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := osexec.CommandContext(ctx, program)
	cmd.Args = append([]string{name}, args...)
	cmd.WaitDelay = time.Second // a child of it may still hold the pipe
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// checkVersion reads the line "iptables v1.8.9 (nf_tables)".
func checkVersion(program, output string) error {
	var v [3]int
	var backend string
	if _, err := fmt.Sscanf(output, "iptables v%d.%d.%d %s", &v[0], &v[1], &v[2], &backend); err != nil {
		return fmt.Errorf("%q: %w: it says %q", program, ErrUnchecked, output)
	}
	if backend != "(nf_tables)" {
		return fmt.Errorf("%q is not iptables for nft: it says %q", program, output)
	}
	if slices.Compare(v[:], oldest[:]) < 0 {
		return fmt.Errorf("%q is version %d.%d.%d, which corrupts rules: 1.8.4 or newer is needed", program, v[0], v[1], v[2])
	}
	return nil
}
