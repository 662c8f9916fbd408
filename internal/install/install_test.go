// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// marker makes this test program a wrapper.
const marker = "iptables-wrapper marker 7d3f6c0e-5a51-4f3b-9a1e-1f6d2c8b0e47"

// root is a root file system with both backends' programs, in a temporary directory.
type root struct {
	*testing.T
	dir string
	w   links.Wrapper
}

func newRoot(t *testing.T) root {
	t.Helper()
	r := root{T: t, dir: t.TempDir()}
	tree, err := links.OpenTree(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	r.w = links.Started(marker).In(tree)
	for _, mode := range programs.Modes() {
		r.file("/usr/sbin/"+programs.MultiCall(mode), "#!/bin/sh\nexit 1\n")
	}
	return r
}

func (r root) file(path, content string) {
	r.Helper()
	path = filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		r.Fatal(err)
	}
}

func (r root) link(path, target string) {
	r.Helper()
	path = filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.Symlink(target, path); err != nil {
		r.Fatal(err)
	}
}

// all makes all six names the same link.
func (r root) all(target string) {
	r.Helper()
	for _, name := range programs.Names() {
		r.link("/usr/sbin/"+name, target)
	}
}

// snapshot is every path in the root, with what it is a link to, its size and its inode.
func (r root) snapshot() string {
	r.Helper()
	var b strings.Builder
	err := filepath.WalkDir(r.dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		target, _ := os.Readlink(path)
		fmt.Fprintln(&b, strings.TrimPrefix(path, r.dir), target, st.Size, st.Ino)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return b.String()
}

// install must succeed, make all names point to the wrapper through the switch, and have nothing to do the second time.
func (r root) install(dir string, o Options) (changed []string) {
	r.Helper()
	changed, err := Install(r.w, dir, o)
	if err != nil {
		r.Fatal(err)
	}
	for _, s := range r.w.Look(dir) {
		if !s.Wrapper || !s.Switched {
			r.Errorf("%s: %+v", s.Name, s)
		}
	}
	before := r.snapshot()
	if again, err := Install(r.w, dir, o); err != nil || len(again) > 0 {
		r.Errorf("the second time: %q, %v", again, err)
	}
	if after := r.snapshot(); after != before {
		r.Errorf("the second time, something changed:\n%s\n%s", before, after)
	}
	return changed
}

// refuses checks that install changes nothing at all.
func (r root) refuses(dir string, o Options, want error, text string) {
	r.Helper()
	before := r.snapshot()
	changed, err := Install(r.w, dir, o)
	if !errors.Is(err, want) || len(changed) > 0 || !strings.Contains(fmt.Sprint(err), text) {
		r.Errorf("got %q, %v, want %v with %q in it", changed, err, want, text)
	}
	if after := r.snapshot(); after != before {
		r.Errorf("it changed something:\n%s\n%s", before, after)
	}
}

func TestInstall(t *testing.T) {
	for doc, prepare := range map[string]func(root){
		"no names":                     func(root) {},
		"links to iptables":            func(r root) { r.all("xtables-nft-multi") },
		"the former layout":            func(r root) { r.all("iptables-wrapper") },
		"moved by the former version":  func(r root) { r.all("xtables-legacy-multi") },
		"a switch that no name uses":   func(r root) { r.all("xtables-nft-multi"); r.link("/usr/sbin/"+links.Switch, "xtables-legacy-multi") },
		"selected":                     func(r root) { r.all(links.Switch); r.link("/usr/sbin/"+links.Switch, "xtables-legacy-multi") },
		"the wrapper was removed":      func(r root) { r.all(links.Switch); r.link("/usr/sbin/"+links.Switch, links.WrapperName) },
		"the programs were removed":    func(r root) { r.all("iptables-nft") },
		"an older wrapper":             func(r root) { r.file("/usr/sbin/iptables-wrapper", marker); r.all("iptables-wrapper") },
		"names that are wrapper files": func(r root) { r.file("/usr/sbin/iptables", marker); r.file("/usr/sbin/ip6tables", marker) },
		"the wrapper points to a name": func(r root) { r.file("/usr/sbin/iptables", marker); r.link("/usr/sbin/iptables-wrapper", "iptables") },
		"the switch points to a name": func(r root) {
			r.all("xtables-nft-multi")
			r.file("/usr/sbin/iptables", marker)
			r.link("/usr/sbin/"+links.Switch, "iptables")
		},
		"names point to one another": func(r root) { r.all("iptables"); r.link("/usr/sbin/iptables", "xtables-nft-multi") },
		"killed while copying":       func(r root) { r.file("/usr/sbin/iptables-wrapper.new", "half") },
		"killed before the rename":   func(r root) { r.link("/usr/sbin/.iptables.new", "somewhere") },
	} {
		t.Run(doc, func(t *testing.T) {
			r := newRoot(t)
			prepare(r)
			r.install("/usr/sbin", Options{Alternatives: true})
			own, err := executable(r.w)
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

// The wrapper's file can be executed by everybody, whatever the umask, and a failure leaves nothing behind.
func TestWriteWrapper(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	r := newRoot(t)
	if err := writeWrapper(r.w.Tree, "/usr/sbin/iptables-wrapper", []byte(marker), ""); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.dir + "/usr/sbin/iptables-wrapper"); err != nil || info.Mode() != 0o755 {
		t.Errorf("got %v, %v", info, err)
	}
	before := r.snapshot()
	if err := writeWrapper(r.w.Tree, "/usr/sbin/iptables-wrapper", []byte("new"), "not capabilities"); !errors.Is(err, ErrCapabilities) {
		t.Errorf("got %v", err)
	}
	if after := r.snapshot(); after != before {
		t.Errorf("it changed something:\n%s\n%s", before, after)
	}
}

func TestInstallReportsChanges(t *testing.T) {
	r := newRoot(t)
	r.all(links.Switch)
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
		"a user's file":              {func(r root) { r.file("/usr/sbin/ip6tables", "mine") }, `"/usr/sbin/ip6tables" is a file that is not the wrapper`},
		"a link to something else":   {func(r root) { r.file("/bin/true", ""); r.link("/usr/sbin/iptables", "/bin/true") }, `"/usr/sbin/iptables" points to "/bin/true"`},
		"a broken link":              {func(r root) { r.link("/usr/sbin/iptables-save", "gone") }, `"/usr/sbin/iptables-save" is a broken link`},
		"a loop":                     {func(r root) { r.link("/usr/sbin/iptables", "iptables") }, "too many levels of symbolic links"},
		"a file for the switch":      {func(r root) { r.file("/usr/sbin/"+links.Switch, "mine") }, `"/usr/sbin/iptables-current" is a file`},
		"a file for the wrapper":     {func(r root) { r.file("/usr/sbin/iptables-wrapper", "mine") }, `"/usr/sbin/iptables-wrapper" is a file`},
		"an absolute link outside":   {func(r root) { r.link("/usr/sbin/iptables", "/etc/hostname") }, "broken link"},
		"a relative link outside":    {func(r root) { r.link("/usr/sbin/iptables", "../../../../../../../../etc/hostname") }, "broken link"},
		"the wrapper's name, a FIFO": {func(r root) { _ = unix.Mkfifo(r.dir+"/usr/sbin/iptables-wrapper", 0o644) }, "is a file that is not the wrapper"},
	} {
		t.Run(doc, func(t *testing.T) {
			r := newRoot(t)
			test.prepare(r)
			r.refuses("/usr/sbin", Options{}, ErrRefused, test.text)
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
		r.refuses("/usr/sbin", Options{}, ErrRefused, "iptables\" is a file")
		r.refuses("/usr/sbin", Options{}, ErrRefused, "ip6tables\" is a broken link")
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
	proc, err := links.OpenTree("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	for doc, test := range map[string]struct{ target, dir string }{
		"a relative link":  {"../../../../../../../.." + outside, "/opt"},
		"an absolute link": {outside, "/opt"},
		"dots in --dir":    {"usr", "../../../../../../../.." + outside},
		"a link of a proc": {"", "/self/cwd"},
		"the root of one":  {"", "/self/root" + outside},
	} {
		t.Run(doc, func(t *testing.T) {
			w := links.Started(marker).In(proc)
			if test.target != "" {
				r := newRoot(t)
				r.link("/opt", test.target)
				w = r.w
			}
			if changed, err := Install(w, test.dir, Options{Force: true}); err == nil || len(changed) > 0 {
				t.Errorf("got %q, %v", changed, err)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("outside: %v, %v", entries, err)
			}
		})
	}
}

// In another root no tool can be run: the links under /etc/alternatives are pointed at the switch.
func TestInstallAlternativesInRoot(t *testing.T) {
	debian := func(r root) {
		for _, name := range programs.Names() {
			r.link("/usr/sbin/"+name, "/etc/alternatives/"+name)
			r.link("/etc/alternatives/"+name, "/usr/sbin/xtables-nft-multi")
		}
	}
	r := newRoot(t)
	debian(r)
	if got := r.install("/usr/sbin", Options{Alternatives: true}); !slices.Contains(got, "/etc/alternatives/iptables -> /usr/sbin/iptables-current") {
		t.Errorf("got %q", got)
	}
	if got := r.install("/usr/sbin", Options{}); !slices.Contains(got, "/usr/sbin/iptables -> iptables-current") {
		t.Errorf("got %q", got)
	}

	r = newRoot(t)
	debian(r)
	if got, err := Install(r.w, "usr/sbin", Options{Alternatives: true}); err != nil || !slices.Contains(got, "/etc/alternatives/iptables -> /usr/sbin/iptables-current") {
		t.Errorf("without a slash: %q, %v", got, err)
	}

	r = newRoot(t)
	debian(r)
	r.link("/etc/alternatives/iptables", "gone") // it is there to be repaired
	r.link("/usr/sbin/ip6tables", "../../etc/alternatives/ip6tables")
	r.install("/usr/sbin", Options{Alternatives: true})
}

func TestInstallOtherArchitecture(t *testing.T) {
	const arm64 = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
	const s390x = "\x7fELF\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x16"
	other := arm64
	if own, err := executable(links.Started(marker)); err != nil || elfArchitecture(own) == elfArchitecture([]byte(other)) {
		other = s390x
	}
	r := newRoot(t)
	r.file("/usr/sbin/xtables-nft-multi", other)
	r.file("/usr/sbin/xtables-legacy-multi", other)
	r.refuses("/usr/sbin", Options{Force: true}, ErrArchitecture, `such as "/usr/sbin/xtables-nft-multi"`)
	r.file("/usr/sbin/iptables-wrapper", other+marker)
	if got := r.install("/usr/sbin", Options{}); got[0] != "/usr/sbin/iptables-current -> iptables-wrapper" {
		t.Errorf("got %q", got)
	}
	if got, _ := os.ReadFile(r.dir + "/usr/sbin/iptables-wrapper"); string(got) != other+marker {
		t.Error("the wrapper of the other architecture was replaced")
	}
}

func TestElfArchitecture(t *testing.T) {
	header := "\x7fELF\x02\x01\x01" + string(make([]byte, 9)) + "\x02\x00\x3e\x00"
	for _, test := range []struct{ header, want string }{
		{header, "\x02\x01\x3e\x00"},
		{header + "more", "\x02\x01\x3e\x00"},
		{header[:19], ""},
		{"#!/bin/sh\n          ", ""},
		{"", ""},
	} {
		if got := elfArchitecture([]byte(test.header)); got != test.want {
			t.Errorf("%q: got %q, want %q", test.header, got, test.want)
		}
	}
}

// cap_net_admin,cap_net_raw=ep and cap_net_admin=ep, as they are stored.
const (
	netAdminRaw = "\x01\x00\x00\x02\x00\x30\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	netAdmin    = "\x01\x00\x00\x02\x00\x10\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

func (r root) setCapabilities(program, value string) {
	r.Helper()
	if err := setCapabilities(r.w.Tree, "/usr/sbin/"+program, value); err != nil {
		host.Cannot(r, "set file capabilities: %v", err)
	}
}

func TestInstallCapabilities(t *testing.T) {
	r := newRoot(t)
	r.install("/usr/sbin", Options{})
	r.setCapabilities("xtables-nft-multi", netAdminRaw)
	has := func(want string) {
		t.Helper()
		if got, err := Capabilities(r.w.Tree, "/usr/sbin/iptables-wrapper"); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	has("")
	gave := "gave /usr/sbin/iptables-wrapper the file capabilities of iptables' programs"
	if got := r.install("/usr/sbin", Options{}); !slices.Equal(got, []string{gave}) {
		t.Errorf("got %q", got)
	}
	has(netAdminRaw)
	r.setCapabilities("xtables-legacy-multi", netAdmin)
	r.refuses("/usr/sbin", Options{}, ErrCapabilities, "differ")
	r.setCapabilities("xtables-legacy-multi", netAdminRaw)
	r.setCapabilities("iptables-wrapper", netAdmin)
	r.file("/usr/sbin/iptables-wrapper", marker+marker) // an older one; writing to a file drops its capabilities
	if got := r.install("/usr/sbin", Options{}); !slices.Contains(got, gave) {
		t.Errorf("got %q", got)
	}
	has(netAdminRaw)
}

// Others lists a file once, by whatever path it is found, and not what the wrapper serves.
func TestOthers(t *testing.T) {
	r := newRoot(t)
	r.install("/usr/sbin", Options{})
	r.link("/sbin", "usr/sbin") // as in every current distribution
	r.link("/usr/local/sbin/ip6tables", "/usr/sbin/xtables-legacy-multi")
	r.link("/usr/local/sbin/iptables", "/bin/true")
	r.link("/usr/local/sbin/iptables-save", "/usr/sbin/iptables-wrapper")
	want := []string{"/usr/local/sbin/ip6tables"}
	if got := Others(r.w, "/usr/sbin"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Others(r.w, "/sbin"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	r.link("/usr/sbin/iptables-restore", "xtables-nft-multi")
	if got := Others(r.w, "/usr/local/sbin"); !slices.Equal(got, []string{"/usr/sbin/iptables-restore"}) {
		t.Errorf("got %q", got)
	}
}

func TestCheckPrograms(t *testing.T) {
	r := newRoot(t)
	if err := Check(r.w, "/usr/sbin"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"xtables-nft-multi", "xtables-legacy-multi"} {
		r := newRoot(t)
		if err := os.Remove(r.dir + "/usr/sbin/" + name); err != nil {
			t.Fatal(err)
		}
		if err := Check(r.w, "/usr/sbin"); !errors.Is(err, programs.ErrMissing) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v", err)
		}
		r.file("/usr/sbin/"+strings.Replace(strings.TrimSuffix(name, "-multi"), "xtables", "iptables", 1), "")
		if err := Check(r.w, "/usr/sbin"); !errors.Is(err, programs.ErrMissing) || !strings.Contains(err.Error(), "ip6tables") {
			t.Errorf("with iptables' program alone: got %v", err)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for _, test := range []struct {
		line      string
		ok        bool
		unchecked bool
	}{
		{"iptables v1.8.9 (nf_tables)", true, false},
		{"iptables v1.8.4 (nf_tables)", true, false},
		{"iptables v1.10.0 (nf_tables)", true, false},
		{"iptables v1.8.3 (nf_tables)", false, false},
		{"iptables v1.8.9 (legacy)", false, false},
		{"iptables v1.6.1", false, true},
		{"hello", false, true},
		{"", false, true},
	} {
		err := checkVersion("p", "nft", test.line)
		if (err == nil) != test.ok || errors.Is(err, ErrUnchecked) != test.unchecked {
			t.Errorf("%q: got %v", test.line, err)
		}
	}
}
