// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What a call tells layout.Keep: whether it adds, whose it is, and whether it was denied an answer. The programs cannot
// be executed, so that run returns. Without rules, each answer is a guess.
func TestStores(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	for _, mode := range evidence.Modes() {
		program := "/usr/sbin/xtables-" + string(mode) + "-multi"
		host.Check(t, os.WriteFile(program, []byte("no program\n"), 0o755))
	}
	const memory = "/dev/iptables-memory"
	for _, test := range []struct {
		doc    string
		argv   []string
		enter  func() error // the thread
		stores bool
	}{
		{doc: "it adds", argv: []string{"/usr/sbin/iptables", "-A", "INPUT", "-j", "ACCEPT"}, stores: true},
		{doc: "it lists", argv: []string{"/usr/sbin/iptables", "-S"}},
		{doc: "it deletes", argv: []string{"/usr/sbin/iptables", "-D", "INPUT", "-j", "ACCEPT"}},
		{
			doc: "without CAP_NET_ADMIN", argv: []string{"/usr/sbin/iptables", "-A", "INPUT", "-j", "ACCEPT"},
			enter: func() error { return become(0, 1<<unix.CAP_NET_ADMIN) },
		},
		{
			doc: "a user who may do all that root may", argv: []string{"/usr/sbin/iptables", "-A", "INPUT", "-j", "ACCEPT"},
			enter: func() error { return become(1000, 0) },
		},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
			if test.enter != nil {
				err := test.enter()
				if err != nil {
					t.Errorf("%s: %v", test.doc, err)
				}
			}
			var stderr bytes.Buffer
			status := run(test.argv, &stderr)
			if status != statusUnusable || !strings.Contains(stderr.String(), "exec format error") {
				t.Errorf("%s: status %d\n%s", test.doc, status, stderr.String())
			}
		}()
		<-done
		content, err := os.Readlink(memory)
		if (err == nil) != test.stores {
			t.Errorf("%s: got %q, %v", test.doc, content, err)
		}
		_ = os.Remove(memory)
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
