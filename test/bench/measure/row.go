// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure makes a host and measures calls of iptables on it. It runs as a container's first process, and
// imports little: a process that it starts counts this one's memory as its own.
package measure

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Size is how many rules a backend has, spread over how many chains. A built-in chain refers to the first.
type Size struct{ Rules, Chains int }

// Row is a host, and how iptables is called there.
type Row struct {
	Name         string
	Backend      string // that must run
	Hint         bool   // kubelet's, in that backend
	Program      bool   // a program of the host has a chain and a rule in that backend
	NFT, Legacy  Size
	IPv6         bool          // the rules are IPv6's
	ReadOnly     bool          // so that no first call replaces the switch
	Recorded     bool          // by an earlier call, on a read-only root
	Cold         bool          // the pages of the Go programs' files are not in memory
	Saves        bool          // measure iptables-save of both families and backends, too
	Mounts       int           // more than a container has
	AtOnce       int           // how many calls begin together
	Calls        int           // how many a shell script makes
	Percent, MiB int           // of a processor, and of memory, that a control group leaves them
	OnPage       bool          // not only in the picture and the data
	Group        string        // that control group's name
	Rounds       int           // how often each program is measured, but in at most
	AtMost       time.Duration // so much time, if that is enough for five rounds
}

var command = []string{"iptables", "--version"}

// dirs are where the wrappers are, in the order in which they are measured.
var dirs = map[string]string{"wrapped": "/usr/sbin", "before": "/usr/sbin/before"}

//go:embed host.sh
var script string

// makeHost makes the host, by other processes: what this one holds in memory counts for those that it starts.
func makeHost(r Row, layer string) error {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Env = os.Environ()
	for name, value := range map[string]any{"backend": r.Backend, "hint": r.Hint, "program": r.Program,
		"nft":        r.NFT.Rules,
		"nft_chains": r.NFT.Chains, "legacy": r.Legacy.Rules,
		"legacy_chains": r.Legacy.Chains, "ipv6": r.IPv6, "mounts": r.Mounts, "layer": layer, "read_only": r.ReadOnly,
		"percent": r.Percent, "mib": r.MiB, "group": r.Group} {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%v", name, value))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the host: %w\n%s", err, out)
	}
	return nil
}

// prepare makes the next call of a wrapper a first one, or one after a recorded one.
func prepare(r Row, dir string) error {
	for _, record := range records() {
		if err := os.Remove(record); err != nil {
			return err
		}
	}
	current := dir + "/iptables-current"
	if target, err := os.Readlink(current); err != nil || target != "iptables-wrapper" {
		if err := os.Remove(current); err != nil {
			return err
		}
		if err := os.Symlink("iptables-wrapper", current); err != nil {
			return err
		}
	}
	if !r.Recorded {
		return nil
	}
	if err := exec.Command(dir+"/iptables", "-w", "-P", "INPUT", "ACCEPT").Run(); err != nil || len(records()) != 1 {
		return fmt.Errorf("a call that changes something leaves the records %q: %v", records(), err)
	}
	return nil
}

// records are the wrapper's, and what revisions before it left in their two places.
func records() []string {
	var all []string
	for _, pattern := range []string{"/dev/iptables-backend-*", "/dev/iptables-memory", "/usr/sbin/iptables-memory"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			panic(err) // the pattern is wrong
		}
		all = append(all, found...)
	}
	return all
}

// check says whether a first call runs the right program, and with a hint replaces the switch if it can.
func check(r Row, dir string) error {
	if err := prepare(r, dir); err != nil {
		return err
	}
	out, err := exec.Command(dir+"/iptables", "--version").CombinedOutput()
	name := map[string]string{"nft": "nf_tables", "legacy": "legacy"}[r.Backend]
	if err != nil || !strings.Contains(string(out), "("+name+")") {
		return fmt.Errorf("%s/iptables --version: %v, %q", dir, err, out)
	}
	target, err := os.Readlink(dir + "/iptables-current")
	if moved := filepath.Base(target) == "xtables-"+r.Backend+"-multi"; r.Hint && moved == r.ReadOnly {
		return fmt.Errorf("after a first call, the switch of %s points at %q, %v", dir, target, err)
	}
	return nil
}

// evict removes a file's pages from memory. It must have been written to the disk.
func evict(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
