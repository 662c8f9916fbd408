// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernels boots Debian's kernels under qemu, with and without each backend, and runs the real program inside.
package kernels

import (
	"debug/elf"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// top is the top of the repository.
const top = "../.."

var (
	onlyKernel = flag.String("kernel", "", "boot only this kernel: 5.10, 6.1, 6.12 or sid")
	onlyState  = flag.String("case", "", "boot it only in this state, by its name in states_test.go, or for the "+scripts)
)

// scripts is the name of the boot that runs the scripts of test/script.
const scripts = "scripts"

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Args[0] == "/init" {
		first()
	}
	os.Exit(m.Run())
}

// TestKernels boots every kernel in every state, and with the scripts, and compares what came of it with docs/kernels.md;
// with -update it writes that.
func TestKernels(t *testing.T) {
	if named := func(k kernel) bool { return k.name == *onlyKernel }; *onlyKernel != "" && !slices.ContainsFunc(all, named) {
		t.Fatalf("-kernel %q is none of %v", *onlyKernel, all)
	}
	if named := func(s state) bool { return s.name == *onlyState }; *onlyState != "" && *onlyState != scripts && !slices.ContainsFunc(states, named) {
		t.Fatalf("-case %q is neither in states_test.go nor %s", *onlyState, scripts)
	}
	possible(t)
	programs, root := build(t), guestRoot(t)
	results := make([]came, len(all))
	t.Run("each", func(t *testing.T) {
		for i, k := range all {
			results[i] = came{kernel: k, rows: make([][]string, len(states)+1)}
			if *onlyKernel == "" || k.name == *onlyKernel {
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					testKernel(t, programs, root, &results[i])
				})
			}
		}
	})
	compare(t, results)
}

func testKernel(t *testing.T, programs map[string]string, root string, c *came) {
	f := fetch(t, c.kernel)
	c.version = f.version
	m := machine{image: f.image, initramfs: filepath.Join(t.TempDir(), "initramfs")}
	trees := maps.Clone(programs)
	trees["usr/lib/modules"] = filepath.Join(f.modules, "lib/modules")
	if err := initramfs(m.initramfs, root, trees); err != nil {
		t.Fatal(err)
	}
	m.accel = m.accelerator(t)
	boot := func(i int, name, parameters string, judge func([]step) (row, wrong []string)) {
		if *onlyState != "" && name != *onlyState {
			return
		}
		t.Run(name, func(t *testing.T) {
			if name == scripts && *onlyKernel != "" && *onlyState == "" && !*update {
				t.Skip("one kernel alone goes without the scripts, to be done in a minute: -case scripts runs them")
			}
			t.Parallel()
			row, wrong := judge(m.tell(t, "state="+name+" "+parameters))
			for _, line := range wrong {
				t.Error(line)
			}
			if len(wrong) == 0 {
				c.rows[i] = row
			}
		})
	}
	boot(len(states), scripts, "", c.judgeScripts) // it takes longest
	for i, s := range states {
		boot(i, s.name, s.append, s.judge)
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
	files := map[string]string{"init": self, "test/test": dir + "/test", "test/script": top + "/test/script", "test/nodes": top + "/test/nodes"}
	host.Run(tb, "go", "test", "-c", "-o", dir+"/test", "..")
	for _, arch := range []string{"amd64", "386"} {
		files["wrapper/"+arch] = dir + "/" + arch
		host.Run(tb, "env", "GOARCH="+arch, "make", "--no-print-directory", "-C", top, "build", "BINARY="+dir+"/"+arch)
	}
	return files
}
