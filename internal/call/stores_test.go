// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/dir"
	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What a call tells layout.Keep: what it may change, whose it is, where it is, and whether it was denied an answer. The
// programs cannot be executed, so that run returns. The directory of the running file is read-only: only the memory is
// changed.
func TestStores(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const link = "/dev/iptables-memory"
	var (
		adds    = []string{"/usr/sbin/iptables", "-A", "INPUT", "-j", "ACCEPT"}
		deletes = []string{"/usr/sbin/iptables", "-D", "INPUT", "-j", "ACCEPT"}
		lists   = []string{"/usr/sbin/iptables", "-S"}
	)
	self := filepath.Dir(layout.RunningPath())
	host.Check(t, unix.Mount(self, self, "", unix.MS_BIND, ""))
	host.Check(t, unix.Mount("", self, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	nft := t.TempDir() + "/xtables-nft-multi"
	host.Run(t, "mv", "/usr/sbin/xtables-nft-multi", nft)
	for _, mode := range evidence.Modes() {
		program := "/usr/sbin/xtables-" + string(mode) + "-multi"
		host.Check(t, os.WriteFile(program, []byte("no program\n"), 0o755))
	}
	for _, test := range []struct {
		doc   string
		argv  []string
		make  func()       // in the container
		enter func() error // by the thread
		want  string       // how certain is what is remembered; "" if nothing is
	}{
		{doc: "a guess, it adds", argv: adds, want: "guess"},
		{doc: "a guess, it deletes", argv: deletes},
		{
			doc: "a guess, without CAP_NET_ADMIN", argv: adds,
			enter: func() error { return become(0, 1<<unix.CAP_NET_ADMIN) },
		},
		{doc: "a user who may do all that root may", argv: adds, enter: func() error { return become(1000, 0) }},
		{
			doc: "another network namespace than process 1's", argv: adds,
			enter: func() error { return unix.Unshare(unix.CLONE_NEWNET) },
		},
		{
			doc: "certain, it lists", argv: lists,
			make: func() { host.Run(t, nft, "iptables", "-A", "INPUT", "-j", "ACCEPT") },
		},
		{doc: "certain, it deletes", argv: deletes, want: "certain"},
	} {
		if test.make != nil {
			test.make()
		}
		onThread(t, test.doc, test.enter, test.argv)
		content, _ := os.Readlink(link)
		words := append(strings.Fields(content), "", "", "")
		if words[2] != test.want {
			t.Errorf("%s: %q is remembered", test.doc, content)
		}
		_ = os.Remove(link)
	}

	// Only one backend is installed.
	host.Run(t, nft, "iptables", "-F")
	host.Run(t, "sh", "-c", "rm /usr/sbin/*-legacy*")
	onThread(t, "only nft", nil, adds)
	content, _ := os.Readlink(link)
	installed := strings.HasPrefix(content, "nft only-installed guess ")
	supported := strings.HasPrefix(content, "nft only-supported guess ") // this kernel may do nft only, too
	if !installed && !supported {
		t.Errorf("only nft is installed: %q is remembered", content)
	}
}

// onThread runs a call that cannot become a program, on a thread of its own.
func onThread(t *testing.T, doc string, enter func() error, argv []string) {
	t.Helper()
	host.OnThread(func() {
		if enter != nil {
			err := enter()
			if err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
		var stderr bytes.Buffer
		status := run(argv, &stderr)
		if status != statusUnusable || !strings.Contains(stderr.String(), "exec format error") {
			t.Errorf("%s: status %d\n%s", doc, status, stderr.String())
		}
	})
}

// A call that was killed has left a memory that is certain, and the switch at the wrapper. The next one that changes
// something moves the switch, and one that lists does not.
func TestCarriesOut(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Run(t, "cp", layout.RunningPath(), "/usr/sbin/iptables-wrapper") // the test binary, which init makes a wrapper
	host.Check(t, os.Symlink("iptables-wrapper", "/usr/sbin/iptables-current"))
	host.Run(t, "ln", "-sf", "iptables-current", "/usr/sbin/iptables")
	d, err := dir.Open("/dev")
	host.Check(t, err)
	defer d.Close()
	host.Check(t, memory.In(d).Set(evidence.Decision{
		Mode: evidence.Legacy, Reason: evidence.HostProgram, Conclusive: true, Because: "of a program",
	}))
	for _, test := range []struct{ argument, want string }{{"-S", "iptables-wrapper"}, {"-F", "xtables-legacy-multi"}} {
		host.Run(t, "/usr/sbin/iptables", test.argument)
		content, err := os.Readlink("/usr/sbin/iptables-current")
		if content != test.want || err != nil {
			t.Errorf("%s: the switch is at %q, %v", test.argument, content, err)
		}
	}
}

// become changes the user of this thread, and takes capabilities away. It keeps the others.
func become(user uintptr, without uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	if err != nil {
		return err
	}
	err = unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0)
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, user, user, user) // of this thread only
	if errno != 0 {
		return errno
	}
	data[0].Effective = data[0].Permitted &^ without
	return unix.Capset(&header, &data[0])
}
