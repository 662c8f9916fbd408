// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/netlink"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Answers of a real kernel are kept in testdata/*.txtar, each with the commands that made it:
//
//	-- made-by --   shell commands
//	-- kernel --    uname -r, iptables --version
//	-- question --  nft chain|rules FAMILY TABLE, or legacy FAMILY TABLE
//	-- header --    legacy only: struct ipt_getinfo
//	-- answer --    what the kernel said, in the layout of a 64-bit little-endian machine
//	-- want --      what must be read from it
//
// "go test ./detect -run Capture -update" asks the running kernel again.
var update = flag.Bool("update", false, "ask the kernel again for the answers in testdata")

type capture struct {
	file               string
	sections           []section
	kind, family, name string // of the question
	header, answer     []byte
	seq                uint32
}

// section is a part of such a file. Reading it takes no package, because whoever imports this one would get its module
// too.
type section struct {
	name, text string
}

func parseSections(text string) (all []section) {
	for line := range strings.Lines(text) {
		name, begins := strings.CutPrefix(line, "-- ")
		if begins {
			all = append(all, section{name: strings.TrimSuffix(name, " --\n")})
			continue
		}
		all[len(all)-1].text += line
	}
	return all
}

func formatSections(all []section) string {
	var text strings.Builder
	for _, s := range all {
		fmt.Fprintf(&text, "-- %s --\n%s", s.name, s.text)
	}
	return text.String()
}

func (c capture) section(name string) string {
	for _, s := range c.sections {
		if s.name == name {
			return s.text
		}
	}
	return ""
}

func captures(tb testing.TB) []capture {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no captured answers: %v", err)
	}
	var all []capture
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		c := capture{file: file, sections: parseSections(string(text)), seq: 1}
		question := strings.Fields(c.section("question"))
		words := len(question)
		c.kind = strings.Join(question[:words-2], " ")
		c.family = question[words-2]
		c.name = question[words-1]
		for section, b := range map[string]*[]byte{"header": &c.header, "answer": &c.answer} {
			text := strings.Join(strings.Fields(c.section(section)), "")
			if text == "" {
				continue
			}
			*b, err = hex.DecodeString(text)
			if err != nil {
				tb.Fatalf("%s: %v", file, err)
			}
		}
		all = append(all, c)
	}
	return all
}

// read parses an answer and says in words what is in it.
func (c capture) read(header, answer []byte) (string, error) {
	family := Family(c.family)
	if c.kind == "legacy" {
		info, err := parseInfo(header)
		if err != nil {
			return "", err
		}
		info.size = uint32(len(answer))
		t, err := parseEntries(family, hostAlignment(), info, answer)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("chains %s\nrules %d\n", sortedNames(t), t.rules), nil
	}
	objects := 0
	r := reply{seq: c.seq, kind: nftKind(unix.NFT_MSG_NEWRULE)}
	name := uint16(unix.NFTA_RULE_TABLE)
	if c.kind == "nft chain" {
		r.kind, name = nftKind(unix.NFT_MSG_NEWCHAIN), unix.NFTA_CHAIN_NAME
	}
	err := r.read(answer, func(m netlink.Message) error {
		objects++
		if m.Body[0] != family.nfproto() || string(cString(m.Attributes().Find(name))) != c.name {
			return fmt.Errorf("the answer is about something else: %q", m.Body)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if !r.done {
		return "", fmt.Errorf("the answer has no end")
	}
	if r.errno != 0 {
		return fmt.Sprintf("errno %s\n", unix.ErrnoName(r.errno)), nil
	}
	return fmt.Sprintf("%d found\n", objects), nil
}

func TestCapture(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("captured on a little-endian machine; the other tests build what they read in this machine's order")
	}
	if *update {
		for _, c := range captures(t) {
			recapture(t, c)
		}
	}
	for _, c := range captures(t) {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			if strings.HasPrefix(c.kind, "legacy") && entriesOffset(hostAlignment()) != 40 {
				t.Skip("captured in the layout of a 64-bit machine")
			}
			got, err := c.read(c.header, c.answer)
			if err != nil || got != c.section("want") {
				t.Fatalf("got %q, %v, want %q", got, err, c.section("want"))
			}
			// Cut anywhere, it must not be read as a whole answer.
			for i := range c.answer {
				if got, err := c.read(c.header, c.answer[:i]); err == nil {
					t.Errorf("cut at %d of %d bytes: got %q", i, len(c.answer), got)
				}
			}
		})
	}
}

// recapture makes the host state in a new namespace and asks the question.
func recapture(t *testing.T, c capture) {
	t.Run("update "+filepath.Base(c.file), func(t *testing.T) {
		host.Netns(t)
		host.Run(t, "sh", "-ec", c.section("made-by"))
		sections := map[string]string{
			"kernel": host.Run(t, "sh", "-ec", "uname -rm; iptables-nft --version; iptables-legacy --version"),
		}
		family := Family(c.family)
		if c.kind == "legacy" {
			p := newLegacyProbe(family, forCall)
			defer p.close()
			header := make([]byte, sizeofGetInfo)
			copy(header, c.name)
			if _, err := p.getsockopt(soGetInfo, header); err != nil {
				t.Fatal(err)
			}
			info, err := parseInfo(header)
			if err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, entriesOffset(hostAlignment())+int(info.size))
			copy(answer, c.name)
			binary.NativeEndian.PutUint32(answer[tableNameSize:], info.size)
			if _, err := p.getsockopt(soGetEntries, answer); err != nil {
				t.Fatal(err)
			}
			c.header, c.answer = header, answer[entriesOffset(hostAlignment()):]
		} else {
			p := newNFTSocket(forCall)
			defer p.close()
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			question := netlink.Request(nftKind(unix.NFT_MSG_GETRULE), unix.NLM_F_DUMP, c.seq, family.nfproto(),
				ofTable(c.name))
			if c.kind == "nft chain" {
				question = netlink.Request(nftKind(unix.NFT_MSG_GETCHAIN), 0, c.seq, family.nfproto(),
					netlink.Attributes{}.Text(unix.NFTA_CHAIN_TABLE, mangle).Text(unix.NFTA_CHAIN_NAME, c.name))
			}
			c.answer = nil
			if err := p.exchange(question, func(datagram []byte) (bool, error) {
				c.answer = append(c.answer, datagram...)
				return false, nil
			}); !errors.Is(err, unix.EAGAIN) {
				t.Fatal(err)
			}
		}
		want, err := c.read(c.header, c.answer)
		if err != nil {
			t.Fatal(err)
		}
		sections["header"], sections["answer"], sections["want"] = hexLines(c.header), hexLines(c.answer), want
		for i, old := range c.sections {
			text, asked := sections[old.name]
			if asked {
				c.sections[i].text = text
			}
		}
		if err := os.WriteFile(c.file, []byte(formatSections(c.sections)), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// hexLines writes sixteen bytes a line, in groups of four.
func hexLines(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		line := b[:min(16, len(b))]
		b = b[len(line):]
		for i := 0; i < len(line); i += 4 {
			if i > 0 {
				s.WriteByte(' ')
			}
			s.WriteString(hex.EncodeToString(line[i:min(i+4, len(line))]))
		}
		s.WriteByte('\n')
	}
	return s.String()
}
