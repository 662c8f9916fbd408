// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The search begins beside the wrapper's file, not beside the link by which it is called, and passes over a directory
// that others can write.
func TestBeside(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	wrapped(t)
	host.Run(t, "sh", "-ec", `
		mkdir -m 1777 /run/tmp; mkdir /run/own
		ln -s /usr/sbin/iptables-wrapper /run/tmp/iptables
		ln -s iptables-wrapper /run/own/iptables
		cp /usr/sbin/iptables-wrapper /run/own/
		cp /usr/sbin/iptables-wrapper /run/tmp/ip6tables
		for d in tmp own; do
			printf '#!/bin/sh\necho of %s\n' $d >/run/$d/xtables-nft-multi; chmod 755 /run/$d/xtables-nft-multi
		done
		chown 1000 /run/tmp/xtables-nft-multi`)
	for path, want := range map[string]string{
		"/run/own/iptables":  "of own\n",
		"/run/tmp/iptables":  "(nf_tables)\n",
		"/run/tmp/ip6tables": "(nf_tables)\n",
	} {
		c := calls(t, path, "--version")
		if !strings.HasSuffix(c.stdout, want) {
			t.Errorf("%s: got %+v", path, c)
		}
	}
}

// The binary was copied over iptables' programs, through the links, in both directories of the machine.
func TestTwoCopies(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	self, err := os.Executable()
	host.Check(t, err)
	host.Run(t, "sh", "-ec", `
		mount -t tmpfs -o mode=755 none /usr/local/sbin
		cp -a /usr/sbin/ip*tables* /usr/sbin/xtables-* /usr/local/sbin/
		for d in /usr/sbin /usr/local/sbin; do
			for b in nft legacy; do cp "$0" $d/xtables-$b-multi; done
			ln -sf xtables-nft-multi $d/iptables
		done`, self)
	for _, path := range []string{"/usr/sbin/iptables", "/usr/local/sbin/iptables"} {
		for _, variable := range []string{"", "nft", "legacy"} {
			c := calls(t, "timeout", "10", "env", Variable+"="+variable, path, "-S")
			if c.status != 126 || !strings.Contains(c.stderr, "it is the running program itself") ||
				strings.Count(c.stderr, "\n") != 2 {
				t.Errorf("%s, %q: got %+v", path, variable, c)
			}
		}
	}
}

// The binary was copied over the six names: the first call lays the switch, as install does.
func TestCopies(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	self, err := os.Executable()
	host.Check(t, err)
	host.Run(t, "sh", "-ec", dockerInLegacy+`
		cd /usr/sbin
		rm iptables; cp "$0" iptables
		for n in iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
			ln -sf iptables $n
		done`, self)
	c := calls(t, "ip6tables-save", "--version")
	if c.backend() != "legacy" || c.stored != storedLegacy || c.stderr != "" {
		t.Errorf("got %+v", c)
	}
	for _, name := range host.Names {
		if end := host.End(name); end != "/usr/sbin/"+storedLegacy {
			t.Errorf("%s leads to %s", name, end)
		}
	}
	if !bytes.Equal(host.Read(t, "/usr/sbin/"+link.Wrapper), host.Read(t, self)) {
		t.Error("iptables-wrapper is another file")
	}
}
