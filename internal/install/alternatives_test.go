// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const tool = "/usr/bin/update-alternatives"

// postinst does what Debian's package of iptables does whenever it is configured.
const postinst = `
	for f in iptables ip6tables; do
		for m in legacy:10 nft:20; do
			update-alternatives --quiet --install /usr/sbin/$f $f /usr/sbin/$f-${m%:*} ${m#*:} \
				--slave /usr/sbin/$f-restore $f-restore /usr/sbin/$f-${m%:*}-restore \
				--slave /usr/sbin/$f-save $f-save /usr/sbin/$f-${m%:*}-save
		done
	done
`

// v3 is what the README of iptables-wrappers v3 has people do.
const v3 = `
	cp /bin/true /usr/sbin/iptables-wrapper
	for f in iptables ip6tables; do
		update-alternatives --quiet --install /usr/sbin/$f $f /usr/sbin/iptables-wrapper 100 \
			--slave /usr/sbin/$f-restore $f-restore /usr/sbin/iptables-wrapper \
			--slave /usr/sbin/$f-save $f-save /usr/sbin/iptables-wrapper
	done
`

// fresh makes the commands what they are after the package is installed.
const fresh = `
	update-alternatives --quiet --remove-all iptables
	update-alternatives --quiet --remove-all ip6tables
	rm -f /usr/sbin/iptables-wrapper /usr/sbin/iptables-current
` + postinst

func needsTool(t *testing.T) {
	t.Helper()
	_, err := os.Stat(tool)
	if err != nil {
		host.Cannot(t, "run dpkg's update-alternatives: %v", err)
	}
}

func TestDebiansAlternatives(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	needsTool(t)
	data := []string{"/usr/sbin", "/etc/alternatives", "/var/lib/dpkg/alternatives"}
	for _, test := range []struct {
		doc, before string
		force       bool
	}{
		{doc: "as the package leaves it"},
		{doc: "manual mode", before: "for f in iptables ip6tables; do " +
			"update-alternatives --quiet --set $f /usr/sbin/$f-legacy; done"},
		{doc: "v3", before: v3},
		{doc: "v3 has selected", before: v3 + "for f in iptables ip6tables; do " +
			"update-alternatives --quiet --set $f /usr/sbin/$f-legacy; done"},
		{doc: "plain links", before: "cd /usr/sbin; for n in iptables iptables-save ip6tables; do " +
			"ln -sf xtables-nft-multi $n; done"},
		{doc: "broken", before: "rm /etc/alternatives/iptables-save; ln -sf gone /etc/alternatives/ip6tables"},
		{doc: "somebody offers more", before: "update-alternatives --quiet " +
			"--install /usr/sbin/iptables iptables /usr/sbin/xtables-nft-multi 500"},
		{doc: "a file", before: "rm /usr/sbin/iptables; echo mine >/usr/sbin/iptables", force: true},
	} {
		t.Run(test.doc, func(t *testing.T) {
			host.Run(t, "sh", "-ec", fresh+test.before)
			changes, remarks := installs(t, "", test.force)
			leadTo(t, "/usr/sbin", "iptables-wrapper")
			const line = "ip6tables, ip6tables-save, ip6tables-restore -> /usr/sbin/iptables-current, by " + tool
			if !slices.Contains(changes, line) || len(remarks) != 0 {
				t.Errorf("got %q, %q", changes, remarks)
			}
			changesNothing(t, data...)

			// An operation on the package leaves the wrapper and what it stored where they are.
			host.Check(t, os.Remove("/usr/sbin/iptables-current"))
			host.Check(t, os.Symlink("xtables-legacy-multi", "/usr/sbin/iptables-current"))
			host.Run(t, "sh", "-ec", postinst)
			leadTo(t, "/usr/sbin", "xtables-legacy-multi")

			// Another installation makes the next call decide again.
			changes, _ = installs(t, "", false)
			if !slices.Equal(changes, []string{"/usr/sbin/iptables-current -> iptables-wrapper"}) {
				t.Errorf("installed over what is stored: got %q", changes)
			}
			leadTo(t, "/usr/sbin", "iptables-wrapper")
			changesNothing(t, data...)
		})
	}
}

// openSUSE has one group with five followers, and dpkg's tool. Fedora has the same group.
func TestOneGroup(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	needsTool(t)
	const post = `
		set --
		for n in iptables-restore iptables-save ip6tables ip6tables-restore ip6tables-save; do
			set -- "$@" --slave /usr/sbin/$n $n /usr/sbin/xtables-nft-multi
		done
		update-alternatives --quiet --install /usr/sbin/iptables iptables /usr/sbin/xtables-nft-multi 2 "$@"
	`
	host.Run(t, "sh", "-ec",
		"update-alternatives --remove-all iptables; update-alternatives --remove-all ip6tables;"+post)
	changes, remarks := installs(t, "/usr/sbin", false)
	if len(changes) != 3 || len(remarks) != 0 || !strings.HasSuffix(changes[2], ", by "+tool) {
		t.Errorf("got %q, %q", changes, remarks)
	}
	host.Run(t, "sh", "-ec", post)
	leadTo(t, "/usr/sbin", "iptables-wrapper")
	changesNothing(t, "/usr/sbin", "/etc/alternatives", "/var/lib/dpkg/alternatives")
	group := host.Run(t, "update-alternatives", "--query", "iptables")
	if !strings.Contains(group, "Value: /usr/sbin/iptables-current\n") {
		t.Errorf("got %s", group)
	}
}

