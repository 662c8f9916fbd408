// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// This file is what runs inside: the test binary is the guest's first process. It does what a state asks for, runs
// programs, and tells over the serial console what they did. What that should have been is judged outside.

// step is one program that ran in the guest, and what the kernel did meanwhile.
type step struct {
	Name           string
	Status         int
	Stdout, Stderr string
	Asked          []string // the modules that the kernel asked for, one by one
	Loaded         []string // the modules that it has besides, after it
	Registered     []string // the legacy tables of this network namespace that are there besides, after it
	Took           time.Duration
}

// What the console carries between the kernel's own lines.
const (
	stepMark  = "guest: step "
	errorMark = "guest: cannot "
	endMark   = "guest: end"
)

// first is the guest's first process. It never returns.
func first() {
	fmt.Println()
	if err := guest(); err != nil {
		fmt.Println(errorMark + strings.ReplaceAll(err.Error(), "\n", " "))
	}
	fmt.Println(endMark)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // qemu ends then
	select {}
}

const (
	askedFile = "/run/asked"
	wrapper   = "/usr/sbin/iptables-wrapper"
)

// newNetns is in the environment of the first process once it is in another network namespace.
const newNetns = "GUEST_NEW_NETNS"

func guest() error {
	if os.Getenv(newNetns) == "" {
		if err := mounts(); err != nil {
			return err
		}
	}
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	parameters := map[string]string{}
	for field := range strings.FieldsSeq(string(line)) {
		name, value, _ := strings.Cut(field, "=")
		parameters[name] = value
	}
	if parameters["state"] == scripts {
		return runScripts()
	}
	i := slices.IndexFunc(states, func(s state) bool { return s.name == parameters["state"] })
	if i < 0 {
		return fmt.Errorf("find state %q", parameters["state"])
	}
	if os.Getenv(newNetns) == "" {
		if err := states[i].prepare(); err != nil {
			return err
		}
	}
	return states[i].run()
}

func mounts() error {
	for _, m := range []struct{ kind, target string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"}, {"tmpfs", "/run"},
	} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("none", m.target, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	for name, value := range map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "CI": "true"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := os.Symlink("/proc/self/fd", "/dev/fd"); err != nil {
		return err
	}
	return countModules()
}

// countModules lets each request of the kernel for a module be written down, then served.
func countModules() error {
	const program = "/usr/sbin/modprobe-asked"
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$*\" >>"+askedFile+"\nexec /sbin/modprobe \"$@\"\n"), 0o755); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/kernel/modprobe", []byte(program), 0)
}

// prepare makes the state.
func (s state) prepare() error {
	if err := s.removeModules(); err != nil {
		return err
	}
	if output, err := exec.Command("sh", "-c", s.load).CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", s.load, err, output)
	}
	if s.locked {
		if err := os.WriteFile("/proc/sys/kernel/modules_disabled", []byte("1"), 0); err != nil {
			return err
		}
	}
	if err := putFile(wrapper, "/wrapper/amd64"); err != nil || !s.netns {
		return err
	}
	// The first process' own namespace is that of its first thread, so this takes an execve.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	return unix.Exec("/init", []string{"/init"}, append(os.Environ(), newNetns+"=yes"))
}

// run asks everything.
func (s state) run() error {
	boot, err := modules()
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name, stdin string
		command     []string
	}{
		{"detect", "", []string{wrapper, "detect", "-o", "json"}},
		{"detect 386", "", []string{"/wrapper/386", "detect", "-o", "json"}},
		{"install", "", []string{wrapper, "install"}},
		{"call", "", []string{"env", "IPTABLES_WRAPPER_DEBUG=1", "iptables", "--version"}},
		{"restore", "*filter\n-A INPUT -s 192.0.2.1 -m comment --comment first -j DROP\nCOMMIT\n", []string{"iptables-restore"}},
		{"detect after", "", []string{wrapper, "detect", "-o", "json"}},
		{"detect after 386", "", []string{"/wrapper/386", "detect", "-o", "json"}},
		{"save nft", "", []string{"iptables-nft-save"}},
		{"save legacy", "", []string{"iptables-legacy-save"}},
		{"second call", "", []string{"iptables", "-S", "INPUT"}},
		{"names", "", []string{"readlink", "-f", "/usr/sbin/iptables-restore"}},
		{"reset", "", []string{wrapper, "reset"}},
		{"hint nft", "", []string{"unshare", "--net", "sh", "-c", hintScript, "sh", "iptables-nft"}},
		{"hint legacy", "", []string{"unshare", "--net", "sh", "-c", hintScript, "sh", "iptables-legacy"}},
	} {
		if err := run(s.name, s.stdin, s.command...); err != nil {
			return err
		}
	}
	if err := s.clear(boot); err != nil {
		return err
	}
	return run("doctor", "", wrapper, "doctor", "-o", "json")
}

