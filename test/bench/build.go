// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// build makes a layer with the programs that are measured. They are copied into it: how a file was written, by the linker
// or in one piece, decides in what pieces the kernel keeps it, and so what it costs to map.
func build(layer, scratch, before string) error {
	built := func(name string) string { return filepath.Join(scratch, name) }
	if err := run("go", "build", "-ldflags=-s -w", "-o", built("floor"), "./test/bench/floor"); err != nil {
		return err
	}
	if err := buildWithoutCLI(scratch, built("no-cli")); err != nil {
		return err
	}
	if before != "" {
		tree := filepath.Join(scratch, "tree")
		if err := run("git", "worktree", "add", "--detach", tree, before); err != nil {
			return err
		}
		err := run("make", "--no-print-directory", "-s", "-C", tree, "build", "BINARY="+built("before"))
		if err := cmp.Or(err, run("git", "worktree", "remove", "--force", tree)); err != nil {
			return err
		}
	}
	return run("sh", "-ec", `
		mkdir "$2"
		cp bin/iptables-wrapper "$1/floor" "$2"
		for name in no-cli before; do
			if [ -e "$1/$name" ]; then
				mkdir "$2/$name"
				ln -s ../xtables-nft-multi ../xtables-legacy-multi "$2/$name"
				cp "$1/$name" "$2/$name/iptables"
			fi
		done`, "sh", scratch, layer)
}

// buildWithoutCLI builds a wrapper in which the command line is replaced by nothing: the difference is what linking
// github.com/urfave/cli/v2 costs.
func buildWithoutCLI(scratch, binary string) error {
	stub, overlay := filepath.Join(scratch, "stub.go"), filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(stub, []byte(`package command

import (
	"io"

	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

var version string

func Run(self.Process, []string, io.Writer, io.Writer) int { return len(version) }
`), 0o644); err != nil {
		return err
	}
	files, err := filepath.Glob("internal/command/*.go")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find the command line: %w", cmp.Or(err, os.ErrNotExist))
	}
	replaced := map[string]string{}
	for i, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		if replaced[path] = ""; i == 0 {
			replaced[path] = stub
		}
	}
	replace, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		return err
	}
	return run("make", "--no-print-directory", "-s", "build", "BINARY="+binary, "BUILDFLAGS=-overlay "+overlay)
}

// size builds the wrapper for an architecture and returns how many bytes it has.
func size(scratch, arch string) (int64, error) {
	binary := filepath.Join(scratch, arch)
	if err := run("make", "--no-print-directory", "-s", "build", "GOARCH="+arch, "BINARY="+binary); err != nil {
		return 0, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// sections returns how many bytes of a program each part of it has in memory.
func sections(binary string) (map[string]int64, error) {
	file, err := elf.Open(binary)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parts := map[string]int64{}
	for _, s := range file.Sections {
		switch {
		case s.Flags&elf.SHF_ALLOC == 0:
		case s.Name == ".text", s.Name == ".gopclntab":
			parts[s.Name] += int64(s.Size)
		case s.Flags&elf.SHF_WRITE != 0:
			parts["writable"] += int64(s.Size)
		default:
			parts["read-only"] += int64(s.Size)
		}
	}
	return parts, nil
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func cpu() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
