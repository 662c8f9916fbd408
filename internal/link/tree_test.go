// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"os"
	"strings"
	"testing"

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
	host.MainOfPackage(m)
}

// open opens a directory until the test ends.
func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	host.Check(t, err)
	t.Cleanup(d.Close)
	return d
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
