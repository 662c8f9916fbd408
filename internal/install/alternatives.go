// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Debian, Fedora, openSUSE and others let several packages provide a command: /usr/sbin/iptables is a link to
// /etc/alternatives/iptables, which is a link to the chosen program. Commands that change together are a group, which
// has the name of the first one. install registers the switch, so a decision changes nothing under /etc/alternatives.
// Without a registration, the next operation on the package of iptables would replace the links.

const (
	alternativesDir = "/etc/alternatives"
	managedDir      = "/usr/sbin" // where the distributions' groups have their links
	registered      = managedDir + "/" + link.Switch
	// priority is higher than that of the distributions' packages, which is 1 to 20.
	priority = "100"
)

// tools are the programs that manage groups: update-alternatives(1) of dpkg, alternatives(8) of chkconfig.
var tools = []string{
	"/usr/bin/update-alternatives",
	"/usr/sbin/update-alternatives",
	"/usr/sbin/alternatives",
	"/usr/bin/alternatives",
}

// groupDirs are the directories in which the tools store each group, in a file of its name: that of dpkg, that of the
// other distributions, and that of chkconfig if an image has nothing in /var (OSTree).
var groupDirs = []string{
	"/var/lib/dpkg/alternatives",
	"/var/lib/alternatives",
	"/etc/alternatives-admindir",
}

// readGroup returns the lines of a group's file, nil if there is no such group. Each follower has a line of its own.
func readGroup(name string) []string {
	for _, directory := range groupDirs {
		content, err := os.ReadFile(directory + "/" + name)
		if err == nil {
			return strings.Split(string(content), "\n")
		}
	}
	return nil
}

// groups returns the commands of each group that must be registered, none if alternatives do not manage this directory.
func (w *work) groups() [][]string {
	first := readGroup("iptables")
	if first == nil || !w.IsAt(managedDir) {
		return nil
	}
	all := [][]string{exec.Commands()[:3]} // Debian has one group for each family
	if slices.Contains(first, "ip6tables") {
		all[0] = exec.Commands() // Fedora and openSUSE have one with five followers
	}
	if readGroup("ip6tables") != nil { // AWS' base image has both forms
		all = append(all, exec.Commands()[3:])
	}
	return slices.DeleteFunc(all, w.isRegistered)
}

// isRegistered reports whether all commands of a group lead to alternatives, and from there to the switch.
func (w *work) isRegistered(group []string) bool {
	return !slices.ContainsFunc(look.In(w.Dir), func(c look.Command) bool {
		return slices.Contains(group, c.Name) && !(w.isManaged(c.Name) && w.IsAt(c.Switch))
	})
}

func (w *work) isManaged(name string) bool {
	content, err := w.Readlink(name)
	return err == nil && filepath.Dir(content) == alternativesDir
}

// register makes the switch the chosen program of a group. The commands that do not lead to it after that become plain
// links: see change.
func (w *work) register(group []string) error {
	i := slices.IndexFunc(tools, func(tool string) bool {
		_, err := os.Stat(tool)
		return err == nil
	})
	if i < 0 {
		return fmt.Errorf("there is none of %s", strings.Join(tools, ", "))
	}
	// No variable, such as DPKG_ADMINDIR, makes the tool register the switch elsewhere.
	s := run.Starter{Limit: run.Limit, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}}
	for _, args := range [][]string{
		installArgs(group),
		{"--set", group[0], registered}, // a group in manual mode keeps its program after --install
	} {
		out := s.Run(tools[i], "", slices.Concat(tools[i:i+1], args)...)
		if out.Err != nil {
			return fmt.Errorf("%s %s: %w: %s", tools[i], args[0], out.Err, out.Text())
		}
	}
	w.changes = append(w.changes, fmt.Sprintf("%s -> %s, by %s", strings.Join(group, ", "), registered, tools[i]))
	return nil
}

func installArgs(group []string) []string {
	args := []string{"--install", managedDir + "/" + group[0], group[0], registered, priority}
	for _, name := range group[1:] {
		args = append(args, "--slave", managedDir+"/"+name, name, registered)
	}
	return args
}
