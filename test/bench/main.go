// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Bench measures what a wrapped call of iptables costs beside the direct one, each host in a container of its own. It
// is called by "make bench", and writes docs/evidence/benchmarks.md and .svg, and what they are made from to
// bin/benchmarks.json.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// report is all that is measured.
type report struct {
	Date, Revision, Before, Go, Kernel, CPU, Load, NFT, Legacy string
	// what a host has in large numbers is divided by Scale
	Processors, Scale int
	Results           []measure.Result
}

func main() {
	only := flag.String("only", "", "only rows whose names match this `pattern`")
	plain := flag.Bool("plain", false, "both built by a plain \"go build\", and not by \"make build\"")
	before := flag.String("before", "", "a git `revision` to compare with")
	out := flag.String("out", "docs/evidence", "the `directory` for the page and the picture")
	data := flag.String("data", "bin/benchmarks.json", "the `file` for what was measured")
	quick := flag.Bool("quick", false, "a minute for all rows, of any tree: for a look, not for a page that stays")
	dirty := flag.Bool("dirty", false, "also measure a tree with changes")
	draw := flag.Bool("draw", false, "only make the page and the picture again")
	flag.Parse()
	err := os.Chdir(output("git", "rev-parse", "--show-toplevel"))
	if err == nil && !*draw {
		err = all(*only, *before, *data, *plain, *quick, *quick || *dirty)
	}
	if err == nil {
		err = write(*data, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func all(only, before, data string, plain, quick, dirty bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("it makes namespaces and mounts, so it must be root: sudo make bench")
	}
	revision := output("git", "describe", "--tags", "--always", "--abbrev=12")
	// The page of the last run is no part of what is measured.
	if changes := output("git", "status", "--porcelain", "--", ".", ":!docs/evidence/benchmarks.*"); changes != "" {
		if !dirty {
			return fmt.Errorf("this is not revision %s, because the tree has changes; commit them, or add -dirty:\n%s",
				revision, changes)
		}
		revision += "-dirty"
	}
	r := report{
		Date: time.Now().UTC().Format("2006-01-02"), Revision: revision, Go: runtime.Version(),
		Kernel:     output("uname", "-r"),
		CPU:        output("sh", "-c", `sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1`),
		Load:       output("cut", "-d ", "-f1", "/proc/loadavg"),
		NFT:        output("xtables-nft-multi", "iptables", "--version"),
		Legacy:     output("xtables-legacy-multi", "iptables", "--version"),
		Processors: runtime.NumCPU(), Scale: 1,
	}
	rounds, atMost := 201, 30*time.Second
	if quick {
		r.Scale, rounds, atMost = 20, 11, time.Second
	}
	if before != "" {
		r.Before = output("git", "describe", "--tags", "--always", "--abbrev=12", before)
	}
	err = os.MkdirAll(filepath.Dir(data), 0o755) // before what takes minutes
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("/var/tmp", "bench") // on a disk, or no file in it can be cold
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := build(scratch, before, plain); err != nil {
		return err
	}
	for _, row := range rows(r.Scale) {
		if !pattern.MatchString(title(row)) {
			continue
		}
		fmt.Fprintln(os.Stderr, title(row))
		row.Group, row.Rounds, row.AtMost = fmt.Sprintf("iptables-wrapper-bench-%d", os.Getpid()), rounds, atMost
		result, err := contained(row, scratch)
		if err != nil {
			return fmt.Errorf("%s: %w", title(row), err)
		}
		r.Results = append(r.Results, result)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(data, append(raw, '\n'), 0o644)
}

// build makes a layer with the programs that are measured. They are copied into it: how a file was written, by the
// linker or in one piece, decides in what pieces the kernel keeps it, and so what it costs to map.
func build(scratch, before string, plain bool) error {
	cmd := exec.Command("bash", "-ec", `
		mkdir "$1/layer" "$1/layer/before"
		build() { if [ "$plain" = true ]; then CGO_ENABLED=0 go build -o "$1" .; else make -s build BINARY="$1"; fi; }
		plain=$3
		build "$1/now"
		cp "$1/now" "$1/layer/iptables-wrapper"
		go build -C test/bench -o "$1/inside" measure/inside.go
		go build -C test/bench -ldflags "-s -w" -o "$1/floor" measure/floor.go
		cp "$1/floor" "$1/layer"
		if [ -n "$2" ]; then
			git worktree add --quiet --detach "$1/tree" "$2"
			trap 'git worktree remove --force "$1/tree"' EXIT
			(cd "$1/tree" && build "$1/then")
			cp "$1/then" "$1/layer/before/iptables-wrapper"
			ln -s ../xtables-{nft,legacy}-multi "$1/layer/before"
		fi
		sync -f "$1/layer"`, "bash", scratch, before, fmt.Sprint(plain))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// contained measures one row in a new container: see host.Contain.
func contained(row measure.Row, scratch string) (result measure.Result, err error) {
	encoded, err := json.Marshal(row)
	if err != nil {
		return result, err
	}
	mounts, err := os.MkdirTemp(scratch, "mounts")
	if err != nil {
		return result, err
	}
	cmd := host.Contained(mounts, filepath.Join(scratch, "inside"), string(encoded), filepath.Join(scratch, "layer"))
	// The process that measures shall not run beside what it measures: no second thread of it, no collection of
	// garbage.
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1", "GOGC=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	for _, controller := range []string{"", "cpu/", "memory/"} {
		_ = os.Remove("/sys/fs/cgroup/" + controller + row.Group) // most rows have none
	}
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(out, &result)
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
