// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// lay makes the six commands in /usr/sbin lead to the switch, and the test binary the wrapper.
func lay(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	host.Check(t, err)
	host.Check(t, host.LayOut(self))
}

const (
	docker   = "iptables-legacy -N DOCKER-USER; "
	record   = `ln -s nft /dev/iptables-backend-$(readlink /proc/self/ns/net | tr -dc 0-9); `
	stored   = "ln -sfT xtables-nft-multi iptables-current; "
	readOnly = "mount -o remount,bind,ro /usr/sbin; "

	runsNFT    = "the commands in /usr/sbin run nft\n"
	runsLegacy = "the commands in /usr/sbin run legacy\n"

	variableHelps = "iptables-wrapper: try: set IPTABLES_WRAPPER_BACKEND to nft or legacy"
	imageHelps    = "iptables-wrapper: try: reset the switch where it comes from: RUN iptables-wrapper reset"
	installHelps  = "iptables-wrapper: try: iptables-wrapper install, "
	guess         = "iptables-wrapper: not certain: nft: no chain or table of a known program was found, and no rule\n"
)

var storing = []struct {
	doc, host string // the container, in which the wrapper is installed
	call      string
	status    int
	stdout    string
	stderr    string // what it contains
	content   string // of the switch; "-": there is none
	recorded  string // in the end; "-": nothing, although select stores a backend
}{
	{doc: "a guess without a program", host: "rm *-nft*; ", call: "select",
		stdout: "the commands in /usr/sbin run legacy\n", stderr: guess, content: "xtables-legacy-multi"},
	{doc: "a network of its own, by name", host: "set -- unshare --net; ", call: "select legacy",
		stdout: runsLegacy, content: "xtables-legacy-multi", recorded: "-"},
	{doc: "the record cannot be made", host: record + "mount -o remount,bind,ro /dev; ", call: "select legacy",
		stdout: runsLegacy, content: "xtables-legacy-multi", recorded: "nft",
		stderr: "iptables-wrapper: legacy is stored, but not recorded: unlink /dev/iptables-backend-"},
	{doc: "nothing can be asked, strict", host: "set -- setpriv --bounding-set=-net_admin; ", call: "select --strict",
		status: 1, stderr: "operation not permitted"},
	{doc: "others can write the system's directory", host: "chmod 777 /usr/sbin; chown 1000 /usr/sbin; ",
		call: "select nft", stdout: runsNFT, content: "xtables-nft-multi"},
	{doc: "reset, others can write the system's directory", host: record + stored + "chmod 777 /usr/sbin; ",
		call: "reset", stdout: "the next call in /usr/sbin decides again\n"},
	{doc: "reset, a command bypasses the switch", host: record + stored + "ln -sf iptables-legacy iptables; ",
		call: "reset", status: 1, stderr: installHelps},
	{doc: "reset, every command bypasses the switch", host: record + stored +
		"for c in iptables ip6tables; do for e in '' -save -restore; do ln -sf $c-legacy$e $c$e; done; done; ",
		call: "reset", status: 1, stderr: installHelps},
	{doc: "an immutable directory", host: "set -- setpriv --bounding-set=-dac_override,-fowner; chmod 555 .; " +
		"chown 1000 .; ", call: "select nft", status: 1, stderr: "iptables-wrapper: try: run as root"},
	{doc: "reset, the record cannot be removed", host: record + "mount -o remount,bind,ro /dev; ", call: "reset",
		status: 1, stderr: "iptables-wrapper: try: ", recorded: "nft"},
	{doc: "reset, another user", host: record + stored + "set -- setpriv --reuid=1000; ", call: "reset", status: 1,
		stderr: "iptables-wrapper: try: run as root", content: "xtables-nft-multi", recorded: "nft"},
}

// What select and reset print, and what is stored and recorded then. Status 0 means that the next call runs it.
func TestStoring(t *testing.T) {
	for _, test := range storing {
		t.Run(test.doc, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			lay(t)
			cmd := exec.Command("sh", "-ec", test.host+`exec "$@" /usr/sbin/iptables-wrapper `+test.call)
			cmd.Dir = "/usr/sbin"
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			status := cmd.ProcessState.ExitCode()
			says := strings.Contains(stderr.String(), test.stderr)
			if status != test.status || stdout.String() != test.stdout || !says {
				t.Errorf("status %d, stdout %q, stderr %q", status, stdout.String(), stderr.String())
			}
			lines := strings.Count(stderr.String(), "\n")
			if status == 0 && lines != min(1, len(test.stderr)) || status != 0 && lines != 2 {
				t.Errorf("%d lines on stderr: %q", lines, stderr.String())
			}
			content, err := os.Readlink("/usr/sbin/iptables-current")
			want := test.content
			if want == "" {
				want = "iptables-wrapper"
			}
			if err == nil && content != want || err != nil && want != "-" {
				t.Errorf("the switch contains %q, %v", content, err)
			}
			record, err := link.OpenRecord()
			host.Check(t, err)
			_, backend, selected := strings.Cut(strings.TrimSpace(test.stdout), " run ")
			recorded := cmp.Or(test.recorded, backend)
			if got := string(record.Read()); got != strings.TrimPrefix(recorded, "-") {
				t.Errorf("recorded: %q", got)
			}
			if selected {
				version := host.Run(t, "/usr/sbin/iptables", "--version")
				if !strings.Contains(version, map[string]string{"nft": "(nf_tables)", "legacy": "(legacy)"}[backend]) {
					t.Errorf("the next call runs %s", version)
				}
			}
		})
	}
}

// Want of descriptors stores no guess.
func TestFewDescriptors(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Run(t, "iptables-legacy", "-N", "DOCKER-USER")
	refused := 0
	for limit := 5; limit < 10; limit++ {
		lay(t)
		cmd := exec.Command("sh", "-ec", "ulimit -n $0; exec iptables-wrapper select", strconv.Itoa(limit))
		output, err := cmd.CombinedOutput()
		content, _ := os.Readlink("/usr/sbin/iptables-current")
		switch {
		case err == nil && string(output) == runsLegacy && content == "xtables-legacy-multi":
		case cmd.ProcessState.ExitCode() == 1 && content == "iptables-wrapper":
			refused += bytes.Count(output, []byte("too many open files\n"))
		default:
			t.Errorf("%d descriptors: %v, %q, %s", limit, err, content, output)
		}
	}
	if refused == 0 {
		t.Error("none was refused")
	}
}
