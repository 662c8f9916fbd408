// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
)

// StandardDirs returns the directories in which distributions install iptables, in the order in which exec.Find looks.
func StandardDirs() []string { return []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"} }

// DefaultDirectory returns the directory that the command line means without --dir: that of the running file if
// iptables is there, otherwise the first standard one in which it is, "" if it is in none.
func DefaultDirectory() string {
	candidates := StandardDirs()
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

// hasCommand reports whether a directory has one of the six names, which may be a broken link, or iptables-nft.
func hasCommand(directory string) bool {
	return slices.ContainsFunc(append(exec.Names(), "iptables-nft"), func(name string) bool {
		var st unix.Stat_t
		return unix.Lstat(directory+"/"+name, &st) == nil
	})
}

// Open opens a directory that somebody named. Its path is absolute from then on.
func Open(path string) (*dir.Dir, error) { return dir.Open(absolute(path)) }

// OpenDirectory opens the directory whose switch is meant by a directory: if iptables there leads through a switch in
// another directory, the other, and itself is false.
func OpenDirectory(path string) (d *dir.Dir, itself bool, err error) {
	d, err = Open(path)
	if err != nil {
		return nil, false, err
	}
	through := throughSwitch(d.Join("iptables"))
	if through == "" {
		return d, true, nil
	}
	other, err := dir.Open(through)
	if err != nil {
		return d, true, nil // a broken link
	}
	if other.Same(d) {
		other.Close()
		return d, true, nil
	}
	d.Close()
	return other, false, nil
}
