// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"debug/elf"
	"flag"
	"fmt"
	"os"
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
		"boot it only for these states, by their names in states.go, separated by commas, or for the "+scripts)
)

// scripts is the name of the boot that runs the scripts of test/script.
const scripts = "scripts"

// Without TEST_ALL, one kernel is booted for one state, which no other test of "make test" can have.
const (
	fewKernel = "6.12"
	fewState  = "nft-chain-nat-removed"
)

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

// about is what the output of a test run says about one script.
func about(output, script string) string {
	_, part, _ := strings.Cut(output, "=== RUN   TestScript/"+script+"/")
	part, _, _ = strings.Cut(part, "\n=== ")
	if len(part) > 3000 {
		part = "[…]" + part[len(part)-3000:]
	}
	return part
}
