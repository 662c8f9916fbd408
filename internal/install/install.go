// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package install makes the six commands in a directory run the wrapper: it puts the wrapper's file there, points the
// switch at that file, and makes the six commands lead to the switch.
package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

type work struct {
	*link.Dir

	content []byte   // of the running file
	changes []string // in order
	remarks []string // what the user should know; no failures
}

// Install makes the six commands in a directory run this wrapper. directory "" is that of the running file if a file of
// iptables is there, otherwise the first one that has such a file. Before it changes anything, Install refuses a
// directory that is not trusted (file.TrustedDir) and, unless forced, a file under the switch or a command that belongs
// neither to iptables nor to the wrapper.
//
// Whatever step fails, each of the six commands leads to the same program as before, or to the wrapper. Install returns
// what it changed, even with an error, and remarks, which are no failures. The error wraps remedy.ErrOwnProgram,
// exec.ErrMissing if both backends' programs are missing, link.ErrForeign or file.ErrExposed.
func Install(directory string, force bool) (changes, remarks []string, err error) {
	running, content, err := runningFile()
	if err != nil {
		return nil, nil, err
	}
	if directory == "" {
		directory = defaultDirectory(filepath.Dir(running))
	}
	if directory == "" {
		return nil, nil, fmt.Errorf("%w of iptables in %s", exec.ErrMissing, strings.Join(iptables.Dirs(), ", "))
	}
	directory, err = filepath.EvalSymlinks(directory) // before Abs, which would remove ".." lexically
	if err == nil {
		directory, err = filepath.Abs(directory)
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := link.OpenTrusted(directory)
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	_ = d.Lock(link.Patience) // without the lock, it continues: see link.Patience
	w := &work{Dir: d, content: content}
	programs, err := w.programs()
	if err == nil && !force {
		err = w.checkCommands()
	}
	if err == nil {
		err = w.change()
	}
	if err == nil {
		err = w.verify()
	}
	if err != nil {
		return w.changes, nil, err
	}
	if len(w.changes) == 0 {
		w.changes = []string{fmt.Sprintf("nothing to do: the iptables commands in %q run the wrapper", d.Path)}
	}
	w.remarkBypassing()
	w.remarkCapabilities(programs)
	return w.changes, w.remarks, nil
}

func (w *work) remarkf(format string, args ...any) {
	w.remarks = append(w.remarks, fmt.Sprintf(format, args...))
}

func (w *work) remarkBypassing() {
	other := look.Bypassing(w.Dir)
	if len(other) > 0 {
		w.remarkf("%q does not run the wrapper: if a program calls it by this path, run install --dir %s, too",
			other[0].Path, filepath.Dir(other[0].Path))
	}
}

// remarkCapabilities remarks that the wrapper lacks the file capabilities of a program. Without them, the kernel would
// not answer users other than root, and each of their calls would guess.
func (w *work) remarkCapabilities(programs []string) {
	wrapper := w.Join(link.Wrapper)
	i := slices.IndexFunc(programs, hasCapabilities)
	if i >= 0 && !hasCapabilities(wrapper) {
		w.remarkf("%q has file capabilities and the wrapper has none: setcap cap_net_admin,cap_net_raw+ep %s",
			programs[i], wrapper)
	}
}

// defaultDirectory returns the first directory that has one of the six commands, or a program for one: that of the
// running file, then those in which distributions install iptables. It returns "" if there is none.
func defaultDirectory(running string) string {
	isIptables := func(entry os.DirEntry) bool {
		isFile := !entry.IsDir() // not, for example, /etc/iptables
		return isFile && (slices.Contains(exec.Commands(), entry.Name()) || iptables.BackendOf(entry.Name()) != "")
	}
	for i, directory := range slices.Concat([]string{running}, iptables.Dirs()) {
		entries, _ := os.ReadDir(directory) // none if it is missing
		// A place that others can write is passed over, as by exec.Find. In its own directory, install says so.
		isUsed := i == 0 || isTrusted(directory)
		if isUsed && slices.ContainsFunc(entries, isIptables) {
			return directory
		}
	}
	return ""
}

func isTrusted(directory string) bool {
	var st unix.Stat_t
	err := unix.Stat(directory, &st)
	return err == nil && file.TrustedDir(directory, st)
}

func hasCapabilities(path string) bool {
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil
}

// programs returns the paths of the programs that the commands will run, one for each backend. If one is missing, that
// is a remark; if both are, an error. Install starts no program of iptables: doctor finds out whether they work.
func (w *work) programs() (found []string, err error) {
	for _, b := range detect.Backends() {
		program, missing := exec.Find(b, "iptables", w.Path)
		if missing != nil {
			w.remarkf("on a host that uses %s, the commands fail: %v", b, missing)
			err = errors.Join(err, missing)
			continue
		}
		if look.IsWrapper(program.Path) {
			return nil, fmt.Errorf("%q: %w", program.Path, remedy.ErrOwnProgram)
		}
		for _, hop := range file.Hops(program.Path) {
			if slices.Contains(exec.Commands(), filepath.Base(hop)) && w.IsAt(filepath.Dir(hop)) {
				return nil, fmt.Errorf("%q: %w", hop, remedy.ErrOwnProgram)
			}
		}
		found = append(found, program.Path)
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, err
}

// checkCommands returns an error if the switch or one of the six commands is foreign. A broken symlink may be replaced,
// and so may what is called iptables-wrapper in the directory: install writes the wrapper there.
func (w *work) checkCommands() error {
	_, err := w.Stored()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, c := range look.In(w.Dir) {
		isReplaced := filepath.Base(c.ResolvesTo) == link.Wrapper && w.IsAt(filepath.Dir(c.ResolvesTo))
		isOurs := isReplaced || c.Wrapper || c.Backend != "" || errors.Is(c.Err, os.ErrNotExist)
		if !isOurs {
			return fmt.Errorf("%q: %w", c.Path, link.ErrForeign)
		}
	}
	return nil
}

func (w *work) change() error {
	err := w.writeWrapper()
	if err == nil {
		err = w.pointSwitch()
	}
	if err != nil {
		return err
	}
	groups := w.groups()
	err = w.lay(len(groups) > 0)
	if err != nil {
		return err
	}
	for _, group := range groups {
		err := w.register(group)
		if err != nil {
			w.remarkf("%q could not be registered with alternatives for %s, so an operation on the package of "+
				"iptables may undo this: %v", registered, group[0], err)
		}
	}
	return w.lay(false)
}

// verify looks at the commands and at the backends' programs again: a link that led through a file that was replaced
// leads elsewhere now.
func (w *work) verify() error {
	for _, c := range look.In(w.Dir) {
		if c.Err != nil || !w.IsAt(c.Switch) {
			return fmt.Errorf("%q: %w", c.Path, link.ErrNotWrapped)
		}
	}
	for _, b := range detect.Backends() {
		for _, command := range exec.Commands() {
			program, err := exec.Find(b, command, w.Path) // what is missing is a remark already
			switch {
			case errors.Is(err, exec.ErrItself):
				return fmt.Errorf("%w: %w", err, remedy.ErrOwnProgram)
			case err == nil && look.IsWrapper(program.Path):
				return fmt.Errorf("%q: %w", program.Path, remedy.ErrOwnProgram)
			}
		}
	}
	return nil
}

func (w *work) pointSwitch() error {
	content, err := w.Readlink(link.Switch)
	if err == nil && content == link.Wrapper {
		return nil
	}
	err = w.Replace(link.Wrapper, link.Switch)
	if err == nil {
		w.changes = append(w.changes, w.Join(link.Switch)+" -> "+link.Wrapper)
	}
	return err
}

// lay makes the commands that do not lead to the switch links to it. exceptManaged leaves out those that alternatives
// manage, because their group is still to be registered.
func (w *work) lay(exceptManaged bool) error {
	var names []string
	for _, c := range look.In(w.Dir) {
		if !w.IsAt(c.Switch) && !(exceptManaged && w.isManaged(c.Name)) {
			names = append(names, c.Name)
		}
	}
	err := w.Lay(names)
	if err == nil && len(names) > 0 {
		w.changes = append(w.changes, w.Join(strings.Join(names, ", "))+" -> "+link.Switch)
	}
	return err
}
