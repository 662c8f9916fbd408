// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// In an image for a user who is not root, iptables' programs can have file capabilities, see capabilities(7). The
// wrapper's file needs the same: without them it may ask the kernel nothing, and each call would guess.

// CapabilityError means that the wrapper lacks the file capabilities of its programs. All is installed.
type CapabilityError struct {
	Program string // a program with file capabilities
	Wrapper string // the wrapper, which has others or none
	Setcap  string // the command that gives the wrapper those of the program
}

func (e *CapabilityError) Error() string {
	return fmt.Sprintf("%q does not have the file capabilities of %q: without them, calls by users other than root can "+
		"only guess", e.Wrapper, e.Program)
}

// compareCapabilities compares the file capabilities of the wrapper with those of the first program that has some.
func (w work) compareCapabilities() error {
	wrapper := w.Join(layout.Wrapper)
	for _, mode := range evidence.Modes() {
		program := w.program(mode)
		if program == "" {
			continue
		}
		wanted := capabilitiesOf(program)
		if wanted == (capabilities{}) {
			continue
		}
		if capabilitiesOf(wrapper) == wanted {
			return nil
		}
		return &CapabilityError{Program: program, Wrapper: wrapper, Setcap: "setcap " + wanted.String() + " " + wrapper}
	}
	return nil
}

// capabilities are those of a file: sets of capabilities, a bit each. They are stored like this, see
// linux/capability.h:
//
//	struct vfs_ns_cap_data {
//		__le32 magic_etc;                 // version, and VFS_CAP_FLAGS_EFFECTIVE
//		struct {
//			__le32 permitted;
//			__le32 inheritable;
//		} data[VFS_CAP_U32];              // capabilities 0 to 31, then 32 to 63, which version 1 lacks
//		__le32 rootid;                    // since version 3
//	};
type capabilities struct {
	permitted, inheritable uint64
	effective              bool
}

// capabilitiesOf returns the file capabilities of a file, links followed; none in a file system without them.
func capabilitiesOf(path string) capabilities {
	value := make([]byte, 64)
	n, err := unix.Getxattr(path, "security.capability", value)
	if err != nil {
		return capabilities{}
	}
	return parseCapabilities(value[:n])
}

func parseCapabilities(value []byte) capabilities {
	const (
		header    = 4
		element   = 8
		effective = 1 // VFS_CAP_FLAGS_EFFECTIVE
	)
	var c capabilities
	for i := range 2 {
		at := header + i*element
		if len(value) < at+element {
			break
		}
		c.effective = value[0]&effective != 0
		c.permitted |= uint64(binary.LittleEndian.Uint32(value[at:])) << (32 * i)
		c.inheritable |= uint64(binary.LittleEndian.Uint32(value[at+4:])) << (32 * i)
	}
	return c
}

// String is the form that cap_from_text(3) and setcap(8) read: "cap_net_admin,cap_net_raw=ep".
func (c capabilities) String() string {
	flags := ""
	if c.effective {
		flags = "e"
	}
	var clauses []string
	for _, s := range []struct {
		set   uint64
		flags string
	}{
		{c.permitted & c.inheritable, flags + "ip"},
		{c.permitted &^ c.inheritable, flags + "p"},
		{c.inheritable &^ c.permitted, flags + "i"},
	} {
		if s.set != 0 {
			clauses = append(clauses, names(s.set)+"="+s.flags)
		}
	}
	text := strings.Join(clauses, " ")
	if len(clauses) > 1 {
		return "'" + text + "'"
	}
	return text
}

// names lists the capabilities of a set. Those that iptables does not need have their numbers, which setcap(8) reads,
// too.
func names(set uint64) string {
	var all []string
	for ; set != 0; set &= set - 1 {
		switch capability := bits.TrailingZeros64(set); capability {
		case unix.CAP_NET_ADMIN:
			all = append(all, "cap_net_admin")
		case unix.CAP_NET_RAW:
			all = append(all, "cap_net_raw")
		default:
			all = append(all, fmt.Sprint(capability))
		}
	}
	return strings.Join(all, ",")
}
