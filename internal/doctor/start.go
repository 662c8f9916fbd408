// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// errReplaceable is returned for a program that was not started.
var errReplaceable = errors.New("not started: users other than root could replace it")

// start runs a program under a name, as install.Output does, unless users other than root and the caller could replace
// it: doctor may run as root. It remembers the programs that it does not start.
//
// Everything that doctor starts is started here, by the path that was looked at. A path that was found, looked at and
// then found again could lead to somebody else's program by then.
func (r *Report) start(t tree.Tree, program, name string, args ...string) (stdout, stderr string, err error) {
	end, exposed, err := t.Settle(program)
	if exposed != "" {
		r.unstarted = append(r.unstarted, exposure{program, exposed})
		return "", "", errReplaceable
	}
	if err == nil {
		err = t.Pause("start", end)
	}
	if err != nil {
		return "", "", err
	}
	return install.Output(end, name, args...)
}

// exposure is a file that users other than root could replace, and what they can change for that.
type exposure struct{ file, by string }

// exposures are the files that doctor did not start because others could replace them, and the client.
func (r *Report) exposures() []exposure {
	all := slices.Clone(r.unstarted)
	if r.openPath != "" {
		all = append(all, exposure{r.Client, r.openPath})
	}
	slices.SortFunc(all, func(a, b exposure) int {
		return cmp.Or(strings.Compare(a.file, b.file), strings.Compare(a.by, b.by))
	})
	return slices.Compact(all)
}

// replaceable says which files others could replace.
func (r *Report) replaceable() string {
	var all []string
	for _, e := range r.exposures() {
		which := fmt.Sprintf("%q", e.file)
		if e.file == r.Client && r.openPath != "" {
			which += ", which PATH finds first,"
		}
		all = append(all, fmt.Sprintf("%s by changing %q", which, e.by))
	}
	return strings.Join(all, "; ")
}

// rewritable lists the wrappers' files that users other than root and the caller can rewrite: the running one, and
// those that the names lead to.
func rewritable(n layout.Names, names []layout.Status) (files []string) {
	var all []string
	own, err := n.Self.Path()
	if err == nil {
		all = append(all, own)
	}
	for _, s := range names {
		if s.Wrapper && !slices.Contains(all, s.ResolvesTo) {
			all = append(all, s.ResolvesTo)
		}
	}
	for _, file := range all {
		if n.Tree.Exposed(file) == file && !n.Tree.ReadOnly(file) {
			files = append(files, file)
		}
	}
	return files
}

// onlyFiles reports whether it is files, and no directories or links, that others can change.
func (r *Report) onlyFiles() bool {
	return !slices.ContainsFunc(r.exposures(), func(e exposure) bool {
		return e.by != e.file && !(e.by == r.openPath && r.openFile)
	})
}

// giveToRoot has the commands that leave it to root alone to change files.
func giveToRoot(exposed []exposure) string {
	var commands string
	for _, e := range exposed {
		commands += fmt.Sprintf("\nRUN chown -h root:root %[1]s && chmod go-w %[1]s", word(e.by))
	}
	return commands
}

func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, strconv.Quote(name))
	}
	return strings.Join(all, ", ")
}

// word is a path as one word for a shell, on one line, whatever it contains.
func word(path string) string {
	switch {
	case plainPath.MatchString(path):
		return path
	case !strings.ContainsFunc(path, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	escaped := ""
	for _, c := range []byte(path) {
		escaped += fmt.Sprintf(`\%03o`, c)
	}
	return `"$(printf '` + escaped + `')"`
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)
