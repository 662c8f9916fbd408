// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// DefaultDirectory returns the directory that the command line means without --dir: the running file's if iptables is
// there, otherwise the first standard one that has iptables, "" if none has.
func DefaultDirectory() string {
	candidates := iptables.Dirs()
	running := RunningPath()
	if running != "" {
		candidates = slices.Insert(candidates, 0, parent(running))
	}
	i := slices.IndexFunc(candidates, hasCommand)
	if i < 0 {
		return ""
	}
	return candidates[i]
}

// hasCommand reports whether a directory has one of the six names, which may be a broken link, or a program of a
// backend.
func hasCommand(directory string) bool {
	names := exec.Names()
	for _, mode := range evidence.Modes() {
		names = append(names, iptables.MultiCall(mode), iptables.Single(mode, "iptables"))
	}
	return slices.ContainsFunc(names, func(name string) bool {
		var st unix.Stat_t
		return unix.Lstat(directory+"/"+name, &st) == nil
	})
}

// Open opens a directory by its absolute path.
func Open(path string) (*dir.Dir, error) { return dir.Open(absolute(path)) }

// OpenDirectory opens the directory that somebody named, or, if iptables there leads through a switch in another
// directory, that one. itself reports which.
func OpenDirectory(path string) (d *dir.Dir, itself bool, err error) {
	d, err = Open(path)
	if err != nil {
		return nil, false, err
	}
	through := SwitchDir(d.Join("iptables"))
	if through == "" || d.IsAt(through) {
		return d, true, nil
	}
	other, err := dir.Open(through)
	if err != nil {
		return d, true, nil // a broken link
	}
	d.Close()
	return other, false, nil
}
