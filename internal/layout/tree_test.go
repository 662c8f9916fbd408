// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// printsRunning is set in the environment of a test process that prints the running file's path, and DefaultDirectory.
const printsRunning = "IPTABLES_WRAPPER_TEST_RUNNING"

func TestMain(m *testing.M) {
	if os.Getenv(printsRunning) != "" {
		fmt.Println(RunningPath(), DefaultDirectory())
		return
	}
	err := host.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
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

// list is the reverse of grow, in the order of names. running is the only file that may have hard links.
func list(t *testing.T, top string, running dir.ID) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if path == top || err != nil {
			return err
		}
		name := strings.TrimPrefix(path, top+"/")
		content, isLink := os.Readlink(path)
		id, _ := dir.IDAt(path)
		switch {
		case isLink == nil:
			name += " -> " + content
		case entry.IsDir():
			name += "/"
		case id == running:
			name += " = wrapper"
		}
		all = append(all, name)
		return nil
	})
	host.Check(t, err)
	return strings.Join(all, "\n")
}

// opened opens a directory until the test ends.
func opened(t *testing.T, path string) *dir.Dir {
	t.Helper()
	d, err := Open(path)
	host.Check(t, err)
	t.Cleanup(d.Close)
	return d
}

func idOf(t *testing.T, path string) dir.ID {
	t.Helper()
	id, err := dir.IDAt(path)
	host.Check(t, err)
	return id
}

// lines joins what a tree has.
func lines(entries ...string) string { return strings.Join(entries, "\n") }
