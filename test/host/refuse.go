// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data { int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6]; }.
const (
	seccompNumber = 0
	seccompArg0   = 16
	seccompArg2   = 32
)

// RefuseCall makes a system call fail on the test's thread, which is not used again, as a container's seccomp filter
// may.
func RefuseCall(tb testing.TB, number uint32, errno unix.Errno) {
	tb.Helper()
	filter(tb, number, unix.SECCOMP_RET_ERRNO|uint32(errno))
}

// ForbidCall ends the whole process with SIGSYS if the test's thread makes a system call.
func ForbidCall(tb testing.TB, number uint32) {
	tb.Helper()
	filter(tb, number, unix.SECCOMP_RET_KILL_PROCESS)
}

// RefuseOption makes getsockopt(2) of one option fail on the test's thread, which is not used again.
func RefuseOption(tb testing.TB, option uint32, errno unix.Errno) {
	tb.Helper()
	load(tb, []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccompNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_GETSOCKOPT, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccompArg2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: option, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
}

// filter does something instead of a system call. On 386, package unix makes these three through socketcall(2).
func filter(tb testing.TB, number, action uint32) {
	tb.Helper()
	const socketcall = 102
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	act := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	arg, isSocketcall := map[uint32]uint32{unix.SYS_SOCKET: 1, unix.SYS_SENDTO: 11, unix.SYS_RECVFROM: 12}[number]
	if runtime.GOARCH == "386" && isSocketcall {
		load(tb, []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccompNumber},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: socketcall, Jf: 3},
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccompArg0},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arg, Jf: 1},
			act, allow,
		})
		return
	}
	load(tb, []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: seccompNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		act, allow,
	})
}

// load loads a filter for the calling thread.
func load(tb testing.TB, filter []unix.SockFilter) {
	tb.Helper()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		tb.Fatalf("seccomp: %v", errno)
	}
}

// DropCapability takes a capability from the test's thread, which is not used again.
func DropCapability(tb testing.TB, capability int) {
	tb.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	Check(tb, unix.Capget(&header, &data[0]))
	data[capability/32].Effective &^= 1 << (capability % 32)
	Check(tb, unix.Capset(&header, &data[0]))
}
