// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func askExtensions(all []Support) { lookForExtensions(all, "/proc") }

func lookForExtensions(all []Support, proc string) {
	for i := range all {
		x := &all[i]
		loaded, err := loadedExtensions(proc, x.Family, x.Target)
		switch {
		case errors.Is(err, unix.ENOENT): // ip_tables is not loaded; nft_compat may have extensions all the same
			x.Has = Unknown
		case err != nil:
			x.Has = Unknown
			x.Err = fmt.Errorf("list the loaded extensions: %w", err)
		case slices.Contains(loaded, x.Name):
			x.Has = Yes
		case modulesCanLoad(proc):
			x.Has = Unknown
		default:
			x.Has = No
		}
	}
}

// loadedExtensions reads the names of the matches or targets that are loaded for a family, one per line. A name is
// there once for each of its revisions.
func loadedExtensions(proc string, family Family, targets bool) ([]string, error) {
	path := proc + "/thread-self/net/ip"
	if family == IPv6 {
		path += "6"
	}
	path += "_tables_"
	if targets {
		path += "targets"
	} else {
		path += "matches"
	}
	var buf [16 << 10]byte // all that there are take 2 KiB
	n, err := readFile(path, buf[:])
	return strings.Fields(string(buf[:n])), err
}
