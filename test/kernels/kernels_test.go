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
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// top is the top of the repository.
const top = "../.."

var (
	onlyKernel = flag.String("kernel", "", "boot only this kernel: 5.10, 6.1, 6.12 or sid")
	onlyState  = flag.String("case", "",
		"boot it only for these states, by their names in states_test.go, separated by commas, or for the "+scripts)
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
func few() bool { return !host.All() && *onlyKernel == "" && *onlyState == "" }

// wanted says whether a state, or the scripts, are asked for on a kernel. The scripts run on all kernels only in "make
// nightly".
func wanted(kernel, name string) bool {
	if few() {
		return kernel == fewKernel && name == fewState
	}
	if name == scripts && !host.Nightly() && *onlyKernel == "" && kernel != all[0].name &&
		kernel != all[len(all)-1].name {
		return false // they take longest, and what works on the oldest and on the newest kernel works between them
	}
	return (*onlyKernel == "" || kernel == *onlyKernel) &&
		(*onlyState == "" || slices.Contains(strings.Split(*onlyState, ","), name))
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
			t.Fatalf("-case %q is neither in states_test.go nor %s", name, scripts)
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

// durations is how long each step took in the guest.
func durations(steps []step) (text string) {
	for _, s := range steps {
		text += fmt.Sprintf("; %s %.1fs", s.Name, s.Took.Seconds())
	}
	return text
}

// build makes what runs inside, and returns where it belongs there.
func build(tb testing.TB) map[string]string {
	tb.Helper()
	dir := tb.TempDir()
	self, err := os.Executable()
	host.Check(tb, err)
	file, err := elf.Open(self)
	host.Check(tb, err)
	defer file.Close()
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		tb.Fatal("this test is a guest's first process, and needs a dynamic loader: compile it with CGO_ENABLED=0, " +
			"and without -race")
	}
	files := map[string]string{"init": self}
	if !few() {
		files["test/test"] = dir + "/test"
		files["test/script"] = top + "/test/script"
		files["test/rules"] = top + "/test/rules"
		host.Run(tb, "go", "-C", top+"/test/script", "test", "-c", "-o", dir+"/test", ".")
	}
	for _, arch := range []string{"amd64", "386"} {
		files["wrapper/"+arch] = dir + "/" + arch
		host.Run(tb, "env", "GOARCH="+arch, "make", "--no-print-directory", "-C", top, "build", "BINARY="+dir+"/"+arch)
	}
	return files
}

// hostStates are the scripts of test/script that are about what a host is. They run in the guest, unchanged, on every
// kernel, with one of the builds.
var hostStates = []string{
	"decision", "other-network", "proven-answer-is-stored", "ipv6-off", "large-rule", "native-rules",
	"not-permitted", "undecodable-rule", "user-namespace",
}

var builds = []string{"amd64", "386"}

// runScripts is what the guest does.
func runScripts(build string) error {
	fmt.Println(stateMark + scripts)
	if err := os.Chdir("/test/script"); err != nil {
		return err
	}
	if err := os.Setenv("IPTABLES_WRAPPER", "/wrapper/"+build); err != nil {
		return err
	}
	return run(scripts, "", "/test/test", "-test.v", "-test.run=^TestScript$/^("+strings.Join(hostStates, "|")+")$")
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

// about is what the output of a test run says about one script.
func about(output, script string) string {
	_, part, _ := strings.Cut(output, "=== RUN   TestScript/"+script+"/")
	part, _, _ = strings.Cut(part, "\n=== ")
	if len(part) > 3000 {
		part = "[…]" + part[len(part)-3000:]
	}
	return part
}
