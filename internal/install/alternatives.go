// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// Debian, Fedora, openSUSE and others let several packages provide a command: /usr/sbin/iptables is a link to
// /etc/alternatives/iptables, which is a link to the chosen program. Names that change together are a group.
//
// install registers the switch, so a decision changes nothing under /etc/alternatives. Without a registration, the next
// operation on the package of iptables would replace the links.

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

// groups returns the names of each group that must be registered. It returns none if alternatives do not manage the
// names of this directory.
func (w work) groups() [][]string {
	if !w.IsAt(managedDir) || !hasGroup("iptables") {
		return nil
	}
	all := [][]string{exec.Names()} // Fedora, openSUSE: one group with five followers
	if hasGroup("ip6tables") {
		all = slices.Collect(slices.Chunk(exec.Names(), 3)) // Debian: one for each family
		if hasFollower("iptables", "ip6tables") {
			// AWS' base image has both. If the first group had no followers, setting it again would remove their names.
			all[0] = exec.Names()
		}
	}
	return slices.DeleteFunc(all, w.isRegistered)
}

func hasGroup(name string) bool {
	return slices.ContainsFunc(groupDirs, func(directory string) bool {
		_, err := os.Lstat(directory + "/" + name)
		return err == nil
	})
}

// hasFollower reports whether a name is one of a group's followers. dpkg and chkconfig write one a line.
func hasFollower(group, name string) bool {
	return slices.ContainsFunc(groupDirs, func(directory string) bool {
		content, err := os.ReadFile(directory + "/" + group)
		return err == nil && slices.Contains(strings.Split(string(content), "\n"), name)
	})
}

// isRegistered reports whether all names of a group lead to alternatives, and from there to the switch.
func (w work) isRegistered(group []string) bool {
	return !slices.ContainsFunc(link.Look(w.Dir), func(n link.Name) bool {
		return slices.Contains(group, n.Name) && !(w.managed(n.Name) && w.LeadsToSwitch(n))
	})
}

// managed reports whether a name is a link into /etc/alternatives.
func (w work) managed(name string) bool {
	content, err := w.Readlink(name)
	return err == nil && filepath.Dir(content) == alternativesDir
}

// register makes the switch the chosen program of a group. If it cannot, it adds a remark, and the names become plain
// links.
func (w work) register(group []string) {
	tool, err := findTool()
	for _, args := range [][]string{installArgs(group), {"--set", group[0], registered}} {
		if err == nil {
			err = run(tool, args)
		}
	}
	if err == nil && !w.isRegistered(group) {
		err = fmt.Errorf("%s did not make all names of the group lead to the switch", tool)
	}
	if err != nil {
		w.done.remark("%q could not be registered with alternatives for %s, so an operation on the package of "+
			"iptables may undo this: %v", registered, group[0], err)
		return
	}
	w.done.did("%s -> %s, by %s", strings.Join(group, ", "), registered, tool)
}

// installArgs returns the arguments that register the switch for all names of a group. A group in manual mode then
// keeps its program, so register calls --set after that.
func installArgs(group []string) []string {
	args := []string{"--install", managedDir + "/" + group[0], group[0], registered, priority}
	for _, name := range group[1:] {
		args = append(args, "--slave", managedDir+"/"+name, name, registered)
	}
	return args
}

// findTool returns the first tool that exists. It returns an error if others can replace the tool.
func findTool() (string, error) {
	for _, tool := range tools {
		var itself, directory unix.Stat_t
		err := unix.Stat(tool, &itself)
		if err != nil {
			continue
		}
		err = unix.Stat(filepath.Dir(tool), &directory)
		if err != nil || !file.Trusted(itself) || !file.Trusted(directory) {
			return "", fmt.Errorf("%q is not started: %w", tool, file.ErrExposed)
		}
		return tool, nil
	}
	return "", fmt.Errorf("there is none of %s", strings.Join(tools, ", "))
}

// run starts the tool, with an environment in which no variable, such as DPKG_ADMINDIR, can redirect it.
func run(tool string, args []string) error {
	cmd := osexec.Command(tool, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	// Without an input, os/exec would open /dev/null, which a chroot without /dev lacks.
	cmd.Stdin = strings.NewReader("")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", tool, args[0], err, bytes.TrimSpace(output))
	}
	return nil
}