// hintScript lets kubelet leave its hint by a program, and looks with both builds.
const hintScript = "$1 -t mangle -N KUBE-IPTABLES-HINT && " + wrapper + " detect -o json && /wrapper/386 detect -o json"

// removeModules deletes the files of modules that this kernel shall not have.
func (s state) removeModules() error {
	for _, pattern := range s.remove {
		var files []string
		for _, dir := range []string{"net/netfilter/", "net/ipv4/netfilter/", "net/ipv6/netfilter/"} {
			more, err := filepath.Glob("/usr/lib/modules/*/kernel/" + dir + pattern + ".ko*")
			if err != nil {
				return err
			}
			files = append(files, more...)
		}
		if len(files) == 0 {
			return fmt.Errorf("remove module %q: there is none", pattern)
		}
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	if len(s.remove) == 0 {
		return nil
	}
	if output, err := exec.Command("depmod").CombinedOutput(); err != nil {
		return fmt.Errorf("list the modules that are left: %w: %s", err, output)
	}
	return nil
}

// clear brings back what was there after the boot, but for modules where they are locked.
func (s state) clear(boot []string) error {
	// Each fails where its backend is not there.
	for _, command := range []string{"nft flush ruleset", "iptables-legacy -F", "ip6tables-legacy -F"} {
		_ = exec.Command("sh", "-c", command).Run()
	}
	for {
		now, err := modules()
		if err != nil {
			return err
		}
		more := added(boot, now)
		if len(more) == 0 || s.locked {
			return nil
		}
		output, err := exec.Command("rmmod", more...).CombinedOutput()
		after, listErr := modules()
		if listErr != nil {
			return listErr
		}
		if len(after) == len(now) {
			return fmt.Errorf("unload %s: %w: %s", more, err, output)
		}
	}
}

// run runs a program and reports it.
func run(name, stdin string, command ...string) error {
	before, err := modules()
	if err != nil {
		return err
	}
	if err := os.Remove(askedFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	tables := registered()
	start := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return err
	}
	s := step{Name: name, Status: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(start)}
	asked, err := os.ReadFile(askedFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(asked)) {
		s.Asked = append(s.Asked, strings.TrimPrefix(strings.TrimSpace(line), "-q -- "))
	}
	after, err := modules()
	if err != nil {
		return err
	}
	s.Loaded, s.Registered = added(before, after), added(tables, registered())
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	fmt.Println(stepMark + string(text))
	return nil
}

// modules are those that the kernel has now.
func modules() (names []string, err error) {
	text, err := os.ReadFile("/proc/modules")
	for line := range strings.Lines(string(text)) {
		names = append(names, strings.Fields(line)[0])
	}
	return names, err
}

// registered are the legacy tables of this network namespace. Their lists are there once x_tables is.
func registered() (tables []string) {
	for _, family := range []string{"ip", "ip6"} {
		text, _ := os.ReadFile("/proc/thread-self/net/" + family + "_tables_names")
		for table := range strings.FieldsSeq(string(text)) {
			tables = append(tables, family+" "+table)
		}
	}
	return tables
}

func added(before, after []string) (more []string) {
	for _, name := range after {
		if !slices.Contains(before, name) {
			more = append(more, name)
		}
	}
	return more
}

func putFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
