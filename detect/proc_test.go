// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/xtables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// cover hides a container's directory behind files of the test's own, by path and content.
func cover(t *testing.T, directory string, files map[string]string) {
	t.Helper()
	host.Check(t, unix.Mount("none", directory, "tmpfs", 0, "mode=755"))
	t.Cleanup(func() { host.Check(t, unix.Unmount(directory, unix.MNT_DETACH)) })
	for name, content := range files {
		path := filepath.Join(directory, name)
		host.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		host.Check(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

// On a kernel without x_tables, getsockopt(2) is never called: on some, that alone starts a program as root.
func TestWithoutXTables(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	for doc, test := range map[string]struct {
		make step
		want string
	}{
		"nothing":                  {func(*testing.T) {}, "nft only-supported guess"},
		"a host with a program":    {chain(NFT, IPv4, "filter", "DOCKER-USER"), "nft host-program certain"},
		"a host with native rules": {native(sixRules), "nft only-supported guess"},
	} {
		t.Run(doc, func(t *testing.T) {
			host.Netns(t)
			test.make(t)
			cover(t, "/proc", map[string]string{"thread-self/net/dev": ""})
			host.ForbidCall(t, unix.SYS_GETSOCKOPT)
			r := ask(t, "")
			legacy := r.Evidence.Legacy
			if summary(r) != test.want || legacy.Kernel != No || legacy.Hint != [2]Answer{No, No} {
				t.Errorf("got %+v", r)
			}
			all, err := Survey()
			legacy = all.Evidence.Legacy
			if summary(all) != test.want || err != nil || legacy.Rules != 0 || legacy.Counted != Yes ||
				legacy.Program != [2]Answer{No, No} {
				t.Errorf("everything: got %+v, %v", all, err)
			}
		})
	}
	t.Run("with a table", func(t *testing.T) { // or the test above shows nothing
		host.Netns(t)
		cover(t, "/proc", map[string]string{
			"thread-self/net/dev": "", "thread-self/net/ip_tables_names": "mangle\n",
		})
		host.RefuseCall(t, unix.SYS_GETSOCKOPT, unix.ENOSYS)
		_, err := Host("")
		if !errors.Is(err, unix.ENOSYS) {
			t.Errorf("got %v", err)
		}
	})
}

// Where x_tables is not loaded, a list of modules in this root decides whether legacy is possible. The list of IPv6's
// tables shows that it is, too.
func TestLoadable(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	var name unix.Utsname
	host.Check(t, unix.Uname(&name))
	list := unix.ByteSliceToString(name.Release[:]) + "/modules.dep"
	modules := t.TempDir() // /lib is a link on most systems, and has no modules in most containers
	upper, work := modules+"/upper", modules+"/work"
	host.Check(t, errors.Join(os.MkdirAll(upper+"/modules", 0o755), os.Mkdir(work, 0o755)))
	lib, err := filepath.EvalSymlinks("/lib")
	host.Check(t, err)
	host.Check(t, unix.Mount("overlay", lib, "overlay", 0, "lowerdir="+lib+",upperdir="+upper+",workdir="+work))
	t.Cleanup(func() { host.Check(t, unix.Unmount(lib, unix.MNT_DETACH)) })
	const ipTables = "kernel/net/ipv4/netfilter/ip_tables.ko:"
	for _, test := range []struct {
		doc, modules, list6 string
		want                Reason
		loadable, takes     Answer
	}{
		{doc: "neither", want: OnlySupported, loadable: No},
		{doc: "it can be loaded", modules: ipTables, want: Default, loadable: Yes, takes: Yes},
		{doc: "IPv6's is loaded", list6: "/thread-self/net/ip6_tables_names", want: Default, takes: Yes},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Netns(t)
			cover(t, "/lib/modules", map[string]string{list: test.modules})
			cover(t, "/proc", map[string]string{"thread-self/net/dev": "", cmp.Or(test.list6, "none"): ""})
			r := ask(t, "")
			e := r.Evidence
			if r.Backend != NFT || r.Reason != test.want || e.Loadable != test.loadable || e.TakesRules != test.takes {
				t.Errorf("got %s, loadable %v, takes rules %v", summary(r), e.Loadable, e.TakesRules)
			}
		})
	}
	host.Netns(t)
	if e := ask(t, "").Evidence; e.Loadable != NotAsked {
		t.Errorf("x_tables is loaded: got %v", e.Loadable)
	}
}

// Before Linux 3.17, /proc shows a thread no network namespace but that of the first thread. That is asked for if the
// caller is the first one, as the wrapper is.
func TestBeforeThreadSelf(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	addChain(t, Legacy, IPv4, "mangle", hintChain)
	self, err := os.Executable()
	host.Check(t, err)
	cover(t, "/proc", map[string]string{
		"self/net/dev": "", "self/net/ip_tables_names": "mangle\n", "self/net/ip6_tables_names": "",
	})
	cmd := exec.Command(self)
	cmd.Env = []string{first + "=1"}
	got := host.Output(t, cmd)
	if got != "legacy kubelet-hint certain <nil>\n" {
		t.Errorf("the first thread: got %q", got)
	}
	host.OnThread(func() {
		r, err := Host("")
		if summary(r) != "nft default guess" || r.Evidence.Legacy.Kernel != Unknown ||
			!errors.Is(err, xtables.ErrHidden) {
			t.Errorf("another thread: got %+v, %v", r, err)
		}
	})
}

// Without /proc, legacy is unknown, and nothing else.
func TestWithoutProc(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Netns(t)
	addChain(t, NFT, IPv4, "mangle", hintChain)
	addChain(t, Legacy, IPv4, "mangle", hintChain)
	cover(t, "/proc", nil)
	host.ForbidCall(t, unix.SYS_GETSOCKOPT)
	r, err := Host("")
	if summary(r) != "nft kubelet-hint guess" || !errors.Is(err, xtables.ErrHidden) || r.Evidence.NFT.Err != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}
