// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Bench measures what a wrapped call of iptables costs beside the direct one, on hosts of each mode with few and many
// rules, each in a container of its own. It is called by "make bench", and writes docs/benchmarks.json, .md and .svg; with
// the argument "draw" it makes the latter two again from the first.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	NoCLI                            sample // read-only, of a wrapper that is built without the command line
	FourSaves                        sample // how others look: four iptables-save processes
	Calls, FloorCalls, SaveCalls     int    // system calls until the program begins; of all four
	Processes, SaveProcesses         int    // started besides the one that was called
	Questions                        int    // netlink and getsockopt exchanges
	Memory, DirectMemory, SaveMemory int64  // the largest resident set, in KiB
}

// report is all that is written.
type report struct {
	Kernel, Go, CPU, Processors string
	NFT, Legacy                 string
	Wrapper                     string
	Date                        string
	Runs                        int
	Measurements                []measurement
	Sizes                       map[string]int64 // of the binary, in bytes, by architecture
}

var ruleCounts = []int{0, 1_000, 10_000, 100_000}

func main() {
	if err := host.Enter(); err != nil {
		fail(err)
	}
	if len(os.Args) == 2 && os.Args[1] == "draw" {
		if err := draw(); err != nil {
			fail(err)
		}
		return
	}
	if len(os.Args) > 1 {
		// In its container: one state.
		var s state
		if err := json.Unmarshal([]byte(os.Args[1]), &s); err != nil {
			fail(err)
		}
		m, err := measure(s, os.Args[2], os.Args[3], os.Args[4])
		if err != nil {
			fail(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(m); err != nil {
			fail(err)
		}
		return
	}
	if os.Geteuid() != 0 {
		fail(fmt.Errorf("it makes namespaces and mounts of its own, so it must be root: sudo make bench"))
	}
	if err := all(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func all() error {
	scratch, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	floor := filepath.Join(scratch, "floor")
	if err := run("go", "build", "-ldflags=-s -w", "-o", floor, "./test/bench/floor"); err != nil {
		return err
	}
	wrapper, err := filepath.Abs("bin/iptables-wrapper")
	if err != nil {
		return err
	}
	noCLI := filepath.Join(scratch, "no-cli")
	if err := buildWithoutCLI(scratch, noCLI); err != nil {
		return err
	}
	r := report{
		Kernel: output("uname", "-r"), Go: runtime.Version(), Processors: fmt.Sprint(runtime.NumCPU()), CPU: cpu(),
		NFT: output("xtables-nft-multi", "iptables", "--version"), Legacy: output("xtables-legacy-multi", "iptables", "--version"),
		Wrapper: output(wrapper, "--version"), Date: time.Now().UTC().Format("2006-01-02"), Runs: runs,
	}
	if r.Sizes, err = sizes(scratch); err != nil {
		return err
	}
	for _, mode := range []string{"nft", "legacy"} {
		for _, hint := range []bool{true, false} {
			for _, rules := range ruleCounts {
				s := state{mode, hint, rules}
				fmt.Fprintf(os.Stderr, "%s, %d rules\n", s, rules)
				m, err := contained(s, wrapper, floor, noCLI)
				if err != nil {
					return fmt.Errorf("%s, %d rules: %w", s, rules, err)
				}
				r.Measurements = append(r.Measurements, m)
			}
		}
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(rawData, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return draw()
}

const rawData = "docs/benchmarks.json"

// draw makes the page and the picture from the raw data.
func draw() error {
	raw, err := os.ReadFile(rawData)
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	if err := os.WriteFile("docs/benchmarks.svg", picture(r), 0o644); err != nil {
		return err
	}
	return os.WriteFile("docs/benchmarks.md", page(r), 0o644)
}

// contained measures one state in a new container: see host.Contain.
func contained(s state, binaries ...string) (m measurement, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	arg, err := json.Marshal(s)
	if err != nil {
		return m, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return m, err
	}
	defer os.Remove(dir)
	cmd := exec.Command(self, append([]string{string(arg)}, binaries...)...)
	cmd.Env = host.Environment(dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: host.Namespaces, Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(out, &m)
}

// buildWithoutCLI builds a wrapper in which the command line is replaced by nothing: the difference is what linking
// github.com/urfave/cli/v2 costs.
func buildWithoutCLI(scratch, binary string) error {
	cli, err := filepath.Abs("cli.go")
	if err != nil {
		return err
	}
	stub, overlay := filepath.Join(scratch, "stub.go"), filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(stub, []byte(`package main

import (
	"io"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

var version string

func commandLine(exec.Wrapper, []string, io.Writer, io.Writer) int { return len(version) }
`), 0o644); err != nil {
		return err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {cli: stub}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		return err
	}
	return run("make", "--no-print-directory", "-s", "build", "BINARY="+binary, "BUILDFLAGS=-overlay "+overlay)
}

// sizes builds the wrapper for each architecture that the image is for.
func sizes(scratch string) (map[string]int64, error) {
	sizes := map[string]int64{}
	for _, arch := range []string{"amd64", "arm64", "arm", "ppc64le", "s390x", "riscv64", "386"} {
		binary := filepath.Join(scratch, arch)
		if err := run("make", "--no-print-directory", "-s", "build", "GOARCH="+arch, "BINARY="+binary); err != nil {
			return nil, err
		}
		info, err := os.Stat(binary)
		if err != nil {
			return nil, err
		}
		sizes[arch] = info.Size()
	}
	return sizes, nil
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func cpu() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
