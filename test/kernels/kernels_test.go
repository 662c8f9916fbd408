// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernels boots Debian's kernels under qemu, with and without each backend, and runs the real program inside.
package kernels

import (
	"debug/elf"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// top is the top of the repository.
const top = "../.."

var (
	onlyKernel = flag.String("kernel", "", "boot only this kernel: 5.10, 6.1, 6.12 or sid")
	onlyState  = flag.String("case", "", "boot it only for these states, by their names in states_test.go, separated by commas, or for the "+scripts)
)

// scripts is the name of the boot that runs the scripts of test/script.
const scripts = "scripts"

// Without TEST_ALL, one kernel is booted for one state, which no other test of "make test" can have.
const (
	fewKernel = "6.12"
	fewState  = "nft-chain-nat-removed"
)

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Args[0] == "/init" {
		first()
	}
	os.Exit(m.Run())
}

// few says whether nothing special was asked for.
func few() bool { return !host.All() && !*update && *onlyKernel == "" && *onlyState == "" }

// wanted says whether a state, or the scripts, are asked for on a kernel. The scripts run on all kernels only in "make
// nightly", or where the page is written.
func wanted(kernel, name string) bool {
	if few() {
		return kernel == fewKernel && name == fewState
	}
	if name == scripts && !host.Nightly() && !*update && *onlyKernel == "" && kernel != all[0].name && kernel != all[len(all)-1].name {
		return false // they take longest, and what works on the oldest and on the newest kernel works between them
	}
	return (*onlyKernel == "" || kernel == *onlyKernel) && (*onlyState == "" || slices.Contains(strings.Split(*onlyState, ","), name))
}

// TestKernels boots every kernel for every state, and with the scripts, and compares the results with
// docs/evidence/kernels.md; with -update it writes them there.
func TestKernels(t *testing.T) {
	besides(t)
	if named := func(k kernel) bool { return k.name == *onlyKernel }; *onlyKernel != "" && !slices.ContainsFunc(all, named) {
		t.Fatalf("-kernel %q is none of %v", *onlyKernel, all)
	}
	for name := range strings.SplitSeq(*onlyState, ",") {
		if _, ok := find(name); !ok && name != "" && name != scripts {
			t.Fatalf("-case %q is neither in states_test.go nor %s", name, scripts)
		}
	}
	possible(t)
	programs, root := build(t), guestRoot(t)
	results := make([]outcome, len(all))
	t.Run("each", func(t *testing.T) {
		for i, k := range all {
			results[i] = outcome{kernel: k}
			if few() && k.name == fewKernel || !few() && (*onlyKernel == "" || k.name == *onlyKernel) {
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					testKernel(t, programs, root, &results[i])
				})
			}
		}
	})
	compare(t, results)
}

func testKernel(t *testing.T, programs map[string]string, root string, o *outcome) {
	f := fetch(t, o.kernel)
	o.version = f.version
	// Copies: the cache may be emptied while guests run.
	dir := t.TempDir()
	m := machine{image: filepath.Join(dir, "vmlinuz"), initramfs: filepath.Join(dir, "initramfs"), memory: "1024"}
	host.Run(t, "cp", f.image, m.image)
	trees := maps.Clone(programs)
	trees["usr/lib/modules"] = filepath.Join(f.modules, "lib/modules")
	if err := initramfs(m.initramfs, root, trees); err != nil {
		t.Fatal(err)
	}
	m.accel = m.accelerator(t)
	var mutex sync.Mutex
	booted := func(t *testing.T, parameters string) []section {
		report, boots := m.tell(t, parameters)
		mutex.Lock()
		defer mutex.Unlock()
		o.guests++
		o.boots += boots
		return report
	}
	// blame fails a test for what is wrong, and otherwise notes its row.
	blame := func(t *testing.T, row, wrong []string) {
		for _, line := range wrong {
			t.Error(line)
		}
		mutex.Lock()
		defer mutex.Unlock()
		if len(wrong) == 0 {
			o.rows[row[0]] = row
		}
	}
	o.rows = map[string][]string{}
	if wanted(o.name, scripts) { // it takes longest, so it comes first
		t.Run(scripts, func(t *testing.T) {
			t.Parallel()
			row, wrong := judgeScripts(booted(t, "run="+scripts+" build="+o.build))
			blame(t, row, wrong)
		})
	}
	for i, g := range groups {
		var names []string
		for _, s := range g.states {
			if wanted(o.name, s.name) {
				names = append(names, s.name)
			}
		}
		if len(names) == 0 {
			continue
		}
		t.Run(fmt.Sprintf("group-%d", i+1), func(t *testing.T) {
			t.Parallel()
			report := booted(t, "run="+strings.Join(names, ",")+" "+g.append)
			if len(report) != len(names) {
				t.Fatalf("the guest reports of %d states, not of %q", len(report), names)
			}
			for _, told := range report {
				t.Log(told.state + durations(told.steps))
				s, _ := find(told.state)
				row, wrong := s.judge(told.steps)
				blame(t, row, wrong)
			}
		})
	}
}

// durations is how long each step took in the guest.
func durations(steps []step) (text string) {
	for _, s := range steps {
		text += fmt.Sprintf("; %s %.1fs", s.Name, s.Took.Seconds())
	}
	return text
}

// besides lets a test run beside the others of this package, unless they write the page.
func besides(t *testing.T) {
	if !*update {
		t.Parallel()
	}
}

// possible ends a test where no kernel can be had or booted.
func possible(tb testing.TB) {
	tb.Helper()
	for _, program := range []string{qemu, "apt-get", "dpkg-deb", "mmdebstrap", "depmod", "xz"} {
		if _, err := exec.LookPath(program); err != nil {
			host.Cannot(tb, "boot kernels: %v; make test-kernels installs it", err)
		}
	}
}

// build makes what runs inside, and returns where it belongs there.
func build(tb testing.TB) map[string]string {
	tb.Helper()
	dir := tb.TempDir()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	file, err := elf.Open(self)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		tb.Fatal("this test is a guest's first process, and needs a dynamic loader: compile it with CGO_ENABLED=0, and without -race")
	}
	files := map[string]string{"init": self}
	if !few() {
		files["test/test"], files["test/script"], files["test/nodes"] = dir+"/test", top+"/test/script", top+"/test/nodes"
		host.Run(tb, "go", "test", "-c", "-o", dir+"/test", "..")
	}
	for _, arch := range []string{"amd64", "386"} {
		files["wrapper/"+arch] = dir + "/" + arch
		host.Run(tb, "env", "GOARCH="+arch, "make", "--no-print-directory", "-C", top, "build", "BINARY="+dir+"/"+arch)
	}
	return files
}
