// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// Where the six commands lead.

// name is one of the six.
type name struct {
	link.Command
	call     plan.Plan // what a call of it runs
	inPath   bool      // PATH finds it
	fault    error     // why a shell does not run the file that is there
	readOnly bool      // its directory is on a read-only file system
	canReset bool      // the switch and the wrapper are there, so that the wrapper can reset the switch
	way      []string  // the links on the way to its file, or the file
	script   bool      // it is neither the wrapper nor a program of iptables, by its file's name
	printed  string    // by a script's --version, "" if that is a version of iptables
}

// directory is that of the switch that the name leads through, otherwise its own: there, install lays the switch.
func (n name) directory() string { return cmp.Or(n.Switch, filepath.Dir(n.Path)) }

// isAbsent reports whether there is no file of this name.
func isAbsent(n link.Command) bool { return n.Missing && errors.Is(n.Err, os.ErrNotExist) }

// leads reports whether the name leads to a file that can be called.
func (n name) leads() bool { return n.Err == nil && n.fault == nil }

// isForeign reports whether the name leads to a program that is no iptables.
func (n name) isForeign() bool { return n.script && n.printed != "" }

// needsForce reports whether install replaces what is there only with --force.
func (n name) needsForce() bool {
	return n.script && !n.Wrapper || n.isCircle() || n.Err != nil && !n.Missing && n.Switch == ""
}

// isCircle reports whether the name leads in a circle of symlinks.
func (n name) isCircle() bool {
	return n.Err != nil && n.fault == nil && !errors.Is(n.Err, os.ErrNotExist)
}

// bypasses reports whether the name leads to a file that is neither the wrapper nor stored in the switch by it.
func (n name) bypasses() bool {
	return n.leads() && !n.Wrapper && (n.Switch == "" || n.script)
}

// which are the names of which something is true.
func (s *state) which(is func(name) bool) (some []name) {
	for _, n := range s.names {
		if is(n) {
			some = append(some, n)
		}
	}
	return some
}

// inPath returns the path of a command as a shell finds it, "" if it does not.
func inPath(name string) string {
	path, err := osexec.LookPath(name)
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// lookAtNames finds out where the six commands lead, and what calls of them run: by PATH, otherwise beside iptables.
func (s *state) lookAtNames(starter *run.Starter) {
	seen := plan.Here(s.host, nil)
	beside := "/usr/sbin"
	for _, command := range exec.Commands() {
		n := name{}
		path := inPath(command)
		n.inPath = path != ""
		if !n.inPath {
			path = filepath.Join(beside, command)
			n.fault = whyNot(path)
		}
		n.Command = link.LookAt(path)
		if n.Err != nil && !errors.Is(n.Err, os.ErrPermission) { // it leads to nothing, which is not the file's fault
			n.fault = nil
		}
		if n.leads() {
			n.script = !n.Wrapper && iptables.BackendOf(filepath.Base(n.ResolvesTo)) == ""
			ask(starter, &n)
		}
		n.readOnly = unix.Access(n.directory(), unix.W_OK) == unix.EROFS
		hops := file.Hops(path)
		n.way = hops[:max(1, len(hops)-1)]
		n.canReset = n.Switch != "" && !n.readOnly &&
			!link.LookAt(n.Switch+"/"+link.Switch).Missing && !link.LookAt(n.Switch+"/"+link.Wrapper).Missing
		n.call = seen.At(n.Command)
		if n.fault != nil {
			n.call = plan.Plan{Path: path, How: plan.Nothing, Error: n.fault.Error(), Err: n.fault}
		}
		s.names = append(s.names, n)
		beside = filepath.Dir(s.names[0].Path)
	}
	s.lookElsewhere()
}

// whyNot says why a shell does not run the file at a path.
func whyNot(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &os.PathError{Op: "run", Path: path, Err: unix.EISDIR}
	case unix.Access(path, unix.X_OK) != nil:
		return &os.PathError{Op: "run", Path: path, Err: unix.EACCES}
	}
	return nil
}

// lookElsewhere looks for other programs with the six commands in the directories in which distributions install iptables.
func (s *state) lookElsewhere() {
	if !s.names[0].leads() {
		return
	}
	d, err := link.Open(filepath.Dir(s.names[0].Path))
	if err != nil {
		return
	}
	defer d.Close()
	for _, n := range link.Bypassing(d) {
		if whyNot(n.Path) == nil && n.Switch == "" {
			s.others = append(s.others, n.Path)
		}
	}
}

// ask has a command that is neither the wrapper nor a program of iptables, such as a script, say which backend it runs,
// once for each value of the variable: only the wrapper follows that.
func ask(starter *run.Starter, n *name) {
	if !n.script {
		return
	}
	var says []detect.Backend
	printed, isIptables := "", false
	for _, b := range detect.Backends() {
		out := starter.Run(n.Path, b, n.Command.Name, "--version")
		says = append(says, backendIn(out.Stdout))
		isIptables = isIptables || isVersion.MatchString(out.Stdout)
		if !errors.Is(out.Err, run.ErrHangs) && !errors.Is(out.Err, run.ErrRefused) {
			printed = quote(out.Command, firstLine(out.Text()))
		}
	}
	if !isIptables {
		n.printed = printed
	}
	n.Wrapper = slices.Equal(says, detect.Backends())
	if says[0] == says[1] {
		n.Backend = says[0]
	}
}

// isVersion matches what a program of iptables prints: "iptables v1.8.9 (nf_tables)", "ip6tables-nft-save v1.8.9 …".
var isVersion = regexp.MustCompile(`^ip6?tables\S* v[0-9]`)

// backendIn is the backend that a program of iptables names with its version: "iptables v1.8.9 (nf_tables)".
func backendIn(version string) detect.Backend {
	switch {
	case strings.Contains(version, "(nf_tables)"):
		return detect.NFT
	case strings.Contains(version, "(legacy)"):
		return detect.Legacy
	}
	return ""
}
