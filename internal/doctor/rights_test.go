// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How doctor is started with other rights.
var (
	noNetAdmin = []string{"setpriv", "--bounding-set=-net_admin"}
	noNetRaw   = []string{"setpriv", "--bounding-set=-net_raw"}
	nobody     = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	ambient    = []string{
		"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+net_admin,+net_raw",
		"--ambient-caps=+net_admin,+net_raw",
	}
)

// rightSituations are about what this process may do, and what the kernel can do.
var rightSituations = []situation{
	{
		doc:  "no NET_ADMIN, kubelet uses nft",
		make: nftHost, as: noNetAdmin, want: "not-permitted", says: "CAP_NET_ADMIN is missing",
	},
	{again: true, doc: "no NET_ADMIN, kubelet uses legacy", make: legacyHst, as: noNetAdmin, want: "not-permitted"},
	{again: true, doc: "no NET_ADMIN, and nobody knows the host", make: ":", as: noNetAdmin, want: "not-permitted"},
	{
		doc:  "another user",
		make: nftHost, as: nobody, want: "not-permitted", says: "Kubernetes gives added capabilities only to root",
	},
	{
		doc:  "another user without new privileges",
		make: nftHost, as: append([]string{"setpriv", "--no-new-privs"}, nobody[1:]...), want: "not-permitted",
		says: "File capabilities have no effect",
	},
	{
		doc:  "no NET_RAW, kubelet uses legacy",
		make: legacyHst, as: noNetRaw, want: "not-permitted", says: "CAP_NET_RAW is missing",
	},
	{doc: "no NET_RAW, kubelet uses nft", make: nftHost, as: noNetRaw},
	{
		doc:  "a user namespace",
		make: nftHost, as: []string{"unshare", "--user", "--map-root-user"}, want: "not-permitted",
		says: "this process is in a user namespace",
	},
	{
		doc:  "seccomp forbids netlink",
		make: nftHost, as: []string{examineVariable + "=netlink"}, want: "not-permitted",
		says: "usually a seccomp profile", shows: "Seccomp:\t2",
	},
	{
		doc:  "another user with ambient capabilities",
		make: ":", as: ambient, want: "uncertain", says: "this user cannot read which tables legacy has",
	},
	{
		again: true, doc: "another user, whose variable may be wrong",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=nft"}, as: ambient, want: "uncertain",
	},
	{again: true, doc: "another user with ambient capabilities, kubelet uses nft", make: nftHost, as: ambient, want: "uncertain"},
	{
		doc:  "a security module refuses root",
		make: nftHost, as: []string{examineVariable + "=module"}, want: "not-permitted",
		says: "SELinux or AppArmor",
	},

	{
		doc:  "no nf_tables, and the variable wants it",
		make: ":", env: []string{"IPTABLES_WRAPPER_BACKEND=nft"}, as: []string{examineVariable + "=nft"},
		want: "wrong-backend", says: "the host uses legacy (this kernel has no nf_tables)",
	},
	{
		again: true, doc: "no nf_tables, and nft is stored",
		make: storedNFT, as: []string{examineVariable + "=nft"}, want: "wrong-backend",
	},
	{
		again: true, doc: "no nf_tables, kubelet uses legacy",
		make: legacyHst, as: []string{examineVariable + "=nft"},
	},
	{
		doc:  "x_tables lacks the table",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"},
		as: []string{examineVariable + "=legacy-table"}, want: "kernel",
	},
	{
		doc:  "x_tables is gone",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"}, as: []string{examineVariable + "=legacy"},
		want: "kernel", says: "Remove IPTABLES_WRAPPER_BACKEND, in the Pod's spec", shows: "iptables who?",
	},
	{
		doc:  "x_tables is gone, and legacy is stored",
		make: legacyHst + storedLegacy, as: []string{examineVariable + "=legacy"}, want: "kernel",
		says: "run iptables-wrapper reset: then calls choose",
	},
}

// forbidden are the system calls that fail, each with its error: socket(2) by its protocol, getsockopt(2) by its level.
var forbidden = map[string]struct {
	call  uint32
	place uint32 // of the argument
	value uint32
	errno unix.Errno
}{
	"nft":          {unix.SYS_SOCKET, 2, unix.NETLINK_NETFILTER, unix.EPROTONOSUPPORT},
	"netlink":      {unix.SYS_SOCKET, 2, unix.NETLINK_NETFILTER, unix.EPERM},
	"module":       {unix.SYS_SOCKET, 2, unix.NETLINK_NETFILTER, unix.EACCES},
	"legacy":       {unix.SYS_GETSOCKOPT, 1, unix.SOL_IP, unix.ENOPROTOOPT},
	"legacy-table": {unix.SYS_GETSOCKOPT, 1, unix.SOL_IP, unix.ENOENT},
}

// forbid has system calls fail in this process and in those that it starts, as a kernel without a part does, or a
// seccomp profile.
//
//	struct seccomp_data { int nr; __u32 arch; __u64 instruction_pointer; __u64 args[6]; };
func forbid(what string) {
	f, known := forbidden[what]
	if !known {
		return
	}
	argument := 16 + 8*f.place
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		argument += 4
	}
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(value uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: otherwise}
	}
	filter := []unix.SockFilter{
		load(0), equal(f.call, 3),
		load(argument), equal(f.value, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(f.errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		fmt.Fprintln(os.Stderr, "seccomp:", errno)
		os.Exit(1)
	}
}
