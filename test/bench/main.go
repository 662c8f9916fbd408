// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Bench measures what a wrapped call of iptables costs beside the direct one, on hosts of each mode with few and many
// rules, each in a container of its own. It is called by "make bench", and writes docs/evidence/benchmarks.json, .md and .svg; with
// -draw it makes the latter two again from the first.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// state is a host: the mode it is in, whether kubelet left its hint, and how many rules are in that backend.
type state struct {
	Mode  string
	Hint  bool
	Rules int
}

func (s state) String() string {
	if s.Hint {
		return "hint in " + s.Mode
	}
	return "no hint, rules in " + s.Mode
}

// measurement is one state with all that was measured there.
type measurement struct {
	State                            state
	Direct, Floor, First, ReadOnly   sample
	Remembered                       sample // read-only, with a memory
	Adding, DirectAdding             sample // read-only, a call that can add something; only where there is no evidence
	NoCLI                            sample // read-only, of a wrapper that is built without the command line
	Before                           sample // read-only, of the revision to compare with
	FourSaves                        sample // how others look: four iptables-save processes
	Calls, FloorCalls, SaveCalls     int    // system calls until the program begins; of all four
	Processes, SaveProcesses         int    // started besides the one that was called
	Questions                        int    // netlink and getsockopt exchanges
	Memory, DirectMemory, SaveMemory int64  // the largest resident set, in KiB
	Inits                            inits
}

// report is all that is written.
type report struct {
	Kernel, Go, CPU, Processors string
	NFT, Legacy                 string
	Wrapper, Before             string
	Date                        string
	Runs                        int
	Measurements                []measurement
	Sizes                       map[string]int64 // of the binary, in bytes, by architecture
	Sections                    map[string]map[string]int64
}

// options are those of the command line.
type options struct {
	runs                              int
	rules, architectures, out, before string
	draw                              bool
}

func main() {
	if err := host.Enter(); err != nil {
		fail(err)
	}
	var o options
	flag.IntVar(&o.runs, "runs", 201, "how often each call is made")
	flag.StringVar(&o.rules, "rules", "0,1000,10000,100000", "how many rules the hosts have")
	flag.StringVar(&o.architectures, "architectures", "amd64,arm64,arm,ppc64le,s390x,riscv64,386", "to build for, to see the size")
	flag.StringVar(&o.out, "out", "docs/evidence", "the directory to write to")
	flag.StringVar(&o.before, "before", "", "a git revision to compare with")
	flag.BoolVar(&o.draw, "draw", false, "only make the page and the picture again")
	flag.Parse()
	var err error
	switch {
	case o.draw:
		err = draw(o.out)
	case o.runs < 1:
		err = fmt.Errorf("%d is no number of runs", o.runs)
	case flag.NArg() == 2:
		err = one(flag.Arg(0), flag.Arg(1), o.runs)
	case flag.NArg() > 0:
		err = fmt.Errorf("%q is no option", flag.Arg(0))
	case os.Geteuid() != 0:
		err = fmt.Errorf("it makes namespaces and mounts of its own, so it must be root: sudo make bench")
	default:
		err = all(o)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// one measures one state, in its container, and writes the result to standard output.
func one(encoded, layer string, runs int) error {
	var s state
	if err := json.Unmarshal([]byte(encoded), &s); err != nil {
		return err
	}
	m, err := measure(s, layer, runs)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

func all(o options) error {
	scratch, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var rules []int
	for text := range strings.SplitSeq(o.rules, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no number of rules", text)
		}
		rules = append(rules, n)
	}
	layer := filepath.Join(scratch, "layer")
	if err := build(layer, scratch, o.before); err != nil {
		return err
	}
	wrapper := filepath.Join(layer, "iptables-wrapper")
	r := report{
		Kernel: output("uname", "-r"), Go: runtime.Version(), Processors: fmt.Sprint(runtime.NumCPU()), CPU: cpu(),
		NFT: output("xtables-nft-multi", "iptables", "--version"), Legacy: output("xtables-legacy-multi", "iptables", "--version"),
		Wrapper: output(wrapper, "--version"), Date: time.Now().UTC().Format("2006-01-02"), Runs: o.runs,
		Sizes: map[string]int64{}, Sections: map[string]map[string]int64{},
	}
	if o.before != "" {
		r.Before = output("git", "describe", "--tags", "--always", o.before)
	}
	for name, binary := range map[string]string{"wrapper": "iptables-wrapper", "without the command line": "no-cli/iptables", "floor": "floor"} {
		if r.Sections[name], err = sections(filepath.Join(layer, binary)); err != nil {
			return err
		}
	}
	for arch := range strings.SplitSeq(o.architectures, ",") {
		if r.Sizes[arch], err = size(scratch, arch); err != nil {
			return err
		}
	}
	for _, mode := range []string{"nft", "legacy"} {
		for _, hint := range []bool{true, false} {
			for _, n := range rules {
				s := state{mode, hint, n}
				fmt.Fprintf(os.Stderr, "%s, %d rules\n", s, n)
				m, err := contained(s, layer, o.runs)
				if err != nil {
					return fmt.Errorf("%s, %d rules: %w", s, n, err)
				}
				r.Measurements = append(r.Measurements, m)
			}
		}
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, rawData), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return draw(o.out)
}

const rawData = "benchmarks.json"

// draw makes the page and the picture from the raw data.
func draw(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, rawData))
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.svg"), picture(r), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "benchmarks.md"), page(r), 0o644)
}

// contained measures one state in a new container: see host.Contain.
func contained(s state, layer string, runs int) (m measurement, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return m, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return m, err
	}
	defer os.Remove(dir)
	cmd := exec.Command(self, "-runs", strconv.Itoa(runs), string(encoded), layer)
	// The process that measures shall not run beside what it measures: no second thread of it, no collection of garbage.
	cmd.Env = append(host.Environment(dir), "GOMAXPROCS=1", "GOGC=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: host.Namespaces, Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(out, &m)
}
