// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// refuseCall makes a system call fail on the test's thread, which is not used again, as a container's seccomp filter
// may.
func refuseCall(t *testing.T, number uint32, errno unix.Errno) {
	t.Helper()
	// struct seccomp_data { int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6]; };
	offset := uint32(0)
	if n, ok := map[uint32]uint32{unix.SYS_SOCKET: 1, unix.SYS_SENDTO: 11, unix.SYS_RECVFROM: 12}[number]; ok &&
		runtime.GOARCH == "386" {
		offset, number = 16, n // what socketcall(2) is asked for
	}
	refusePart(t, offset, number, errno)
}

// refuseOption does so for getsockopt(2) of one option.
func refuseOption(t *testing.T, option uint32, errno unix.Errno) {
	t.Helper()
	refusePart(t, 32, option, errno)
}

// refusePart makes a system call fail if a part of struct seccomp_data is a number: the number of the call if that is
// at offset 0, else an argument of socketcall(2) at 16, or of getsockopt(2) at 32.
func refusePart(t *testing.T, offset, number uint32, errno unix.Errno) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if offset != 0 {
		call := uint32(102) // socketcall(2)
		if offset == 32 {
			call = unix.SYS_GETSOCKOPT
		}
		filter = append([]unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 3},
		}, filter...)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&program))); e != 0 {
		t.Fatalf("seccomp: %v", e)
	}
}

// Only the kernel's reply says that there is no such chain, whatever error a system call fails with.
func TestRefusedCallIsNoAnswer(t *testing.T) {
	for _, call := range []struct {
		name   string
		number uint32
	}{{"socket", unix.SYS_SOCKET}, {"sendto", unix.SYS_SENDTO}, {"recvfrom", unix.SYS_RECVFROM}} {
		for _, errno := range []unix.Errno{unix.ENOENT, unix.EPERM, unix.ENOSYS, unix.ENOPROTOOPT} {
			t.Run(fmt.Sprint(call.name, " ", unix.ErrnoName(errno)), func(t *testing.T) {
				host.Netns(t)
				host.Run(t, "iptables-nft", "-w", "-t", mangle, "-N", HintChain)
				host.Run(t, "iptables-legacy", "-w", "-A", "INPUT", "-j", "ACCEPT")
				refuseCall(t, call.number, errno)
				for _, q := range []Query{{}, {Everything: true}} {
					r := q.Run()
					if e := r.Of(NFT, IPv4); r.Conclusive || e.Hint != Unknown || e.Supported != Unknown ||
						e.Rules != (Count{0, Unbounded}) || !errors.Is(e.Err, errno) {
						t.Errorf("%+v: got %v, conclusive %v, %+v", q, r, r.Conclusive, e)
					}
				}
			})
		}
	}
}
