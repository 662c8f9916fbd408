// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	sbin             = "/usr/sbin"
	alternatives     = "/etc/alternatives"
	alternativesData = "/var/lib/dpkg/alternatives"
)

// otherDirs are the directories besides /usr/sbin in which the shell or the wrapper looks for iptables.
var otherDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/bin"}

// strange matches what does not belong to Debian's package: in otherDirs iptables itself, in /usr/sbin what the wrapper
// adds.
var (
	strange = regexp.MustCompile(`^(ip6?tables(-nft|-legacy)?(-save|-restore)?|` +
		`xtables-(nft|legacy)-multi|iptables-(wrapper|current))$`)
	strangeSbin = regexp.MustCompile(`^(iptables-(wrapper|current)|\..*(iptables|xtables).*)$`)
)

// onlyDebians makes a container's private directories contain the iptables of Debian's package and no other. A test
// then does not notice that this machine has another alternative selected, the wrapper installed, or a user's own file
// at /usr/sbin/iptables.
func onlyDebians() error {
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			name := family + suffix
			for _, backend := range []string{"nft", "legacy"} {
				err := relink(filepath.Join(sbin, family+"-"+backend+suffix), "xtables-"+backend+"-multi")
				if err != nil {
					return err
				}
			}
			if err := relink(filepath.Join(sbin, name), filepath.Join(alternatives, name)); err != nil {
				return err
			}
			if err := relink(filepath.Join(alternatives, name), filepath.Join(sbin, family+"-nft"+suffix)); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(alternativesData, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(alternativesData, family), []byte(group(family)), 0o644); err != nil {
			return err
		}
	}
	if err := removeAll(sbin, strangeSbin); err != nil {
		return err
	}
	for _, dir := range otherDirs {
		if err := removeAll(dir, strange); err != nil {
			return err
		}
	}
	return nil
}

// group is what update-alternatives stores for one family once the package is configured.
func group(family string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "auto\n%s/%s\n", sbin, family)
	for _, suffix := range []string{"-restore", "-save"} {
		fmt.Fprintf(&b, "%s\n%s/%s\n", family+suffix, sbin, family+suffix)
	}
	b.WriteString("\n")
	for i, backend := range []string{"legacy", "nft"} {
		fmt.Fprintf(&b, "%s/%s-%s\n%d\n", sbin, family, backend, 10*(i+1))
		for _, suffix := range []string{"-restore", "-save"} {
			fmt.Fprintf(&b, "%s/%s-%s%s\n", sbin, family, backend, suffix)
		}
	}
	return b.String() + "\n"
}

// relink makes path a symbolic link to target, whatever it was.
func relink(path, target string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// removeAll removes what matches from a directory.
func removeAll(dir string, pattern *regexp.Regexp) error {
	found, err := matching(dir, pattern)
	for _, name := range found {
		if err == nil {
			err = os.RemoveAll(filepath.Join(dir, name))
		}
	}
	return err
}

// matching returns the names in a directory that match; none if there is no such directory.
func matching(dir string, pattern *regexp.Regexp) (found []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, entry := range entries {
		if pattern.MatchString(entry.Name()) {
			found = append(found, entry.Name())
		}
	}
	return found, nil
}

// privateDirs are the directories to mount a private copy over: ChangedDirs, and those of otherDirs that need cleaning.
func privateDirs() ([]string, error) {
	dirs := slices.Clone(ChangedDirs)
	for _, dir := range otherDirs {
		found, err := matching(dir, strange)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
