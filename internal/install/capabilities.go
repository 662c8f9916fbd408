// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// In an image for a user who is not root, iptables' programs can have file capabilities. A process keeps its capabilities
// through execve(2) only if every file that it executes on the way has them, so the wrapper's file needs the same ones.
// They are copied as they are stored, see capabilities(7) and linux/capability.h:
//
//	struct vfs_ns_cap_data {
//		__le32 magic_etc; // version and the effective bit
//		struct { __le32 permitted; __le32 inheritable; } data[2];
//		__le32 rootid;    // only in version 3
//	};

const capabilityAttribute = "security.capability"

// ErrCapabilities is returned when the wrapper's file could not be given the file capabilities of iptables' programs.
var ErrCapabilities = errors.New("cannot give the wrapper the file capabilities of iptables' programs")

// Capabilities returns the file capabilities of a file as they are stored, "" if it has none. A path in a file system
// without extended attributes has none.
func Capabilities(t links.Tree, path string) (string, error) {
	f, err := t.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	value := make([]byte, 64)
	switch n, err := unix.Fgetxattr(int(f.Fd()), capabilityAttribute, value); {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP):
		return "", nil
	case err != nil:
		return "", &os.PathError{Op: "getxattr", Path: path, Err: err}
	default:
		return string(value[:n]), nil
	}
}

// ProgramCapabilities returns the file capabilities of the programs that a wrapper in the directory would run. Programs
// without any, and missing ones, do not count. Two programs with different ones are an error: no wrapper can serve both.
func ProgramCapabilities(w links.Wrapper, dir string) (string, error) {
	var value, from string
	for _, mode := range programs.Modes() {
		for _, name := range programs.Names() {
			path, err := w.FindIn(dir, mode, name)
			if err != nil {
				continue // Check reports it
			}
			switch got, err := Capabilities(w.Tree, path); {
			case err != nil:
				return "", fmt.Errorf("%w: %w", ErrCapabilities, err)
			case value == "":
				value, from = got, path
			case got != "" && got != value:
				return "", fmt.Errorf("%w: those of %q and %q differ", ErrCapabilities, from, path)
			}
		}
	}
	return value, nil
}

func setCapabilities(t links.Tree, path, value string) error {
	f, err := t.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fsetxattr(int(f.Fd()), capabilityAttribute, []byte(value), 0); err != nil {
		return fmt.Errorf("%w: %w", ErrCapabilities, &os.PathError{Op: "setxattr", Path: path, Err: err})
	}
	return nil
}
