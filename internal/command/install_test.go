// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// wantWrapped checks that the six commands in a directory, and the next call, run the wrapper.
func wantWrapped(t *testing.T, directory string) {
	t.Helper()
	for _, name := range host.Commands {
		end, err := filepath.EvalSymlinks(directory + "/" + name)
		if err != nil || end != directory+"/iptables-wrapper" {
			t.Errorf("%s leads to %q, %v", name, end, err)
		}
	}
}

// In a chroot without /proc, install finds its own file by the path that it was called by.
func TestInstallWithoutProc(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const root = "/run/root"
	for _, test := range []struct {
		call   string
		status int
		output string // what it contains
	}{
		{call: "chroot /run/root iptables-wrapper install", status: 1, output: "iptables-wrapper: install: " +
			"the running file cannot be read\niptables-wrapper: try: mount /proc, or call the wrapper by a path that " +
			"this user may read\n"},
		{call: "chroot /run/root /usr/sbin/iptables-wrapper install", output: "wrote "},
		{call: "cd /run/root/usr/sbin; chroot /run/root ./usr/sbin/iptables-wrapper install", output: "wrote "},
		{call: "chroot /run/root /opt/iptables-wrapper install", output: "wrote /usr/sbin/iptables-wrapper\n"},
	} {
		host.Run(t, "sh", "-ec", `
			rm -rf /run/root; mkdir -p /run/root/usr/sbin /run/root/opt; cd /run/root/usr/sbin
			cp -a /usr/sbin/xtables-*-multi .
			for n in iptables ip6tables; do for s in "" -save -restore; do ln -s xtables-nft-multi $n$s; done; done
			cp /proc/$PPID/exe /run/root/opt/iptables-wrapper
			ln -s /opt/iptables-wrapper .`)
		cmd := exec.Command("sh", "-c", test.call)
		output, _ := cmd.CombinedOutput()
		status := cmd.ProcessState.ExitCode()
		if status != test.status || !strings.Contains(string(output), test.output) ||
			status != 0 && strings.Count(string(output), "\n") != 2 {
			t.Errorf("%s: status %d, %s", test.call, status, output)
		}
		if status == 0 {
			wantWrapped(t, root+"/usr/sbin")
		}
	}
}
