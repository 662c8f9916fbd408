// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// tree is what the files are that a scene is about: the targets of links, and the inodes of files.
type tree map[string]string

var ofScene = regexp.MustCompile(`^\.?(ip6?tables(-save|-restore)?|iptables-(current|wrapper))($|\.)`)

func isFile(content string) bool { return strings.HasPrefix(content, "\x00") }

func readTree(t *testing.T) tree {
	t.Helper()
	found := tree{}
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives", "/dev", "/dev/shm", "/run"} {
		entries, err := os.ReadDir(dir)
		host.Check(t, err)
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if !ofScene.MatchString(entry.Name()) {
				continue
			}
			info, err := os.Lstat(path)
			host.Check(t, err)
			if found[path], err = os.Readlink(path); err != nil {
				found[path] = fmt.Sprintf("\x00%d %s", inode(info), info.Mode())
			}
		}
	}
	return found
}

// remembered is the backend that the container remembers.
func remembered(t *testing.T) string {
	t.Helper()
	for path, target := range readTree(t) {
		if dir := filepath.Dir(path); dir != "/usr/sbin" && strings.HasPrefix(filepath.Base(path), "iptables-wrapper") {
			backend, _, _ := strings.Cut(target, " ")
			return backend
		}
	}
	return ""
}

// litter are the temporary links that are left.
func litter(t *testing.T) (left []string) {
	t.Helper()
	for path := range readTree(t) {
		if strings.HasPrefix(filepath.Base(path), ".") {
			left = append(left, path)
		}
	}
	return left
}
