// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data { int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6]; }.
const (
	seccompNumber = 0
	seccompArg0   = 16
	sizeofArg     = 8
)

// Argument is the value of a system call's argument. Place 0 is the first. Only the lower 32 bits count.
type Argument struct{ Place, Value uint32 }

// offset returns the place of those 32 bits in struct seccomp_data.
func (a Argument) offset() uint32 {
	offset := seccompArg0 + sizeofArg*a.Place
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		offset += sizeofArg / 2
	}
	return offset
}

// Refuse makes a system call fail where its arguments have these values, on this thread, in what it starts and in what
// it becomes.
func Refuse(number uint32, errno unix.Errno, arguments ...Argument) error {
	return load(where(number, arguments, unix.SECCOMP_RET_ERRNO|uint32(errno)))
}

// where returns a filter that takes an action instead of a system call with these arguments.
func where(number uint32, arguments []Argument, action uint32) []unix.SockFilter {
	var filter []unix.SockFilter
	skip := uint8(2*len(arguments) + 1) // to what allows it
	equals := func(offset, value uint32) {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip})
		skip -= 2
	}
	equals(seccompNumber, number)
	for _, a := range arguments {
		equals(a.offset(), a.Value)
	}
	return append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
}

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
	Check(tb, Refuse(unix.SYS_GETSOCKOPT, errno, Argument{2, option}))
}

// filter does something instead of a system call. On 386, package unix makes these three through socketcall(2).
func filter(tb testing.TB, number, action uint32) {
	tb.Helper()
	const socketcall = 102
	first, isSocketcall := map[uint32]uint32{unix.SYS_SOCKET: 1, unix.SYS_SENDTO: 11, unix.SYS_RECVFROM: 12}[number]
	if runtime.GOARCH == "386" && isSocketcall {
		Check(tb, load(where(socketcall, []Argument{{0, first}}, action)))
		return
	}
	Check(tb, load(where(number, nil, action)))
}

// load loads a filter for the calling thread.
func load(filter []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
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
