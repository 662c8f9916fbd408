// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// becomeWithoutNFTables becomes a program for which the kernel has no nf_tables: socket(2) refuses NETLINK_NETFILTER,
// as it does where the module is missing.
func becomeWithoutNFTables(args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	// struct seccomp_data: int nr; u32 arch; u64 instruction_pointer, args[6]. The lower half of args[n] is at 16+8n.
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(value uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: otherwise}
	}
	argument := func(n uint32) uint32 {
		if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
			return 16 + 8*n
		}
		return 16 + 8*n + 4
	}
	filter := []unix.SockFilter{
		load(0), equal(unix.SYS_SOCKET, 5),
		load(argument(0)), equal(unix.AF_NETLINK, 3),
		load(argument(2)), equal(unix.NETLINK_NETFILTER, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return syscall.Exec(path, args, os.Environ())
}
