// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernels boots Debian's kernels under qemu, with and without each backend, and runs the real program inside.
package kernels

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Args[0] == "/init" {
		first()
	}
	os.Exit(m.Run())
}

// TestKernels boots every kernel for every state, and with the scripts. What it expects is in
// docs/evidence/compatibility.md.
func TestKernels(t *testing.T) {
	t.Parallel()
	named := func(k kernel) bool { return k.name == *onlyKernel }
	if *onlyKernel != "" && !slices.ContainsFunc(all, named) {
		t.Fatalf("-kernel %q is none of %v", *onlyKernel, all)
	}
	for name := range strings.SplitSeq(*onlyState, ",") {
		if _, ok := find(name); !ok && name != "" && name != scripts {
			t.Fatalf("-case %q is neither in states.go nor %s", name, scripts)
		}
	}
	host.Needs(t, qemu, "mmdebstrap", "depmod", "xz", "cpio")
	programs, root := build(t), guestRoot(t)
	for _, k := range all {
		if few() && k.name == fewKernel || !few() && (*onlyKernel == "" || k.name == *onlyKernel) {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				testKernel(t, programs, root, k)
			})
		}
	}
}

func testKernel(t *testing.T, programs map[string]string, root string, k kernel) {
	f := fetch(t, k)
	t.Logf("Debian's package %s", f.version)
	// Copies: the cache may be emptied while guests run.
	dir := t.TempDir()
	m := machine{image: filepath.Join(dir, "vmlinuz"), initramfs: filepath.Join(dir, "initramfs"), memory: "1024"}
	host.Run(t, "cp", f.image, m.image)
	trees := maps.Clone(programs)
	trees["usr/lib/modules"] = filepath.Join(f.modules, "lib/modules")
	initramfs(t, m.initramfs, root, trees)
	m.accel = m.accelerator(t)
	if wanted(k.name, scripts) { // it takes longest, so it comes first
		t.Run(scripts, func(t *testing.T) {
			t.Parallel()
			judgeScripts(t, m.tell(t, "run="+scripts+" build="+k.build))
		})
	}
	for i, g := range groups {
		var names []string
		for _, s := range g.states {
			if wanted(k.name, s.name) {
				names = append(names, s.name)
			}
		}
		if len(names) == 0 {
			continue
		}
		t.Run(fmt.Sprintf("group-%d", i+1), func(t *testing.T) {
			t.Parallel()
			report := m.tell(t, "run="+strings.Join(names, ",")+" "+g.append)
			if len(report) != len(names) {
				t.Fatalf("the guest reports of %d states, not of %q", len(report), names)
			}
			for _, told := range report {
				t.Log(told.state + durations(told.steps))
				s, _ := find(told.state)
				for _, line := range s.judge(told.steps) {
					t.Error(line)
				}
			}
		})
	}
}

func judgeScripts(t *testing.T, report []section) {
	if len(report) != 1 || len(report[0].steps) != 1 {
		t.Fatalf("the scripts ran in %d states, not in one", len(report))
	}
	output := report[0].steps[0].Stdout
	for _, script := range hostStates {
		if !strings.Contains(output, "    --- PASS: TestScript/"+script+" ") {
			t.Errorf("%s:\n%s", script, about(output, script))
		}
	}
}
