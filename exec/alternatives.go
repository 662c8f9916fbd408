// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"slices"
	"strconv"
	"strings"
)

// Debian, Fedora and others let several packages offer a name: /usr/sbin/iptables is a link to /etc/alternatives/iptables,
// and that a link to what is chosen. Names that move together are a group. A wrapper that is not registered there is
// undone by the next operation on the iptables package, which makes the links anew.

// priority is above those of the distributions' packages, which are 5 to 20, so that the wrapper stays chosen.
const priority = 100

// alternativesTools are the programs that keep groups, and where they write them down: that of dpkg, which others use
// too, and that of chkconfig. See update-alternatives(1) and alternatives(8).
var alternativesTools = [...]struct {
	programs, dirs []string
}{
	{[]string{"/usr/bin/update-alternatives", "/usr/sbin/update-alternatives"}, []string{"/var/lib/dpkg/alternatives"}},
	{
		[]string{"/usr/sbin/alternatives", "/usr/bin/alternatives", "/usr/sbin/update-alternatives"},
		[]string{"/var/lib/alternatives", "/etc/alternatives-admindir"},
	},
}

// ErrAlternatives: the names are under alternatives, and the wrapper could not be registered there.
var ErrAlternatives = errors.New("cannot register")

// group is some of the six names under alternatives.
type group struct {
	tool    string   // the absolute path of the program that keeps it
	members []member // those of the six; the first is the group's own
	others  []member // its other names
	choices string   // the rest of what is written down
}

// member is a name of a group and the path that it is found by.
type member struct{ name, link string }

// groups returns those that have one of the six names in a directory.
func (w Wrapper) groups(d string) ([]group, error) {
	var found []group
	for _, t := range alternativesTools {
		tool := slices.IndexFunc(t.programs, isExecutable)
		if tool < 0 {
			continue
		}
		for _, kept := range t.dirs {
			// One of the six is the group's own name, and the plain ones are it everywhere.
			for _, name := range []string{"iptables", "ip6tables"} {
				g, err := w.readGroup(in(kept, name), name)
				switch {
				case err != nil && isNotThere(err):
					continue
				case err != nil && !isAlternative(in(d, name)):
					continue // it cannot be about this directory
				case err != nil:
					return nil, fmt.Errorf("%w: %q: %w", ErrAlternatives, in(kept, name), err)
				}
				isOurs := func(m member) bool { return slices.Contains(names[:], base(m.link)) && sameFile(dir(m.link), d) }
				for _, m := range g.members {
					if !isOurs(m) {
						g.others = append(g.others, m)
					}
				}
				g.members = slices.DeleteFunc(g.members, func(m member) bool { return !isOurs(m) })
				known := slices.ContainsFunc(found, func(other group) bool { return other.has(name) })
				if known || len(g.members) == 0 || g.members[0].name != name {
					continue
				}
				g.tool = t.programs[tool]
				found = append(found, g)
			}
		}
	}
	return found, nil
}

// isExecutable goes by the mode: where a root is being made, execution may be forbidden.
func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// isAlternative says whether a name is a link into /etc/alternatives.
func isAlternative(name string) bool {
	target, err := os.Readlink(name)
	if err != nil {
		return false
	}
	if target[0] != '/' {
		target = in(dir(name), target)
	}
	return sameFile(dir(target), alternativesDir)
}

// maxGroup is more than what is written down of any group, in bytes.
const maxGroup = 1 << 20

func (w Wrapper) readGroup(path, name string) (group, error) {
	if w.inRoot {
		if err := inside(path); err != nil {
			return group{}, err
		}
	}
	text, err := readRegular(path, maxGroup)
	if err != nil {
		return group{}, err
	}
	return parseGroup(name, string(text))
}

// parseGroup reads what both tools write down for a group, one item a line: "auto" or "manual"; the link; name and link
// of each slave; an empty line; the choices.
func parseGroup(name, text string) (group, error) {
	header, choices, ok := strings.Cut(text, "\n\n")
	lines := strings.Split(header, "\n")
	if !ok || len(lines)%2 != 0 || lines[0] != "auto" && lines[0] != "manual" {
		return group{}, errors.New("not a group of alternatives")
	}
	g := group{members: []member{{name, lines[1]}}, choices: choices}
	for i := 2; i < len(lines); i += 2 {
		g.members = append(g.members, member{lines[i], lines[i+1]})
	}
	return g, nil
}

func (g group) has(name string) bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return base(m.link) == name })
}

// chosen says whether a program is one of the choices, and all names of the group lead to it by their links.
func (g group) chosen(program string) bool {
	return slices.Contains(strings.Split(g.choices, "\n"), program) && g.leads(program)
}

func (g group) leads(program string) bool {
	return !slices.ContainsFunc(g.members, func(m member) bool { return !leadsTo(m.link, program) })
}

// leadsTo says whether a name is a link to its namesake under alternatives, and that a link to the file.
func leadsTo(link, file string) bool {
	c, err := follow(link)
	return err == nil && c.link != "" && c.link != link && sameFile(c.end, file)
}

// register makes a program the choice for the group.
func (g group) register(program string) error {
	own := g.members[0]
	args := []string{"--install", own.link, own.name, program, strconv.Itoa(priority)}
	for _, m := range g.members[1:] {
		args = append(args, "--slave", m.link, m.name, program)
	}
	for _, m := range g.others {
		// They are not ours. What they lead to now is as good with the wrapper.
		if target, err := os.Readlink(in(alternativesDir, m.name)); err == nil {
			args = append(args, "--slave", m.link, m.name, target)
		}
	}
	if err := run(g.tool, args...); err != nil {
		return err
	}
	if !g.leads(program) { // somebody has chosen by hand, or offers more
		if err := run(g.tool, "--set", own.name, program); err != nil {
			return err
		}
	}
	if !g.leads(program) {
		return fmt.Errorf("%w: %s took %q for %q, but not all names lead there", ErrAlternatives, g.tool, program, own.name)
	}
	return nil
}

// run starts one of the tools. Nothing of the caller's environment reaches it: it could lead the tool elsewhere.
func run(tool string, args ...string) error {
	cmd := osexec.Command(tool, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w: %s", ErrAlternatives, tool, args[0], err, bytes.TrimSpace(output))
	}
	return nil
}
