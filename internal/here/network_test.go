// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"encoding/binary"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The interfaces of a namespace show whether it is a container's own.
func TestInterfaces(t *testing.T) {
	for _, test := range []struct {
		doc   string
		make  string
		names []string
		own   bool
	}{
		{"nothing", "", []string{"lo"}, true},
		{"eth0, the other end here", "ip link add eth0 type veth peer name p", []string{"eth0", "lo", "p"}, false},
		{"eth0, the other end elsewhere", "ip link add eth0 type veth peer netns ELSEWHERE", []string{"eth0", "lo"},
			true},
		{"a node's, and a pod's other end", "ip link add ens3 type veth peer netns ELSEWHERE", []string{"ens3", "lo"},
			false},
		{"eth0, the other end elsewhere, and a bridge", "ip link add eth0 type veth peer netns ELSEWHERE; " +
			"ip link add br0 type bridge", []string{"br0", "eth0", "lo"}, true},
		{"a bridge called eth0", "ip link add eth0 type bridge", []string{"eth0", "lo"}, false},
	} {
		host.Netns(t)
		elsewhere := namespace(t)
		host.Run(t, "sh", "-ec", strings.ReplaceAll(test.make, "ELSEWHERE", strconv.Itoa(elsewhere)))
		names, own := interfaces()
		slices.Sort(names)
		if !slices.Equal(names, test.names) || own != test.own {
			t.Errorf("%s: got %q, own: %v", test.doc, names, own)
		}
	}
}

// A tunnel's fallback device has no device below it. One that was moved here has one where it came from.
func TestFallback(t *testing.T) {
	attribute := func(kind uint16, value uint32) []byte {
		b := make([]byte, 8)
		binary.NativeEndian.PutUint16(b, uint16(len(b)))
		binary.NativeEndian.PutUint16(b[2:], kind)
		binary.NativeEndian.PutUint32(b[4:], value)
		return b
	}
	elsewhere := attribute(unix.IFLA_LINK_NETNSID, 0)
	for _, test := range []struct {
		attributes [][]byte
		counts     bool
	}{
		{nil, true},
		{[][]byte{attribute(unix.IFLA_LINK, 0)}, false},
		{[][]byte{attribute(unix.IFLA_LINK, 0), elsewhere}, true},
		{[][]byte{attribute(unix.IFLA_LINK, 3)}, true},
		{[][]byte{attribute(unix.IFLA_LINK, 3), elsewhere}, true},
	} {
		name := attribute(unix.IFLA_IFNAME, 0)
		copy(name[4:], "tun")
		m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWLINK}}
		m.Data = append(make([]byte, unix.SizeofIfInfomsg), slices.Concat(append(test.attributes, name)...)...)
		names, own := listed([]syscall.NetlinkMessage{m})
		if slices.Equal(names, []string{"tun"}) != test.counts || own {
			t.Errorf("%q: got %q, own: %v", test.attributes, names, own)
		}
	}
	if names, _ := listed(nil); names == nil { // in JSON, it is an empty array
		t.Error("no interfaces: got nil")
	}
}

// namespace makes a network namespace that lives as long as the test, and returns the process in it.
func namespace(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("sleep", "1h")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	host.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// Where kubelet's chains are, the network is the node's, whatever it looks like.
func TestThisNetwork(t *testing.T) {
	host.Netns(t)
	c := memory.Container{OwnNetns: detect.No}
	namespace, err := os.Readlink("/proc/thread-self/ns/net")
	host.Check(t, err)
	for _, test := range []struct {
		doc  string
		host detect.Result
		own  bool
	}{
		{"no evidence", detect.Result{}, true},
		{"no chains", detect.Result{Evidence: []detect.Evidence{{Hint: detect.No, Canary: detect.No}}}, true},
		{"not known", detect.Result{Evidence: []detect.Evidence{{Hint: detect.Unknown, Canary: detect.Unknown}}}, true},
		{"a hint", detect.Result{Evidence: []detect.Evidence{{}, {Hint: detect.Yes}}}, false},
		{"a canary", detect.Result{Evidence: []detect.Evidence{{Hint: detect.No, Canary: detect.Yes}}}, false},
	} {
		got := ThisNetwork(c, test.host)
		if got.Own != test.own || got.Process1 != detect.No || got.Namespace != namespace {
			t.Errorf("%s: got %+v", test.doc, got)
		}
	}
}

func TestNetworkString(t *testing.T) {
	many := strings.Fields("a b c d e f g")
	for want, n := range map[string]Network{
		"net:[1] (lo)": {
			Namespace:  "net:[1]",
			Interfaces: []string{"lo"},
			Process1:   detect.Unknown,
		},
		"net:[1] (lo, a), also process 1's": {
			Namespace:  "net:[1]",
			Interfaces: []string{"lo", "a"},
			Process1:   detect.Yes,
		},
		"net:[1] (), not process 1's":     {Namespace: "net:[1]", Process1: detect.No},
		"net:[1] (a, b, c, d, e, f, ...)": {Namespace: "net:[1]", Interfaces: many},
		"net:[1] (a, b, c, d, e, f)":      {Namespace: "net:[1]", Interfaces: many[:6]},
		"net:[1] (lo); " + PodNetwork:     {Namespace: "net:[1]", Interfaces: []string{"lo"}, Own: true},
	} {
		if got := n.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(many) != 7 || many[6] != "g" {
		t.Errorf("the list was changed: %q", many)
	}
}
