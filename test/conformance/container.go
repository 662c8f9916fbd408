// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/rules"
)

// A wrapper is the program that is examined, and how the names point to it.
type wrapper struct{ file, names string }

// A container is where a situation takes place. This process is its first.
type container struct {
	wrapper
	dir   string // of its own, writable always
	tools string // the real programs under names such as iptables-nft, for the host's side

	besides strings.Builder // what else was seen
}

var names = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save",
	"ip6tables-restore"}

//go:embed prelude.sh
var prelude string

// be plays a situation in this process, which is a container's first, and prints the result.
func (w wrapper) be(id string) {
	for _, s := range situations() {
		if s.ID() != id {
			continue
		}
		c, err := w.enter()
		if err != nil {
			fail(err)
		}
		if s.run == nil {
			fail(c.become(s.script))
		}
		fmt.Print(s.run(c), "\x00", c.besides.String())
		return
	}
	fail(fmt.Errorf("no situation %q", id))
}

func (w wrapper) enter() (*container, error) {
	dir, err := os.MkdirTemp("/run", "conformance-")
	if err != nil {
		return nil, err
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "mode=777"); err != nil {
		return nil, err
	}
	c := &container{wrapper: w, dir: dir, tools: filepath.Join(dir, "tools")}
	if err := os.Mkdir(c.tools, 0o755); err != nil {
		return nil, err
	}
	for _, backend := range []string{"nft", "legacy"} {
		multi := "xtables-" + backend + "-multi"
		if err := copyFile("/usr/sbin/"+multi, filepath.Join(c.tools, multi)); err != nil {
			return nil, fmt.Errorf("iptables with both backends is needed: %w", err)
		}
		for _, name := range names {
			tables, action, _ := strings.Cut(name, "-")
			if action != "" {
				action = "-" + action
			}
			if err := os.Symlink(multi, filepath.Join(c.tools, tables+"-"+backend+action)); err != nil {
				return nil, err
			}
		}
	}
	for _, dumps := range []fs.FS{rules.Nodes(), rules.Programs()} {
		err := os.CopyFS(dir, dumps)
		if err != nil {
			return nil, err
		}
	}
	return c, c.lay()
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// alternatives registers the names with update-alternatives.
const alternatives = `
for group in iptables ip6tables; do
	update-alternatives --force --quiet --install /usr/sbin/$group $group "$WRAPPER" 100 \
		--slave /usr/sbin/$group-save $group-save "$WRAPPER" \
		--slave /usr/sbin/$group-restore $group-restore "$WRAPPER"
	update-alternatives --force --quiet --set $group "$WRAPPER"
done`

// lay points the six commands at the wrapper, as if nothing had been called yet.
func (c *container) lay() error {
	file := c.file
	if named := c.names == "links" || c.names == "alternatives"; named && !isIPTables(file) {
		file = "/usr/sbin/iptables-wrapper"
		if _, err := os.Stat(file); err != nil {
			if err := copyFile(c.file, file); err != nil {
				return err
			}
		}
	}
	if c.names == "links" {
		for _, name := range names {
			path := filepath.Join("/usr/sbin", name)
			if err := errors.Join(os.Remove(path), os.Symlink(file, path)); err != nil {
				return err
			}
		}
		return nil
	}
	cmd := exec.Command("sh", "-e", c.names)
	if c.names == "alternatives" {
		cmd.Args = []string{"sh", "-e", "-c", alternatives}
	}
	cmd.Env = append(os.Environ(), "WRAPPER="+file)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c.names, err, output)
	}
	return nil
}

// isIPTables says whether the program is iptables' own, which the names then point to directly.
func isIPTables(file string) bool {
	return strings.HasPrefix(file, "/usr/sbin/xtables-")
}

// epilogue prints what be does of a situation that is written in Go.
const epilogue = `
printf '\0'
[ ! -e "$TMP/besides" ] || while IFS= read -r line; do printf '%s\n' "$line"; done <"$TMP/besides"`

// become makes this process a situation's script, behind the prelude. A command that fails is the script's own fault:
// what may fail is run by the function call.
func (c *container) become(script string) error {
	if err := os.Chdir(c.dir); err != nil {
		return err
	}
	return unix.Exec("/bin/sh", []string{"sh", "-e", "-c", prelude + script + epilogue}, c.environment())
}

func (c *container) environment() []string {
	suite, err := os.Executable()
	if err != nil {
		fail(err)
	}
	return append(os.Environ(), "TMP="+c.dir, "TOOLS="+c.tools, "LC_ALL=C", "SUITE="+suite)
}

// sh runs such a script, and returns what it prints in one line.
func (c *container) sh(script string) string {
	cmd := exec.Command("sh", "-e", "-c", prelude+script)
	cmd.Dir = c.dir
	cmd.Env = c.environment()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		fail(fmt.Errorf("%w: after %q: %s\nin the script: %s", err, stdout.String(), stderr.String(), script))
	}
	file := filepath.Join(c.dir, "besides")
	besides, _ := os.ReadFile(file) // there is none where nothing was said
	c.besides.Write(besides)
	_ = os.Remove(file)
	return oneLine(stdout.String())
}

// read returns what a script has written into a file.
func (c *container) read(name string) string {
	content, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		fail(err)
	}
	return string(content)
}

// oneLine joins lines.
func oneLine(s string) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(s, "?")), "\n")
	runes := []rune(strings.Join(lines, ", "))
	if len(runes) > 200 {
		runes = append(runes[:200], []rune("...")...)
	}
	return string(runes)
}
