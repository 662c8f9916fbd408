// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Debian, Fedora and others let several packages provide a command: /usr/sbin/iptables is a link to
// /etc/alternatives/iptables, and that is a link to the chosen program. Names that change together are a group. What
// is registered for the wrapper is the switch, so that a decision changes nothing under /etc/alternatives: for the
// tool, the group stays as it was chosen. Without a registration, the next operation on the iptables package would
// undo the wrapper.

// groupDirs are where groups are stored: dpkg's, which other distributions use too, and chkconfig's, which on systems
// made from an image has nothing in /var (fedora-sysv/chkconfig#135).
var groupDirs = []string{
	"/var/lib/dpkg/alternatives",
	"/var/lib/alternatives",
	"/etc/alternatives-admindir",
}

// groupNames are the names that a group itself has, on every known system.
var groupNames = []string{"iptables", "ip6tables"}

// tools are the programs that manage groups, see update-alternatives(1) and alternatives(8).
var tools = []string{
	"/usr/bin/update-alternatives",
	"/usr/sbin/update-alternatives",
	"/usr/sbin/alternatives",
	"/usr/bin/alternatives",
}

// ErrAlternatives is returned when the commands are managed by alternatives and the wrapper could not be registered.
var ErrAlternatives = errors.New("cannot register with alternatives")

// group is a group of alternatives that has at least one of the six names in the directory.
type group struct {
	tool    string   // absolute path of the program that manages it
	members []member // the first is the group's own
	choices []string // the remaining lines: the programs to choose from are among them
}

// member is a name in a group and the path of its link.
type member struct {
	name, link string
	ours       bool // one of the six names, in the directory
}

// findGroups returns the groups whose own name is one of the six in a directory.
func findGroups(dir string) (found []group, err error) {
	i := slices.IndexFunc(tools, isProgram)
	if i < 0 {
		return nil, nil
	}
	for _, groups := range groupDirs {
		for _, name := range groupNames {
			if slices.ContainsFunc(found, func(g group) bool { return g.has(name) }) {
				continue
			}
			path := programs.Join(groups, name)
			g, err := readGroup(path, dir)
			managed := alternative(tree.Tree{}, programs.Join(dir, name)) != ""
			if err != nil && managed && !tree.IsNotExist(err) {
				return nil, fmt.Errorf("%w: %q: %w", ErrAlternatives, path, err)
			}
			if err != nil || !g.members[0].ours {
				continue
			}
			g.tool = tools[i]
			found = append(found, g)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	exposed := tree.Tree{}.Exposed(tools[i])
	if exposed != "" {
		return nil, fmt.Errorf("%w: %q is not started, because users other than root can change %q",
			ErrAlternatives, tools[i], exposed)
	}
	return found, nil
}

// isProgram reports whether a path is a program. access(2) would say no where an image is assembled in a file system
// that is noexec.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func readGroup(path, dir string) (g group, err error) {
	f, err := tree.Tree{}.Open(path)
	if err != nil {
		return g, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return g, err
	}
	return g, g.parse(programs.Base(path), string(text), dir)
}

// alternative returns the link in /etc/alternatives that a path is a link to, "" if it is none.
func alternative(t tree.Tree, path string) string {
	target, err := t.Target(path)
	if err != nil || !t.SameFile(programs.Dir(target), layout.AlternativesDir) {
		return ""
	}
	return programs.Join(layout.AlternativesDir, programs.Base(target))
}

// parse reads the format that both tools store a group in, one item per line: "auto" or "manual"; the link; name and
// link of each slave; an empty line; the choices.
func (g *group) parse(name, text, dir string) error {
	header, rest, ok := strings.Cut(text, "\n\n")
	lines := strings.Split(header, "\n")
	if !ok || len(lines)%2 != 0 || lines[0] != "auto" && lines[0] != "manual" {
		return errors.New("not a group of alternatives")
	}
	lines[0] = name
	for pair := range slices.Chunk(lines, 2) {
		ours := programs.IsName(programs.Base(pair[1])) && tree.Tree{}.SameFile(programs.Dir(pair[1]), dir)
		g.members = append(g.members, member{pair[0], pair[1], ours})
	}
	g.choices = strings.Split(rest, "\n")
	return nil
}

func (g group) has(name string) bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return m.ours && programs.Base(m.link) == name })
}

// program is the path that the group's tool is given: the switch, beside the names as the group spells them.
func (g group) program() string { return programs.Join(programs.Dir(g.members[0].link), layout.Switch) }

// registered reports whether the switch is one of the choices, and the one that all names of the group point to.
func (g group) registered() bool { return slices.Contains(g.choices, g.program()) && g.chosen() }

func (g group) chosen() bool {
	return !slices.ContainsFunc(g.members, func(m member) bool {
		target, _ := os.Readlink(programs.Join(layout.AlternativesDir, m.name))
		return m.ours && (target != g.program() || alternative(tree.Tree{}, m.link) == "")
	})
}

// priority is that of the wrapper's switch. The distributions' packages have priorities from 5 to 20, so it stays the
// best choice.
const priority = "100"

// register makes the switch the chosen program of the group. Former versions registered the wrapper itself: that choice
// goes, because it would compete with this one.
func (g group) register() error {
	first := g.members[0]
	err := run(g.tool, g.installArgs()...)
	if err != nil {
		return err
	}
	former := programs.Join(programs.Dir(first.link), self.WrapperName)
	if slices.Contains(g.choices, former) {
		err = run(g.tool, "--remove", first.name, former)
		if err != nil {
			return err
		}
	}
	if !g.chosen() { // in manual mode, or another choice has a higher priority
		err = run(g.tool, "--set", first.name, g.program())
		if err != nil {
			return err
		}
	}
	if !g.chosen() {
		return fmt.Errorf("%w: %s accepted %q for %q, but not all names lead there",
			ErrAlternatives, g.tool, g.program(), first.name)
	}
	return nil
}

// installArgs are the arguments that register the switch for all names of the group. A name that is none of the six
// keeps what it points to.
func (g group) installArgs() []string {
	first := g.members[0]
	args := []string{"--install", first.link, first.name, g.program(), priority}
	for _, m := range g.members[1:] {
		target := g.program()
		if !m.ours {
			target, _ = os.Readlink(programs.Join(layout.AlternativesDir, m.name))
		}
		if target != "" {
			args = append(args, "--slave", m.link, m.name, target)
		}
	}
	return args
}

// run starts one of the tools, with an environment that cannot redirect it.
func run(tool string, args ...string) error {
	cmd := exec.Command(tool, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.Stdin = nothing()
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w: %s", ErrAlternatives, tool, args[0], err, bytes.TrimSpace(output))
	}
	return nil
}
