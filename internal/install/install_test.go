// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

func TestInstall(t *testing.T) {
	for doc, prepare := range map[string]func(root){
		"no names":                    func(root) {},
		"links to iptables":           func(r root) { r.all("xtables-nft-multi") },
		"the former layout":           func(r root) { r.all("iptables-wrapper") },
		"moved by the former version": func(r root) { r.all("xtables-legacy-multi") },
		"a switch that no name uses": func(r root) {
			r.all("xtables-nft-multi")
			r.link("/usr/sbin/"+layout.Switch, "xtables-legacy-multi")
		},
		"selected": func(r root) {
			r.all(layout.Switch)
			r.link("/usr/sbin/"+layout.Switch, "xtables-legacy-multi")
		},
		"the wrapper was removed": func(r root) {
			r.all(layout.Switch)
			r.link("/usr/sbin/"+layout.Switch, self.WrapperName)
		},
		"the programs were removed": func(r root) { r.all("iptables-nft") },
		"an older wrapper": func(r root) {
			r.file("/usr/sbin/iptables-wrapper", "\x7fELF"+marker)
			r.all("iptables-wrapper")
		},
		"names that are wrapper files": func(r root) {
			r.file("/usr/sbin/iptables", "\x7fELF"+marker)
			r.file("/usr/sbin/ip6tables", "\x7fELF"+marker)
		},
		"the wrapper points to a name": func(r root) {
			r.file("/usr/sbin/iptables", "\x7fELF"+marker)
			r.link("/usr/sbin/iptables-wrapper", "iptables")
		},
		"the switch points to a name": func(r root) {
			r.all("xtables-nft-multi")
			r.file("/usr/sbin/iptables", "\x7fELF"+marker)
			r.link("/usr/sbin/"+layout.Switch, "iptables")
		},
		"names point to one another": func(r root) {
			r.all("iptables")
			r.link("/usr/sbin/iptables", "xtables-nft-multi")
		},
		"killed while copying":     func(r root) { r.file("/usr/sbin/.iptables-wrapper.new", "half") },
		"killed before the rename": func(r root) { r.link("/usr/sbin/.iptables.new", "somewhere") },
	} {
		t.Run(doc, func(t *testing.T) {
			r := newRoot(t)
			prepare(r)
			r.install("/usr/sbin", Options{Alternatives: true})
			own, err := executable(r.n)
			got, readErr := os.ReadFile(filepath.Join(r.dir, "/usr/sbin/iptables-wrapper"))
			if err != nil || readErr != nil || !bytes.Equal(got, own) {
				t.Errorf("the wrapper was not copied: %v, %v", err, readErr)
			}
			for _, pattern := range []string{"/usr/sbin/*.new", "/usr/sbin/.*"} {
				if left, _ := filepath.Glob(filepath.Join(r.dir, pattern)); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			}
		})
	}
}

