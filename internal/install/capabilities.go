// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// In an image for a user who is not root, iptables' programs can have file capabilities. A process keeps its
// capabilities through execve(2) only if every file that it executes on the way has them, so the wrapper's file needs
// the same ones. See capabilities(7).
//
// Whoever can change such a file, or make another one out of it, has its capabilities. So they are copied only from
// files of root in directories of root, only those that iptables needs, and only to a file that was just created, by
// its descriptor.

const capabilityAttribute = "security.capability"

// ErrCapabilities is returned when the wrapper's file could not be given the file capabilities of iptables' programs.
var ErrCapabilities = errors.New("cannot give the wrapper the file capabilities of iptables' programs")

// Capabilities returns those file capabilities of a file that iptables needs, as they are stored; "" if it has none
// of them. A path in a file system without extended attributes has none.
func Capabilities(t tree.Tree, path string) (string, error) {
	f, err := t.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return capabilitiesOf(f)
}

func capabilitiesOf(f *os.File) (string, error) {
	value := make([]byte, 64)
	n, err := unix.Fgetxattr(int(f.Fd()), capabilityAttribute, value)
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP):
		return "", nil
	case err != nil:
		return "", tree.PathError("getxattr", f.Name(), err)
	}
	return needed(value[:n]), nil
}

// needed reduces file capabilities to those that iptables needs. They are stored like this, see linux/capability.h:
//
//	struct vfs_ns_cap_data {
//		__le32 magic_etc;                 // version, and whether they are effective at once
//		struct {
//			__le32 permitted;
//			__le32 inheritable;
//		} data[VFS_CAP_U32];              // capabilities 0 to 31, then 32 to 63, which version 1 lacks
//		__le32 rootid;                    // since version 3
//	};
func needed(value []byte) string {
	const (
		permitted, inheritable = 4, 8
		others                 = 12 // the second element of data
		version1, version2     = 12, 20
		version3               = 24
	)
	switch len(value) {
	case version1, version2, version3:
	default:
		return ""
	}
	wanted := uint32(1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW)
	reduced := append([]byte(nil), value...)
	some := uint32(0)
	for _, at := range []int{permitted, inheritable} {
		set := binary.LittleEndian.Uint32(value[at:]) & wanted
		binary.LittleEndian.PutUint32(reduced[at:], set)
		some |= set
	}
	if some == 0 {
		return ""
	}
	if len(value) > version1 {
		clear(reduced[others:version2])
	}
	return string(reduced)
}

// setCapabilities gives a file that was just created its capabilities. It must be root's, and have no name but the
// one that it was created under.
func setCapabilities(f *os.File, path, value string) error {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	if err == nil && (st.Uid != 0 || st.Nlink != 1) {
		err = fmt.Errorf("it belongs to user %d and has %d names", st.Uid, st.Nlink)
	}
	if err == nil {
		err = unix.Fsetxattr(int(f.Fd()), capabilityAttribute, []byte(value), 0)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCapabilities, tree.PathError("setxattr", path, err))
	}
	return nil
}

// needs is what the programs that a wrapper in a directory would run ask of the wrapper's file.
type needs struct {
	capabilities string // which the file needs too
	from         string // the program that has them

	// The first program that is for another architecture than the running wrapper, and that architecture; "" in the
	// process' own tree.
	other, architecture string
}

// lookAtPrograms looks at the programs that a wrapper in the directory would run. Missing ones do not count.
func lookAtPrograms(n layout.Names, dir string, running []byte) (needs, error) {
	var all needs
	for _, mode := range programs.Modes() {
		for _, name := range programs.Names() {
			path, err := n.Find(dir, mode, name)
			if err != nil {
				continue // Check reports it
			}
			p, err := lookAtProgram(n.Tree, path)
			if err != nil {
				return all, fmt.Errorf("%w: %w", ErrCapabilities, err)
			}
			err = all.add(p)
			if err != nil {
				return all, err
			}
			foreign := p.architecture != "" && p.architecture != architectureOf(running)
			if all.other == "" && !n.Tree.Own() && foreign {
				all.other, all.architecture = path, p.architecture
			}
		}
	}
	if all.capabilities == "" {
		return all, nil
	}
	exposed := n.Tree.RootsAlone(dir)
	if exposed != "" {
		return all, fmt.Errorf("%w: users other than root can change %q", ErrCapabilities, exposed)
	}
	return all, nil
}

// add takes note of a program's capabilities. Two programs with different ones are an error: no wrapper can serve both.
func (n *needs) add(p program) error {
	switch {
	case p.capabilities == "" || p.capabilities == n.capabilities:
		return nil
	case n.capabilities == "":
		n.capabilities, n.from = p.capabilities, p.path
		return nil
	default:
		return fmt.Errorf("%w: those of %q and %q differ", ErrCapabilities, n.from, p.path)
	}
}

// program is what is known of a program of iptables.
type program struct {
	path         string
	capabilities string // those that the wrapper needs too
	architecture string
}

// lookAtProgram looks at a program by one descriptor. It must have no capabilities that the wrapper would get, unless
// nobody but root could have put it there.
func lookAtProgram(t tree.Tree, path string) (program, error) {
	p := program{path: path}
	exposed := t.RootsAlone(path) // before it is opened: from now on, an answer "" stays true
	f, err := t.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	p.capabilities, err = capabilitiesOf(f)
	if err != nil {
		return p, err
	}
	if p.capabilities != "" && exposed != "" {
		return p, fmt.Errorf("%q has file capabilities, and users other than root can change %q", path, exposed)
	}
	header := make([]byte, elfHeader)
	n, _ := f.ReadAt(header, 0) // a short file is a script
	p.architecture = architectureOf(header[:n])
	return p, nil
}
