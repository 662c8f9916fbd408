// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// How doctor is started with other rights.
var (
	noNetAdmin = []string{"setpriv", "--bounding-set=-net_admin"}
	noNetRaw   = []string{"setpriv", "--bounding-set=-net_raw"}
	nobody     = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	asGroup0   = []string{
		"setpriv", "--reuid=65534", "--regid=0", "--clear-groups", "--inh-caps=+net_admin,+net_raw",
		"--ambient-caps=+net_admin,+net_raw",
	}
	ambient = []string{
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
	{
		again: true, doc: "no NET_ADMIN, kubelet uses legacy",
		make: legacyHst, as: noNetAdmin, want: "not-permitted",
	},
	{
		again: true, doc: "no NET_ADMIN, and nobody knows the host",
		make: ":", as: noNetAdmin, want: "not-permitted",
	},
	{
		doc:  "another user",
		make: nftHost, as: nobody, want: "not-permitted", says: "Kubernetes gives added capabilities only to root",
	},
	{
		doc:  "another user without new privileges",
		make: nftHost, as: append([]string{"setpriv", "--no-new-privs"}, nobody[1:]...), want: "not-permitted",
		says: "They have no effect if NoNewPrivs is 1",
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
		again: true, doc: "a user namespace, in the network of the node",
		make: nftHost, as: []string{"unshare", "--user", "--map-root-user"}, want: "not-permitted",
		says: "), shared with process 1\nkernel:",
	},
	{
		doc:  "seccomp forbids netlink",
		make: nftHost, as: []string{examineVariable + "=netlink"}, want: "not-permitted",
		says: "usually a seccomp profile", shows: "Seccomp:\t2",
	},
	{
		doc:  "a sandbox has no netlink",
		make: nftHost, as: []string{examineVariable + "=sandbox"}, want: "not-permitted", says: "gVisor",
	},
	{
		doc:  "another user with ambient capabilities",
		make: ":", as: ambient, want: "uncertain", says: "this user cannot read which tables legacy has",
	},
	{
		again: true, doc: "another user, whose variable may be wrong",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=nft"}, as: ambient, want: "uncertain",
	},
	{
		again: true, doc: "another user with ambient capabilities, kubelet uses nft",
		make: nftHost, as: ambient, want: "uncertain",
	},
	{
		doc:  "a security module refuses root",
		make: nftHost, as: []string{examineVariable + "=module"}, want: "not-permitted",
		says: "SELinux or AppArmor",
	},

	{
		doc: "another user in a Pod's own network, whose rules are in legacy", as: ambient,
		make: "iptables-legacy -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 15006", want: "uncertain",
		says: "this user cannot read which tables legacy has",
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
		again: true, doc: "x_tables lacks the table",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"},
		as: []string{examineVariable + "=legacy-table"}, want: "kernel",
	},
	{
		doc:  "x_tables is gone",
		make: legacyHst, env: []string{"IPTABLES_WRAPPER_BACKEND=legacy"}, as: []string{examineVariable + "=legacy"},
		want: "kernel", says: "Remove IPTABLES_WRAPPER_BACKEND, or set it to nft", shows: "iptables who?",
	},
	{
		doc:  "x_tables is gone, and legacy is stored",
		make: legacyHst + storedLegacy, as: []string{examineVariable + "=legacy"}, want: "kernel",
		says: "run iptables-wrapper reset: then calls follow the host",
	},
}

// forbidden are the system calls that fail, each with its error: socket(2) by its protocol, getsockopt(2) by its level.
var forbidden = map[string]struct {
	call  uint32
	errno unix.Errno
	where host.Argument
}{
	"nft":     {unix.SYS_SOCKET, unix.EPROTONOSUPPORT, host.Argument{Place: 2, Value: unix.NETLINK_NETFILTER}},
	"netlink": {unix.SYS_SOCKET, unix.EPERM, host.Argument{Place: 2, Value: unix.NETLINK_NETFILTER}},
	"sandbox": {unix.SYS_SOCKET, unix.EAFNOSUPPORT, host.Argument{Place: 2, Value: unix.NETLINK_NETFILTER}},
	"module":  {unix.SYS_SOCKET, unix.EACCES, host.Argument{Place: 2, Value: unix.NETLINK_NETFILTER}},
	"legacy":  {unix.SYS_GETSOCKOPT, unix.ENOPROTOOPT, host.Argument{Place: 1, Value: unix.SOL_IP}},
	"no-ipv6": {unix.SYS_SOCKET, unix.EAFNOSUPPORT, host.Argument{Place: 0, Value: unix.AF_INET6}},
	"flock":   {unix.SYS_FLOCK, unix.EPERM, host.Argument{Place: 1, Value: unix.LOCK_SH | unix.LOCK_NB}},
	"nolock":  {unix.SYS_FLOCK, unix.ENOLCK, host.Argument{Place: 1, Value: unix.LOCK_SH | unix.LOCK_NB}},
	"open": {unix.SYS_OPENAT, unix.EACCES, host.Argument{
		Place: 2, Value: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC,
	}},
	"processes":    {call: unix.SYS_EXECVE, errno: unix.EAGAIN},
	"descriptors":  {unix.SYS_PIPE2, unix.EMFILE, host.Argument{Place: 1, Value: unix.O_CLOEXEC}},
	"legacy-table": {unix.SYS_GETSOCKOPT, unix.ENOENT, host.Argument{Place: 1, Value: unix.SOL_IP}},
}

// forbid has system calls fail in this process and in those that it starts, as a kernel without a part does, or a
// seccomp profile.
func forbid(what string) {
	f, known := forbidden[what]
	switch {
	case known && f.where == (host.Argument{}):
		check(host.Refuse(f.call, f.errno))
	case known:
		check(host.Refuse(f.call, f.errno, f.where))
	}
}
