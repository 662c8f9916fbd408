// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package xtables

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
)

// ErrHidden means that /proc does not show the network namespace of the calling thread.
var ErrHidden = errors.New("/proc is not mounted, or does not show this thread's network")

// Listed returns the tables of IPv4 or IPv6 that exist in the network namespace of the calling thread. loaded is false
// if the kernel has not loaded x_tables for the family. The error wraps ErrHidden, or the errno: EACCES if the file
// belongs to another user, the root of the namespace's owner. /proc/net/ip_tables_names and ip6_tables_names exist once
// x_tables is loaded for the family. They are empty until the first table is created.
func Listed(ipv6 bool) (tables []string, loaded bool, err error) {
	tables, loaded, err = listed("/proc", unix.Gettid() == unix.Getpid(), ipv6)
	if err != nil {
		return nil, false, fmt.Errorf("list the tables: %w", err)
	}
	return tables, loaded, nil
}

// listed is Listed for a /proc that is mounted at proc. leads is true if the calling thread is the process's first one.
func listed(proc string, leads, ipv6 bool) (tables []string, loaded bool, err error) {
	name := "ip_tables_names"
	if ipv6 {
		name = "ip6_tables_names"
	}
	directories := []string{proc + "/thread-self/net/"}
	if leads {
		directories = append(directories, proc+"/self/net/") // before Linux 3.17; it shows the first thread
	}
	for _, directory := range directories {
		tables, err := readList(directory + name)
		if len(tables) > 0 && ipv6 && isMissing(stat(directory+"if_inet6")) {
			// Before Linux 5.15, loading ip6_tables makes tables even if IPv6 is off. Then they can have no rules.
			return nil, true, nil
		}
		if !isMissing(err) {
			return tables, err == nil, err
		}
		err = stat(directory + "dev")
		switch {
		case err == nil:
			return nil, false, nil
		case !isMissing(err):
			return nil, false, fmt.Errorf("look for %q: %w", directory+"dev", err)
		}
	}
	return nil, false, ErrHidden
}

func stat(path string) error {
	var st unix.Stat_t
	return unix.Stat(path, &st)
}

func isMissing(err error) bool { return errors.Is(err, unix.ENOENT) }

func readList(path string) ([]string, error) {
	const limit = 512 // the kernel's five tables take 31
	list, err := file.Read(path, limit)
	if err == nil && len(list) == limit {
		// The last name may be cut off, and asking for it would create a table.
		err = &os.PathError{Op: "read", Path: path, Err: unix.EFBIG}
	}
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(list)), nil
}

// Loadable reports whether iptables-legacy could load x_tables for IPv4. iptables-legacy runs modprobe, which looks for
// the module in modules.dep of the running kernel, below this root.
func Loadable() (bool, error) { return loadable("/lib/modules") }

func loadable(modules string) (bool, error) {
	var name unix.Utsname
	err := unix.Uname(&name)
	if err != nil {
		return false, fmt.Errorf("uname: %w", err)
	}
	const limit = 16 << 20 // distributions' lists have less than 1 MiB
	list, err := file.Read(modules+"/"+unix.ByteSliceToString(name.Release[:])+"/modules.dep", limit)
	if isMissing(err) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return bytes.Contains(list, []byte("/ip_tables.ko")), err
}