// AWS' base image has both forms at once: a group with all commands, and one of ip6tables.
func TestBothForms(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const group = "auto\n/usr/sbin/iptables\nip6tables\n/usr/sbin/ip6tables\n\n/usr/sbin/iptables-nft\n10\n"
	host.Check(t, os.WriteFile("/var/lib/dpkg/alternatives/iptables", []byte(group), 0o644))
	d, err := link.Open("/usr/sbin")
	host.Check(t, err)
	defer d.Close()
	w := work{Dir: d}
	got := w.groups()
	if len(got) != 2 || !slices.Equal(got[0], exec.Commands()) || !slices.Equal(got[1], exec.Commands()[3:]) {
		t.Errorf("got %q", got)
	}
}

// Another directory has plain links, whatever alternatives manage.
func TestNotTheManagedDirectory(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	directory := image(t)
	host.Check(t, os.Remove(directory+"/iptables"))
	host.Check(t, os.Symlink("/etc/alternatives/iptables", directory+"/iptables"))
	before := state(t, "/usr/sbin", "/etc/alternatives", "/var/lib/dpkg/alternatives")
	installs(t, directory, false)
	content, err := os.Readlink(directory + "/iptables")
	if err != nil || content != "iptables-current" {
		t.Errorf("got %q, %v", content, err)
	}
	if after := state(t, "/usr/sbin", "/etc/alternatives", "/var/lib/dpkg/alternatives"); after != before {
		t.Errorf("got %s\nwant %s", after, before)
	}
}

// Where the tool cannot do it, the commands become plain links, and a remark says so.
func TestToolFails(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	needsTool(t)
	host.Check(t, unix.Mount("", "/var/lib/dpkg", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	for range 2 {
		_, remarks := installs(t, "/usr/sbin", false)
		if len(remarks) != 2 || !strings.Contains(remarks[0], tool+" --install: exit status 2: ") {
			t.Errorf("got %q", remarks)
		}
		leadTo(t, "/usr/sbin", "iptables-wrapper")
	}
	changesNothing(t, "/usr/sbin")
	host.Check(t, unix.Mount("", "/var/lib/dpkg", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	host.Check(t, os.RemoveAll("/var/lib/dpkg/alternatives")) // as in an image without the data base
	changesNothing(t, "/usr/sbin")
	_, remarks := installs(t, "/usr/sbin", false)
	if len(remarks) != 0 {
		t.Errorf("got %q", remarks)
	}
}

// A group whose commands are links to the tool's, and no data base: the links become plain ones.
func TestNoDataBase(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Check(t, os.RemoveAll("/var/lib/dpkg/alternatives"))
	_, remarks := installs(t, "/usr/sbin", false)
	content, err := os.Readlink("/usr/sbin/ip6tables-restore")
	if err != nil || content != "iptables-current" || len(remarks) != 0 {
		t.Errorf("got %q, %v, %q", content, err, remarks)
	}
	leadTo(t, "/usr/sbin", "iptables-wrapper")
}

// A tool that another user can change is not started.
func TestExposedTool(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	needsTool(t)
	mine := t.TempDir() + "/tool"
	host.Check(t, os.WriteFile(mine, []byte("#!/bin/sh\ntouch /run/started\n"), 0o755))
	host.Check(t, os.Chown(mine, 1, 1))
	host.Check(t, unix.Mount(mine, tool, "", unix.MS_BIND, ""))
	_, remarks := installs(t, "/usr/sbin", false)
	if len(remarks) != 2 || !strings.Contains(remarks[0], "not started: ") {
		t.Errorf("got %q", remarks)
	}
	_, err := os.Stat("/run/started")
	if !os.IsNotExist(err) {
		t.Errorf("it was started: %v", err)
	}
	leadTo(t, "/usr/sbin", "iptables-wrapper")
}

func TestInstallArgs(t *testing.T) {
	const want = "--install /usr/sbin/ip6tables ip6tables /usr/sbin/iptables-current 100 " +
		"--slave /usr/sbin/ip6tables-save ip6tables-save /usr/sbin/iptables-current " +
		"--slave /usr/sbin/ip6tables-restore ip6tables-restore /usr/sbin/iptables-current"
	got := strings.Join(installArgs([]string{"ip6tables", "ip6tables-save", "ip6tables-restore"}), " ")
	if got != want {
		t.Errorf("got %s", got)
	}
}
