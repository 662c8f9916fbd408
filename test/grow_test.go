// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// grow makes a tree and says what is in it.
func grow(t *testing.T, r *rand.Rand) (grown []string) {
	t.Helper()
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives"} {
		entries, err := os.ReadDir(dir)
		host.Check(t, err)
		for _, entry := range entries {
			host.Check(t, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	paths := []string{"/usr/sbin/iptables-wrapper", "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi",
		"/usr/sbin/iptables-current", "/usr/sbin/.iptables-current.new", "/usr/sbin/.iptables-save.new"}
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives"} {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	// Mostly what is usual, so that there are names to move.
	usual := r.IntN(3) > 0
	for i, path := range paths {
		kind := r.IntN(15)
		if usual && r.IntN(8) > 0 {
			kind = []int{0, 11, 12, 1, 13, 13, 14}[min(i, 6)]
		}
		var err error
		target := ""
		switch kind {
		case 0:
			if err = os.Link("/usr/sbin/iptables-wrapper", path); err != nil {
				err = os.WriteFile(path, wrapperContent(t), 0o755)
			}
		case 1:
			target = "/usr/sbin/iptables-wrapper"
		case 2:
			target = "iptables-wrapper"
		case 3:
			target = "/etc/alternatives/" + filepath.Base(path)
		case 4:
			target = "/usr/sbin/" + names[r.IntN(len(names))]
		case 5:
			target = []string{"xtables-nft-multi", programs + "xtables-legacy-multi"}[r.IntN(2)]
		case 6:
			target = filepath.Base(path) // a loop
		case 7:
			target = []string{"gone", "/run/root/foreign", "../../run/root/foreign", "/usr/sbin"}[r.IntN(4)]
		case 8:
			err = os.WriteFile(path, []byte("#!/bin/sh\nexit 7\n"), 0o755)
		case 9:
			err = os.Mkdir(path, 0o755)
		case 10:
			err = os.WriteFile(path, wrapperContent(t), 0o755)
		case 11:
			target = programs + "xtables-nft-multi"
		case 12:
			target = programs + "xtables-legacy-multi"
		case 13:
			continue
		case 14:
			target = "/usr/sbin/iptables-current"
		}
		if target != "" {
			err = os.Symlink(target, path)
		}
		check(err)
		grown = append(grown, fmt.Sprintf("%s: %d %s", path, kind, target))
	}
	return grown
}

// entry is what a path of a tree is and where it leads.
type entry struct {
	content string // of a link, or what kind of file it is
	link    bool
	end     string // "" if it is broken
	wrapper bool   // that is a wrapper
	foreign bool   // that is neither a wrapper nor an iptables program

	switched bool // it goes through the switch
}
