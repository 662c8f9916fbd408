// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What Linux 6.18 has replied to question 1, on a little-endian machine. An error ends with the question.
const (
	has = "30000000000b020001000000014b00000200000009000100534e41540000000008000200000000000800030000000001"

	revisions = "5c0000000200000001000000014b0000a3ffffff48000000000b01000100000000000000020000002400010" +
		"06f776e657200000000000000000000000000000000000000000000000000000008000200000000000800030000000000"
	lacks = "5c0000000200000001000000014b0000feffffff48000000000b01000100000000000000020000002400010" +
		"069636d703600000000000000000000000000000000000000000000000000000008000200000000000800030000000000"
	noSubsystem = "5c0000000200000001000000014b0000eaffffff48000000004d01000100000000000000020000002400010" +
		"069636d703600000000000000000000000000000000000000000000000000000008000200000000000800030000000000"
	denied = "5c000000020000000100000007020000ffffffff48000000000b01000100000000000000020000002400010" +
		"0534e41540000000000000000000000000000000000000000000000000000000008000200000000000800030000000001"
)

func TestAnswer(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the replies were recorded on a little-endian machine")
	}
	for _, test := range []struct {
		doc, reply string
		want       detect.Answer
		err        error
	}{
		{"the kernel has it", has, detect.Yes, nil},
		{"other revisions", revisions, detect.Yes, nil},
		{"there is none", lacks, detect.No, nil},
		{"no such subsystem", noSubsystem, detect.Unknown, errNoCompat},
		{"not permitted", denied, detect.Unknown, unix.EPERM},
	} {
		b, err := hex.DecodeString(test.reply)
		host.Check(t, err)
		got, err := decode(b)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: got %v, %v, want %v, %v", test.doc, got, err, test.want, test.err)
		}
		// Cut anywhere, it is no answer.
		for size := range b {
			got, err := decode(b[:size])
			if got != detect.Unknown || err == nil {
				t.Errorf("%s, cut at %d of %d bytes: got %v, %v", test.doc, size, len(b), got, err)
			}
		}
	}
}

// decode reads a datagram.
func decode(b []byte) (detect.Answer, error) {
	m, _, err := netlink.Next(b)
	if err != nil {
		return detect.Unknown, err
	}
	return answer(m)
}

// FuzzAnswer feeds the decoder anything as a reply. It must know nothing, or give a reason for that.
func FuzzAnswer(f *testing.F) {
	for _, reply := range []string{has, revisions, lacks, noSubsystem, denied} {
		b, err := hex.DecodeString(reply)
		host.Check(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decode(b)
		if known := got == detect.Yes || got == detect.No; known != (err == nil) || !known && got != detect.Unknown {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// The running kernel says of each extension what its own lists say.
func TestAsk(t *testing.T) {
	host.Netns(t)
	for _, command := range []string{"iptables-legacy", "ip6tables-legacy"} {
		_ = exec.Command(command, "-S").Run() // so that there are lists, if the kernel can have them
	}
	c := newCompat()
	defer c.close()
	for which, file := range lists {
		registered := func() []string {
			text, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err != nil {
				host.Cannot(t, "compare the kernel's answers with its lists: %v", err)
			}
			return strings.Fields(string(text))
		}
		// Those of one family alone, matches that are no targets, and what no kernel has.
		names := append(registered(), "icmp", "icmp6", "conntrack", "MARK", "REJECT", "nosuch", "conn")
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			got, err := c.ask(Support{Family: which.family, Extension: Extension{Name: name, Target: which.targets}})
			want := slices.Contains(registered(), name) // now: the kernel has loaded what there is
			if err != nil || (got == detect.Yes) != want {
				t.Errorf("%s of %v: got %v, %v, and listed is %v", name, which, got, err, want)
			}
		}
	}
}
