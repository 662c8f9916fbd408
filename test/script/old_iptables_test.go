// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// connect makes a connection from one network namespace to an address, behind which it listens in another one.
func connect(from, address, to, listening string, timeout time.Duration) error {
	var listener net.Listener
	err := inside(to, func() (err error) {
		listener, err = net.Listen("tcp", listening)
		return err
	})
	if err != nil {
		return err
	}
	defer listener.Close()
	return inside(from, func() error {
		connection, err := net.DialTimeout("tcp", address, timeout)
		if err == nil {
			connection.Close()
		}
		return err
	})
}

// inside makes system calls in a network namespace of ip-netns(8).
func inside(namespace string, calls func() error) (err error) {
	host.OnThread(func() {
		var file *os.File
		file, err = os.Open("/run/netns/" + namespace)
		if err != nil {
			return
		}
		defer file.Close()
		err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = calls()
		}
	})
	return err
}

// Up to 1.8.7, iptables-nft loses the condition of a rule that a newer one has made, so that a DROP for a few packets
// drops them all. doctor warns, and install does. With a newer one, the same commands do no harm.
func TestOldIptables(t *testing.T) {
	old := host.OldIptables(t)
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "sh", "network.sh")
	host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	host.Run(t, "iptables-nft", "-A", "FORWARD", "-m", "mark", "--mark", "1", "-j", "DROP")
	passes := func() bool {
		return connect("client", "10.2.0.2:80", "server", "10.2.0.2:80", time.Second) == nil
	}
	const rewrite = "iptables-save -t filter | iptables-restore"

	newer := withOld(t, strings.TrimSuffix(old, "/usr/sbin/xtables-nft-multi"))
	host.Run(t, "iptables-wrapper", "install")
	said := host.Run(t, "iptables-wrapper", "doctor")
	if !strings.Contains(said, "WARNING  old-iptables: ") || !strings.Contains(said, "1.8.7") {
		t.Errorf("doctor says %s", said)
	}
	if !passes() {
		t.Fatal("nothing passes before anything was done")
	}
	host.Run(t, "sh", "-c", rewrite)
	if passes() {
		t.Error("1.8.7 does no harm, so doctor is wrong")
	}

	// The fix: a newer version in the image. The rule has to be made again, by whoever made it.
	newer()
	host.Run(t, "iptables", "-F", "FORWARD")
	host.Run(t, "iptables", "-A", "FORWARD", "-m", "mark", "--mark", "1", "-j", "DROP")
	host.Run(t, "sh", "-c", rewrite)
	if !passes() {
		t.Error("a newer version does harm, too")
	}
	said = host.Run(t, "iptables-wrapper", "doctor")
	if strings.Contains(said, "old-iptables") {
		t.Errorf("doctor still says %s", said)
	}
}

// withOld puts the programs below a root into the places of the newer ones, with their library and extensions: with
// those of 1.8.13, the program of 1.8.7 aborts. newer undoes that.
func withOld(t *testing.T, root string) (newer func()) {
	t.Helper()
	var places []string
	for _, pattern := range []string{"usr/sbin/*", "usr/lib/*/libxtables.so.12", "usr/lib/*/xtables"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no %s (%v)", root, pattern, err)
		}
		for _, file := range files {
			place := strings.TrimPrefix(file, root)
			host.Check(t, unix.Mount(file, place, "", unix.MS_BIND, ""))
			places = append(places, place)
		}
	}
	return func() {
		t.Helper()
		for _, place := range places {
			host.Check(t, unix.Unmount(place, 0))
		}
	}
}
