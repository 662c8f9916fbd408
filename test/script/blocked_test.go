// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A seccomp profile without netlink sockets keeps iptables-nft from working. That is no fault of the image, and
// doctor does not say so.
func TestNetlinkBlocked(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "ip", "link", "add", "node0", "type", "veth", "peer", "name", "node1")
	host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
	host.Run(t, "iptables-wrapper", "install")

	said := withoutNetlink(unix.EAFNOSUPPORT, "iptables", "-S")
	if !strings.Contains(said, "Failed to initialize nft") {
		t.Fatalf("iptables is not blocked: %s", said)
	}
	said = withoutNetlink(unix.EAFNOSUPPORT, "iptables-wrapper", "doctor")
	if !strings.HasPrefix(said, "PROBLEM  not-permitted: ") {
		t.Errorf("doctor does not see it: %s", said)
	}
	if strings.Contains(said, "no-program") {
		t.Errorf("doctor accuses the image: %s", said)
	}
	// The fix.
	said = host.Run(t, "iptables-wrapper", "doctor")
	if !strings.Contains(said, "no problem found") {
		t.Errorf("not cured: %s", said)
	}
}

// A kernel without nf_tables refuses netlink sockets by another error. The variable demands that nft be used: that is
// the wrong backend, and no fault of the image.
func TestKernelLacksNFTables(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	t.Setenv("IPTABLES_WRAPPER_BACKEND", "nft")
	said := withoutNetlink(unix.EPROTONOSUPPORT, "iptables-wrapper", "doctor")
	if !strings.HasPrefix(said, "PROBLEM  wrong-backend: ") || strings.Contains(said, "no-program") {
		t.Errorf("got %s", said)
	}
}

// withoutNetlink runs a program for which socket(2) refuses AF_NETLINK with an error, and returns what it prints.
func withoutNetlink(refusal unix.Errno, name string, args ...string) string {
	const number, family = 0, 16 // in struct seccomp_data: nr, and the lower half of args[0] on little-endian machines
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: family},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_NETLINK, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(refusal)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	said := make(chan string)
	go func() {
		runtime.LockOSThread() // and never unlocked: the filter stays with the thread, and with what it starts
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
		}
		if err != nil {
			said <- err.Error()
			return
		}
		output, _ := exec.Command(name, args...).CombinedOutput()
		said <- string(output)
	}()
	return <-said
}
