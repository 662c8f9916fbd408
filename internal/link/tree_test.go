// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// asks is set in the environment of a test process that answers a question of its own, and ends.
const asks = "IPTABLES_WRAPPER_TEST_ASKS"

func TestMain(m *testing.M) {
	question := os.Getenv(asks)
	if question != "" {
		questions[question]()
		return
	}
	err := host.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// open opens a directory until the test ends.
func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	host.Check(t, err)
	t.Cleanup(d.Close)
	return d
}

// readOnly returns a path of a directory on a read-only mount, until the test ends. The test is in a container.
func readOnly(t *testing.T, path string) string {
	t.Helper()
	mounted := t.TempDir()
	host.Check(t, unix.Mount(path, mounted, "", unix.MS_BIND, ""))
	t.Cleanup(func() { host.Check(t, unix.Unmount(mounted, unix.MNT_DETACH)) })
	host.Check(t, unix.Mount("", mounted, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	return mounted
}

// grow makes what a tree has, in its order: "directory/", "file", "link -> content", "hard link = file". Any file can
// be executed.
func grow(t *testing.T, top string, entries ...string) {
	t.Helper()
	for _, entry := range entries {
		link, content, isLink := strings.Cut(entry, " -> ")
		hard, file, isHard := strings.Cut(entry, " = ")
		var err error
		switch {
		case isLink:
			err = os.Symlink(content, top+"/"+link)
		case isHard:
			err = os.Link(top+"/"+file, top+"/"+hard)
		case strings.HasSuffix(entry, "/"):
			err = os.Mkdir(top+"/"+entry, 0o755)
		default:
			err = os.WriteFile(top+"/"+entry, nil, 0o755)
		}
		host.Check(t, err)
	}
}

// list is what a directory has: names, and what the symlinks among them contain.
func list(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	host.Check(t, err)
	var all []string
	for _, entry := range entries {
		text := entry.Name()
		content, err := os.Readlink(path + "/" + text)
		if err == nil {
			text += " -> " + content
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// wrapped is a directory with both programs, in which the names lead to a switch that contains something.
func wrapped(content string) []string {
	return []string{
		"iptables-wrapper", "xtables-nft-multi", "xtables-legacy-multi", "iptables-current -> " + content,
		"iptables -> iptables-current", "iptables-save -> iptables-current", "iptables-restore -> iptables-current",
		"ip6tables -> iptables-current", "ip6tables-save -> iptables-current", "ip6tables-restore -> iptables-current",
	}
}

// with is a tree with more entries.
func with(tree []string, entries ...string) []string { return slices.Concat(tree, entries) }

// without is a tree without some names.
func without(tree []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(tree), func(entry string) bool {
		name, _, _ := strings.Cut(entry, " -> ")
		return slices.Contains(names, name)
	})
}

// content is what a link contains, "" if there is none.
func content(path string) string {
	text, _ := os.Readlink(path)
	return text
}
