// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// NodeNetwork makes this thread's network namespace look like a node's and not like a Pod's: lo is up, and there is a
// pair of interfaces, node0 and node1. It is what "ip link set lo up; ip link add node0 type veth peer name node1"
// does, without a process.
func NodeNetwork() error {
	const vethInfoPeer = 1 // of enum in linux/veth.h
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	node1 := append(make([]byte, unix.SizeofIfInfomsg), attribute(unix.IFLA_IFNAME, []byte("node1\x00"))...)
	pair := slices.Concat(
		attribute(unix.IFLA_IFNAME, []byte("node0\x00")),
		attribute(unix.IFLA_LINKINFO, slices.Concat(
			attribute(unix.IFLA_INFO_KIND, []byte("veth")),
			attribute(unix.IFLA_INFO_DATA, attribute(vethInfoPeer, node1)),
		)),
	)
	err = change(fd, 0, unix.IFF_UP, attribute(unix.IFLA_IFNAME, []byte("lo\x00")))
	if err != nil {
		return err
	}
	return change(fd, unix.NLM_F_CREATE|unix.NLM_F_EXCL, 0, pair)
}

// change asks rtnetlink(7) to make or change an interface, and waits for the answer.
func change(fd int, how uint16, flags uint32, attributes []byte) error {
	size := unix.SizeofNlMsghdr + unix.SizeofIfInfomsg + len(attributes)
	message := binary.NativeEndian.AppendUint32(nil, uint32(size))
	message = binary.NativeEndian.AppendUint16(message, unix.RTM_NEWLINK)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_ACK|how)
	message = append(message, make([]byte, 16)...) // the number and the port; family, type and index
	message = binary.NativeEndian.AppendUint32(message, flags)
	message = binary.NativeEndian.AppendUint32(message, flags) // which of them to change
	message = append(message, attributes...)
	err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return err
	}
	errno := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:]))
	if errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// attribute returns a netlink attribute, padded.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}
