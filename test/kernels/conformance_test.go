// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

var (
	examined   = flag.String("wrapper", "", "the `program` that TestConformance examines")
	named      = flag.String("names", "links", "how the six names are pointed at it: links, alternatives, or a shell `script`")
	situations = flag.String("situations", "", "only the situations of TestConformance that match this `expression`")
)

// suiteFile has the suite's arguments in the guest, one to a line.
const suiteFile = "/suite/arguments"

// conformance is the name of the boot that runs the conformance suite.
const conformance = "conformance"

// TestConformance runs the conformance suite of test/conformance against any wrapper on every kernel, or on that of -kernel,
// and prints its tables: make conformance KERNELS=1. Among the tests it runs a few situations on the oldest kernel.
func TestConformance(t *testing.T) {
	besides(t)
	if *examined == "" && (few() || *onlyKernel != "") {
		t.Skip("only with TEST_ALL, or by make conformance KERNELS=1")
	}
	possible(t)
	dir := t.TempDir()
	trees := build(t)
	program, kernel, run := *examined, *onlyKernel, *situations
	if program == "" {
		program, kernel, run = trees["wrapper/amd64"], all[0].name, "^host: hint"
	}
	trees["suite/conformance"], trees["suite/wrapper"], trees[suiteFile[1:]] = dir+"/conformance", program, dir+"/arguments"
	host.Run(t, "go", "build", "-o", dir+"/conformance", "../conformance")
	how := *named
	if filepath.IsAbs(how) {
		trees["suite/names"], how = how, "/suite/names"
	}
	arguments := []string{"-wrapper", "/suite/wrapper", "-names", how, "-run", run, "-limit", "30m"}
	if err := os.WriteFile(dir+"/arguments", []byte(strings.Join(arguments, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	root, whole := guestRoot(t), t // a guest's console explains nothing about the wrapper
	for _, k := range all {
		if kernel != "" && k.name != kernel {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			f := fetch(t, k)
			m := machine{image: f.image, initramfs: filepath.Join(t.TempDir(), "initramfs"), memory: "2048", limit: 2 * time.Hour}
			trees := maps.Clone(trees)
			trees["usr/lib/modules"] = filepath.Join(f.modules, "lib/modules")
			if err := initramfs(m.initramfs, root, trees); err != nil {
				t.Fatal(err)
			}
			m.accel = m.accelerator(t)
			report, _ := m.tell(t, "run="+conformance)
			if len(report) != 1 || len(report[0].steps) != 1 {
				t.Fatalf("the suite ran %d times, not once", len(report))
			}
			s := report[0].steps[0]
			fmt.Printf("## Linux %s, Debian's %s\n\n%s%s\n", k.name, f.version, s.Stdout, s.Stderr)
			if s.Status != 0 {
				whole.Errorf("on Linux %s, its status is %d", k.name, s.Status)
			}
		})
	}
}

// runSuite is what the guest does.
func runSuite() error {
	fmt.Println(stateMark + conformance)
	arguments, err := os.ReadFile(suiteFile)
	if err != nil {
		return err
	}
	return run(conformance, "", append([]string{"/suite/conformance"}, strings.Split(string(arguments), "\n")...)...)
}
