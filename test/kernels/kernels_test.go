// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernels boots Debian's kernels under qemu, with and without each backend, and runs the real program inside.
package kernels

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// top is the top of the repository.
const top = "../.."

var (
	onlyKernel = flag.String("kernel", "", "boot only this kernel: 5.10, 6.1, 6.12 or sid")
	onlyState  = flag.String("case", "", "boot it only in this state, by its name in states_test.go")
)

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Args[0] == "/init" {
		first()
	}
	os.Exit(m.Run())
}

func TestKernels(t *testing.T) {
	programs := build(t)
	for _, k := range all {
		if *onlyKernel != "" && k.name != *onlyKernel {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			f := fetch(t, k)
			m := machine{"tcg", f.image, filepath.Join(t.TempDir(), "initramfs")}
			trees := map[string]string{"usr/lib/modules": filepath.Join(f.modules, "lib/modules")}
			for to, from := range programs {
				trees[to] = from
			}
			if err := initramfs(m.initramfs, guestRoot(t), trees); err != nil {
				t.Fatal(err)
			}
			for _, s := range states {
				if *onlyState != "" && s.name != *onlyState {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					console, ended := m.boot(t, 5*time.Minute, "state="+s.name+" "+s.append)
					steps, err := parse(console, ended)
					if err != nil {
						t.Fatalf("%v\n%s", err, tail(console))
					}
					row, wrong := s.judge(steps)
					for _, line := range wrong {
						t.Error(line)
					}
					t.Log(row)
					if t.Failed() {
						t.Logf("the console ends:\n%s", tail(console))
					}
				})
			}
		})
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
	files := map[string]string{"init": self, "test/test": dir + "/test", "test/script": top + "/test/script", "test/nodes": top + "/test/nodes"}
	host.Run(tb, "go", "test", "-c", "-o", dir+"/test", "..")
	for _, arch := range []string{"amd64", "386"} {
		files["wrapper/"+arch] = dir + "/" + arch
		host.Run(tb, "env", "GOARCH="+arch, "make", "--no-print-directory", "-C", top, "build", "BINARY="+dir+"/"+arch)
	}
	return files
}
