// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// ask starts this test once more, as a process that answers a question of its own.
func ask(t *testing.T, question string, change func(cmd *exec.Cmd)) string {
	t.Helper()
	self, err := os.Executable()
	host.Check(t, err)
	cmd := exec.Command(self)
	cmd.Env = []string{asks + "=" + question, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	change(cmd)
	return strings.TrimSpace(host.Output(t, cmd))
}

// Process 1 is this test. A child of it has its mounts and its network, unless it enters others.
func TestOwnContainer(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	if !OwnContainer() {
		t.Error("process 1 is this one, and the container is not its own")
	}
	root := t.TempDir()
	host.Check(t, os.Mkdir(root+"/root", 0o755))
	host.Check(t, unix.Mount("/", root+"/root", "", unix.MS_BIND|unix.MS_REC, ""))
	for _, test := range []struct {
		doc    string
		change func(cmd *exec.Cmd)
		want   string // the container, the network
	}{
		{"a child", func(*exec.Cmd) {}, "true true"},
		{"another network", func(c *exec.Cmd) { c.SysProcAttr.Cloneflags = unix.CLONE_NEWNET }, "false false"},
		{"a chroot", func(c *exec.Cmd) { c.SysProcAttr.Chroot = root + "/root" }, "false true"},
		{
			"mounts of its own, as by PrivateTmp=",
			func(c *exec.Cmd) {
				c.Args = []string{"unshare", "-m", "sh", "-c", `mount -t tmpfs none /run && exec "$0"`, c.Path}
				c.Path = "/usr/bin/unshare"
			},
			"false true",
		},
		{
			"process 1 is the shell of another container",
			func(c *exec.Cmd) {
				c.Args = []string{"unshare", "-mpf", "--mount-proc", "sh", "-c", `"$0"; true`, c.Path}
				c.Path = "/usr/bin/unshare"
			},
			"true true",
		},
	} {
		got := ask(t, "own", test.change)
		if got != test.want {
			t.Errorf("%s: got %s", test.doc, got)
		}
	}
	host.Check(t, unix.Unmount(root+"/root", unix.MNT_DETACH))
	host.Check(t, unix.Mount("none", "/proc", "tmpfs", 0, ""))
	if OwnContainer() || OwnNetwork() {
		t.Error("process 1 cannot be seen, and the container is its own")
	}
	host.Check(t, unix.Unmount("/proc", 0))
}

// One thread of process 1 has entered another network, as an agent does. Whether a child is in the one or in the other,
// it is not known to be in the container's own. Once the thread has ended, it is.
func TestThreadOfProcess1(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	same := func(*exec.Cmd) {}
	host.OnThread(func() {
		host.Check(t, unix.Unshare(unix.CLONE_NEWNET))
		if OwnContainer() || OwnNetwork() {
			t.Error("a thread is elsewhere, and the network is process 1's")
		}
		if got := ask(t, "own", same); got != "false false" {
			t.Errorf("a child in the other network: got %s", got)
		}
		done := make(chan string)
		go func() { done <- ask(t, "own", same) }() // from a thread that is in the first one
		if got := <-done; got != "false false" {
			t.Errorf("a child in the first network: got %s", got)
		}
	})
	for !OwnNetwork() { // the thread ends a moment after its goroutine
		time.Sleep(time.Millisecond)
	}
	if got := ask(t, "own", same); got != "true true" {
		t.Errorf("a child, once the thread has ended: got %s", got)
	}
}

// Process 1 is another user's, and root may not trace it: /proc/1/ns and /proc/1/root cannot be read. What is compared
// can be.
func TestWithoutTracing(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	got := ask(t, "first", func(c *exec.Cmd) {
		c.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
		c.SysProcAttr.Unshareflags = unix.CLONE_NEWNS
	})
	if got != "permission denied, true true" {
		t.Errorf("got %s", got)
	}
}

// The first thread of process 1 has ended, and others go on: what can be read of it is not taken for another
// network. Its mounts cannot be read.
func TestEndedThreadOfProcess1(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	got := ask(t, "leaderless", func(c *exec.Cmd) {
		c.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
		c.SysProcAttr.Unshareflags = unix.CLONE_NEWNS
	})
	if got != "no such file or directory, false true" {
		t.Errorf("got %s", got)
	}
}

func init() {
	if os.Getenv(asks) != "" {
		runtime.LockOSThread() // so that leaderless is on the first thread
	}
}

// leaderless is process 1 of a container: it ends its first thread, and lets a child ask.
func leaderless() {
	self, err := os.Executable()
	err = errors.Join(err, unix.Mount("none", "/proc", "proc", 0, ""))
	if err != nil {
		fmt.Println(err)
	}
	go func() {
		for err == nil {
			_, err = os.Stat("/proc/1/task/1/net/dev")
			time.Sleep(time.Millisecond)
		}
		cmd := exec.Command(self)
		cmd.Env = []string{asks + "=own"}
		output, _ := cmd.CombinedOutput()
		fmt.Printf("%v, %s", errors.Unwrap(err), output)
		os.Exit(0)
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// first is process 1 of a container: it starts a process of root, becomes another user, and lets that process ask.
func first() {
	err := unix.Mount("none", "/proc", "proc", 0, "")
	self, executableErr := os.Executable()
	cmd := exec.Command("setpriv", "--bounding-set=-sys_ptrace", self)
	cmd.Env = []string{asks + "=unprivileged", "PATH=" + os.Getenv("PATH")}
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	stdin, pipeErr := cmd.StdinPipe()
	err = errors.Join(err, executableErr, pipeErr, cmd.Start(), syscall.Setuid(1000))
	_ = stdin.Close()
	err = errors.Join(err, cmd.Wait())
	if err != nil {
		fmt.Println(err)
	}
}

func unprivileged() {
	_, _ = os.Stdin.Read(make([]byte, 1)) // until process 1 is another user's
	_, err := os.Stat("/proc/1/ns/net")
	var errno unix.Errno
	_ = errors.As(err, &errno)
	fmt.Printf("%v, %t %t\n", errno, OwnContainer(), OwnNetwork())
}
