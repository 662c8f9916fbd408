// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What select does, and which error it returns where it can do nothing.
func TestSelect(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const nft = "xtables-nft-multi"
	unnamed := without(wrapped(Wrapper), iptables.Commands()...)
	unwrapped := with(unnamed, "iptables -> xtables-nft-multi")
	elsewhere := with(unnamed, "other/", "other/iptables-current -> ../iptables-wrapper",
		"iptables -> other/iptables-current")
	alternatives := with(unnamed, "alternatives/",
		"alternatives/iptables -> ../iptables-current", "iptables -> alternatives/iptables")
	for _, test := range []struct {
		doc     string
		tree    []string
		program string // "": the multi-call program in the directory
		wrong   error
		want    string // in the switch
	}{
		{doc: "from the wrapper", tree: wrapped(Wrapper), want: nft},
		{doc: "one name is wrapped, by alternatives", tree: alternatives, want: nft},
		{doc: "no name leads to the switch", tree: unwrapped, wrong: ErrNotWrapped, want: Wrapper},
		{doc: "a name leads to another switch", tree: elsewhere, wrong: ErrNotWrapped, want: Wrapper},
		{doc: "a switch that is a file", tree: with(without(wrapped(Wrapper), Switch), Switch), wrong: ErrForeign},
		{doc: "a foreign switch", tree: wrapped("/bin/true"), wrong: ErrForeign, want: "/bin/true"},
		{
			doc: "a single program", tree: with(wrapped(Wrapper), "iptables-nft"), program: "iptables-nft",
			wrong: ErrSingle, want: Wrapper,
		},
	} {
		top := t.TempDir()
		grow(t, top, test.tree...)
		d := open(t, top)
		program := nft
		if test.program != "" {
			program = test.program
		}
		err := d.Select(detect.NFT, d.Join(program))
		if got := content(top + "/" + Switch); got != test.want || !errors.Is(err, test.wrong) {
			t.Errorf("%s: got %v, the switch is at %q", test.doc, err, got)
		}
		if strings.Contains(list(t, top), ".new") {
			t.Errorf("%s: left: %s", test.doc, list(t, top))
		}
	}
}

// The record is removed first, whatever the switch is.
func TestReset(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const nft = "xtables-nft-multi"
	for _, test := range []struct {
		doc            string
		tree           []string // nil: there is no directory with a switch
		readOnlyRecord bool
		wrong          error
		want           string
	}{
		{
			doc: "the record cannot be removed", tree: wrapped(nft), readOnlyRecord: true,
			wrong: unix.EROFS, want: Wrapper,
		},
		{doc: "no switch", wrong: ErrNotWrapped},
		{doc: "the wrapper is gone", tree: without(wrapped(nft), Wrapper), wrong: ErrNotWrapped, want: nft},
		{
			doc: "the wrapper is a broken link", tree: with(without(wrapped(nft), Wrapper), Wrapper+" -> gone"),
			wrong: ErrNotWrapped, want: nft,
		},
		{
			doc: "no name leads to the switch", tree: without(wrapped(nft), iptables.Commands()...),
			wrong: ErrNotWrapped, want: nft,
		},
	} {
		top, dev := t.TempDir(), t.TempDir()
		grow(t, top, test.tree...)
		record := inDirectory(t, dev)
		host.Check(t, os.Symlink("nft", pathOf(record)))
		path := pathOf(record)
		if test.readOnlyRecord {
			record = inDirectory(t, readOnly(t, dev))
		}
		var d *Dir
		if test.tree != nil {
			d = open(t, top)
		}
		err := Reset(record, d)
		if got := content(top + "/" + Switch); got != test.want || !errors.Is(err, test.wrong) {
			t.Errorf("%s: got %v, the switch is at %q", test.doc, err, got)
		}
		if test.wrong == nil && err != nil || (content(path) != "") != test.readOnlyRecord {
			t.Errorf("%s: got %v, and %q is recorded", test.doc, err, content(path))
		}
	}
}

// Another process has the lock, and releases it before the third try. Nothing is changed before.
func TestCommandsWait(t *testing.T) {
	top := t.TempDir()
	grow(t, top, wrapped("xtables-legacy-multi")...)
	for _, test := range []struct {
		doc string
		do  func(d *Dir) error
	}{
		{"select", func(d *Dir) error { return d.Select(detect.NFT, top+"/xtables-nft-multi") }},
		{"reset", func(d *Dir) error { return Reset(Record{}, d) }},
	} {
		lock, err := Open(top)
		host.Check(t, err)
		host.Check(t, lock.Lock(0))
		d, err := Open(top)
		host.Check(t, err)
		n := 0
		before := list(t, top)
		d.Step = func(operation, _ string) {
			switch {
			case operation != "lock":
			case list(t, top) != before:
				t.Errorf("%s: a change without the lock", test.doc)
			default:
				n++
				if n == 3 {
					lock.Close()
				}
			}
		}
		host.Check(t, test.do(d))
		if n != 3 || list(t, top) == before {
			t.Errorf("%s: %d tries, and %s", test.doc, n, list(t, top))
		}
		d.Close()
	}
}

// Which switch the commands change: beside the running file, otherwise in /usr/sbin.
func TestSwitched(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	self, err := os.Executable()
	host.Check(t, err)
	program := host.Read(t, self)
	for _, test := range []struct {
		doc   string
		tree  []string // beside the running file
		sbin  bool     // in /usr/sbin is a switch, too
		mode  os.FileMode
		wants string // "": the directory of the running file
	}{
		{doc: "beside", tree: wrapped(Wrapper)[3:], sbin: true, mode: 0o755},
		{doc: "beside, and foreign", tree: []string{"iptables-current -> /bin/true"}, sbin: true, mode: 0o755},
		{doc: "in /usr/sbin", sbin: true, mode: 0o755, wants: "/usr/sbin"},
		{
			doc: "others can write beside", tree: wrapped(Wrapper)[3:], sbin: true, mode: 0o777,
			wants: "users other than root and the caller can write it",
		},
		{
			doc: "nowhere", mode: 0o755,
			wants: ", /usr/sbin, /sbin, /usr/local/sbin, /usr/bin: " +
				"the commands of iptables do not lead to the wrapper's switch",
		},
	} {
		top := t.TempDir()
		grow(t, top, test.tree...)
		host.Check(t, os.WriteFile(top+"/iptables-wrapper", program, 0o755))
		host.Check(t, os.Chmod(top, test.mode))
		_ = os.Remove("/usr/sbin/iptables-current")
		if test.sbin {
			host.Check(t, os.Symlink(Wrapper, "/usr/sbin/iptables-current"))
		}
		got := ask(t, "switched", func(c *exec.Cmd) { c.Path = top + "/iptables-wrapper" })
		if test.wants == "" {
			test.wants = top
		}
		if !strings.HasSuffix(got, test.wants) {
			t.Errorf("%s: got %s", test.doc, got)
		}
	}
}

func printSwitched() {
	d, err := Switched()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Path)
}
