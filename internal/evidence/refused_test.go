// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package evidence

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
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

// dropCapability takes a capability from the test's thread, which is not used again.
func dropCapability(t *testing.T, capability uintptr) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[capability/32].Effective &^= 1 << (capability % 32)
	if err := unix.Capset(&header, &data[0]); err != nil {
		t.Fatal(err)
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
				for _, q := range []Query{{}, {Everything: true, DryRun: true}} {
					r := q.Ask()
					a := r.NFT[IPv4]
					if r.Conclusive || a.Hint != Unknown || a.Works != Unknown || a.Rules != Unknown ||
						!errors.Is(a.Err, errno) || r.Denied() != (errno == unix.EPERM || errno == unix.EACCES) {
						t.Errorf("%+v: got %+v, %+v", q, r.Decision, a)
					}
				}
			})
		}
	}
}

// Without CAP_NET_ADMIN the kernel does not answer, and that is not the same as "no".
func TestWithoutCapability(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-legacy", "-w", "-t", mangle, "-N", HintChain)
	dropCapability(t, unix.CAP_NET_ADMIN)
	r := Query{Everything: true, DryRun: true}.Ask()
	if r.Mode != NFT || r.Reason != Default || r.Conclusive || !r.Denied() || r.Momentary() {
		t.Errorf("got %+v", r.Decision)
	}
	if !strings.HasSuffix(r.Uncertainty(), "operation not permitted: CAP_NET_ADMIN is missing, or does not count here") {
		t.Errorf("got %q", r.Uncertainty())
	}
	for _, m := range Modes() {
		for _, f := range families {
			a := r.Of(m)[f]
			if m == Legacy && f == IPv6 {
				// There is no table, which everyone may know who may read the list of them.
				if a.Hint != No || a.Canary != No || a.Rules != No || a.Err != nil {
					t.Errorf("%s %s: got %+v", m, f, a)
				}
				continue
			}
			if a.Hint != Unknown || a.Canary != Unknown || a.Rules != Unknown || !errors.Is(a.Err, unix.EPERM) {
				t.Errorf("%s %s: got %+v", m, f, a)
			}
		}
	}
}

// CAP_NET_ADMIN alone is enough.
func TestWithoutOtherCapabilities(t *testing.T) {
	host.Netns(t)
	host.Run(t, "ip6tables-legacy", "-w", "-t", mangle, "-N", HintChain)
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if c != unix.CAP_NET_ADMIN {
			dropCapability(t, c)
		}
	}
	if r := (Query{}).Ask(); r.Mode != Legacy || r.Reason != KubeletHint || !r.Conclusive {
		t.Errorf("got %+v", r.Decision)
	}
}