func TestInstallReportsChanges(t *testing.T) {
	r := newRoot(t)
	r.all(layout.Switch)
	r.link("/usr/sbin/iptables", "xtables-nft-multi")
	got := r.install("/usr/sbin", Options{})
	want := []string{
		"copied the wrapper to /usr/sbin/iptables-wrapper",
		"/usr/sbin/iptables-current -> iptables-wrapper",
		"/usr/sbin/iptables -> iptables-current",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestInstallRefuses(t *testing.T) {
	for doc, test := range map[string]struct {
		prepare func(root)
		text    string
	}{
		"a user's file": {
			func(r root) {
				r.file("/usr/sbin/ip6tables", "mine")
			},
			`"/usr/sbin/ip6tables" is a file that is neither a wrapper nor a link to iptables`,
		},
		"a link to something else": {
			func(r root) {
				r.file("/bin/true", "")
				r.link("/usr/sbin/iptables", "/bin/true")
			},
			`"/usr/sbin/iptables" points to "/bin/true"`,
		},
		"a broken link": {
			func(r root) {
				r.link("/usr/sbin/iptables-save", "gone")
			},
			`"/usr/sbin/iptables-save" is a broken link`,
		},
		"a loop": {
			func(r root) {
				r.link("/usr/sbin/iptables", "iptables")
			},
			"too many levels of symbolic links",
		},
		"a file for the switch": {
			func(r root) {
				r.file("/usr/sbin/"+layout.Switch, "mine")
			},
			`"/usr/sbin/iptables-current" is a file`,
		},
		"a link for the switch": {
			func(r root) {
				r.file("/bin/true", "")
				r.link("/usr/sbin/"+layout.Switch, "/bin/true")
			},
			`"/usr/sbin/iptables-current" points to "/bin/true"`,
		},
		"a file for the wrapper": {
			func(r root) {
				r.file("/usr/sbin/iptables-wrapper", "mine")
			},
			`"/usr/sbin/iptables-wrapper" is a file`,
		},
		"a program by alternatives": {func(r root) {
			r.file("/bin/true", "")
			r.link("/etc/alternatives/iptables", "/bin/true")
			r.link("/usr/sbin/iptables", "/etc/alternatives/iptables")
		}, `"/usr/sbin/iptables" points to "/bin/true"`},
		"an absolute link outside": {
			func(r root) {
				r.link("/usr/sbin/iptables", "/etc/hostname")
			},
			"broken link",
		},
		"a relative link outside": {
			func(r root) {
				r.link("/usr/sbin/iptables", "../../../../../../../../etc/hostname")
			},
			"broken link",
		},
		"the wrapper's name, a FIFO": {
			func(r root) {
				_ = unix.Mkfifo(r.dir+"/usr/sbin/iptables-wrapper", 0o644)
			},
			"is a file that is neither a wrapper nor a link to iptables",
		},
	} {
		t.Run(doc, func(t *testing.T) {
			r := newRoot(t)
			test.prepare(r)
			r.refuses("/usr/sbin", Options{}, layout.ErrForeign, test.text)
			r.refuses("/usr/sbin", Options{Alternatives: true}, layout.ErrForeign, test.text)
			r.install("/usr/sbin", Options{Force: true})
		})
	}
	t.Run("a directory", func(t *testing.T) {
		r := newRoot(t)
		r.file("/usr/sbin/iptables/file", "")
		r.refuses("/usr/sbin", Options{Force: true}, unix.EISDIR, "/usr/sbin/iptables")
	})
	t.Run("several reasons", func(t *testing.T) {
		r := newRoot(t)
		r.file("/usr/sbin/iptables", "mine")
		r.link("/usr/sbin/ip6tables", "gone")
		r.refuses("/usr/sbin", Options{}, layout.ErrForeign, "iptables\" is a file")
		r.refuses("/usr/sbin", Options{}, layout.ErrForeign, "ip6tables\" is a broken link")
	})
	t.Run("no directory", func(t *testing.T) {
		r := newRoot(t)
		r.refuses("/opt", Options{}, unix.ENOENT, "/opt")
		r.refuses("/usr/sbin/xtables-nft-multi", Options{}, unix.ENOTDIR, "")
	})
}

// Nothing outside the root is read or changed, whatever links are in it.
func TestInstallStaysInside(t *testing.T) {
	outside := t.TempDir()
	t.Chdir(outside)
	proc, err := tree.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for doc, test := range map[string]struct{ target, dir string }{
		"a relative link":  {"../../../../../../../.." + outside, "/opt"},
		"an absolute link": {outside, "/opt"},
		"dots in --dir":    {"usr", "../../../../../../../.." + outside},
		"a link of a proc": {"", "/self/cwd"},
		"the root of one":  {"", "/self/root" + outside},
	} {
		t.Run(doc, func(t *testing.T) {
			n := layout.Names{Tree: proc, Self: self.Started(marker)}
			if test.target != "" {
				r := newRoot(t)
				r.link("/opt", test.target)
				n = r.n
			}
			if changed, err := Install(n, test.dir, Options{Force: true}); err == nil || len(changed) > 0 {
				t.Errorf("got %q, %v", changed, err)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("outside: %v, %v", entries, err)
			}
		})
	}
}

// What was locked is what is changed, whatever takes the directory's place meanwhile.
func TestInstallDirectoryIsExchanged(t *testing.T) {
	r := newRoot(t)
	r.all("xtables-nft-multi")
	sbin := r.dir + "/usr/sbin"
	before := r.dir + "/usr/before"
	r.n.Tree.Step = func(op, _ string) error {
		if op != "lock" {
			return nil
		}
		return errors.Join(os.Rename(sbin, before), os.Mkdir(sbin, 0o755))
	}
	_, err := Install(r.n, "/usr/sbin", Options{})
	target, _ := os.Readlink(before + "/" + layout.Switch)
	entries, readErr := os.ReadDir(sbin)
	if err != nil || target != self.WrapperName || readErr != nil || len(entries) > 0 {
		t.Errorf("got %v, the switch points to %q, in the other directory: %v, %v", err, target, entries, readErr)
	}
}
