// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// This file is what runs inside: the test binary is the guest's first process. For each state that it is given, it
// takes modules away, starts a container, and brings the modules back. What the container's first process does is in
// container.go. All of it reports over the serial console; what it should have been is judged outside.

// What the console carries between the kernel's own lines.
const (
	beginMark = "guest: begin"
	stateMark = "guest: state "
	stepMark  = "guest: step "
	errorMark = "guest: cannot "
	endMark   = "guest: end"
)

const (
	askedFile = "/asked"
	rulesFile = "/rules"
	wrapper   = "/usr/sbin/iptables-wrapper"
)

// inState is in the environment of a container's first process: the name of its state.
const inState = "GUEST_STATE"

// first is the first process of the guest, or of a container in it. It never returns.
func first() {
	name := os.Getenv(inState)
	if name == "" {
		fmt.Println("\n" + beginMark)
	}
	run := guest
	if name != "" {
		run = func() error { return container(name) }
	}
	if err := run(); err != nil {
		fmt.Println(errorMark + strings.ReplaceAll(err.Error(), "\n", " "))
	}
	if name != "" {
		os.Exit(0)
	}
	log, _ := exec.Command("dmesg").Output() // with the registers of programs that died of a signal
	if _, after, found := strings.Cut(string(log), deathMark); found {
		fmt.Println(deathMark + after)
	}
	fmt.Println(endMark)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // qemu ends then
	select {}
}

func guest() error {
	if err := mounts(); err != nil {
		return err
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
	if parameters["run"] == scripts {
		return runScripts(parameters["build"])
	}
	for name := range strings.SplitSeq(parameters["run"], ",") {
		fmt.Println(stateMark + name)
		s, ok := find(name)
		if !ok {
			return fmt.Errorf("find state %q", name)
		}
		if err := s.enter(name); err != nil {
			return err
		}
	}
	return nil
}

func mounts() error {
	for _, m := range []struct{ kind, target string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"}, {"tmpfs", "/dev/shm"},
		{"tmpfs", "/run"}, {"tmpfs", "/tmp"}, {"cgroup2", "/sys/fs/cgroup"},
	} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("none", m.target, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	environment := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": "/root",
		"CI":   "true",
	}
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := os.Symlink("/proc/self/fd", "/dev/fd"); err != nil {
		return err
	}
	if err := os.WriteFile(rulesFile, []byte(realistic), 0o644); err != nil {
		return err
	}
	return countModules()
}

// countModules makes each of the kernel's requests for a module be written down, then served.
func countModules() error {
	const program = "/usr/sbin/modprobe-asked"
	err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$*\" >>"+askedFile+"\nexec /sbin/modprobe \"$@\"\n"), 0o755)
	if err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/kernel/modprobe", []byte(program), 0)
}

// enter runs a state's container, and leaves the kernel as it was before unless the state has locked it.
func (s state) enter(name string) (err error) {
	boot, err := modules()
	if err != nil {
		return err
	}
	hidden, err := s.hideModules()
	if err != nil {
		return err
	}
	if err := shell(s.outside); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	cmd := host.Contained(dir, "/init")
	cmd.Env = append(cmd.Env, inState+"="+name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run the container of state %s: %w", name, err)
	}
	if s.locked {
		return nil
	}
	for to, from := range hidden {
		err = errors.Join(err, os.Rename(from, to))
	}
	return errors.Join(err, unload(boot))
}

// hideModules takes the files of the modules away that this kernel shall not have. It returns where each of them is
// now.
func (s state) hideModules() (hidden map[string]string, err error) {
	hidden = map[string]string{}
	for _, pattern := range s.remove {
		var files []string
		for _, dir := range []string{"netfilter/", "ipv4/netfilter/", "ipv6/netfilter/"} {
			more, err := filepath.Glob("/usr/lib/modules/*/kernel/net/" + dir + pattern + ".ko")
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("remove module %q: there is none", pattern)
		}
		for _, file := range files {
			hidden[file] = file + ".hidden"
			if err := os.Rename(file, hidden[file]); err != nil {
				return nil, err
			}
		}
	}
	return hidden, unlist(hidden)
}

// unlist makes modules.dep not have the modules that are hidden. The whole one is hidden, too.
func unlist(hidden map[string]string) error {
	if len(hidden) == 0 {
		return nil
	}
	lists, err := filepath.Glob("/usr/lib/modules/*/modules.dep")
	if err != nil || len(lists) != 1 {
		return fmt.Errorf("find modules.dep: %q, %w", lists, err)
	}
	whole, err := os.ReadFile(lists[0])
	if err != nil {
		return err
	}
	var left strings.Builder
	for line := range strings.Lines(string(whole)) {
		module, _, _ := strings.Cut(line, ":")
		if hidden[filepath.Join(filepath.Dir(lists[0]), module)] == "" {
			left.WriteString(line)
		}
	}
	hidden[lists[0]] = lists[0] + ".whole"
	return errors.Join(os.Rename(lists[0], hidden[lists[0]]), os.WriteFile(lists[0], []byte(left.String()), 0o644))
}

// unload removes the modules that have been loaded since.
func unload(boot []string) error {
	var last error
	// The kernel frees some of what uses them later on, when it has the time.
	for range 200 {
		now, err := modules()
		if err != nil {
			return err
		}
		more := added(boot, now)
		if len(more) == 0 {
			return nil
		}
		if output, err := exec.Command("rmmod", more...).CombinedOutput(); err != nil {
			last = fmt.Errorf("unload %s: %w: %s", more, err, output)
		}
		if after, err := modules(); err == nil && len(after) == len(now) {
			time.Sleep(100 * time.Millisecond)
		}
	}
	return last
}

func shell(command string) error {
	if output, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", command, err, output)
	}
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
