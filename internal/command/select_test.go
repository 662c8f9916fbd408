// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// lay makes the six names in /usr/sbin lead to the switch, and the test binary the wrapper.
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
	// anyone holds the lock that any user can take.
	anyone = "setpriv --reuid=1000 --clear-groups flock /usr/sbin sleep 100 >/dev/null 2>&1 & " +
		"while flock --nonblock /usr/sbin true; do sleep 0.01; done; "

	runsNFT    = "the commands in /usr/sbin run nft\n"
	runsLegacy = "the commands in /usr/sbin run legacy\n"

	variableHelps = "iptables-wrapper: try: set IPTABLES_WRAPPER_BACKEND to nft or legacy"
	imageHelps    = "iptables-wrapper: try: reset where the switch is from: RUN iptables-wrapper reset in the image"
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
	{doc: "certain", host: docker, call: "select", stdout: runsLegacy, content: "xtables-legacy-multi"},
	{doc: "strict, certain", host: docker, call: "select --strict", stdout: runsLegacy,
		content: "xtables-legacy-multi"},
	{doc: "a guess", call: "select", stdout: runsNFT, stderr: guess, content: "xtables-nft-multi"},
	{doc: "strict, a guess", call: "select --strict", status: 3, stderr: "iptables-wrapper: select: not certain, " +
		"nothing is stored: nft: no chain or table of a known program was found, and no rule\niptables-wrapper: try: "},
	{doc: "what is recorded is not asked", host: record + docker, call: "select", stdout: runsLegacy,
		content: "xtables-legacy-multi"},
	{doc: "by name", host: docker, call: "select nft", stdout: runsNFT, content: "xtables-nft-multi"},
	{doc: "over the other one", host: stored, call: "select legacy", stdout: runsLegacy,
		content: "xtables-legacy-multi"},
	{doc: "the variable is not read", host: "export IPTABLES_WRAPPER_BACKEND=both; " + docker, call: "select",
		stdout: runsLegacy, content: "xtables-legacy-multi"},
	{doc: "a guess without a program", host: "rm *-nft*; ", call: "select", stdout: runsLegacy,
		stderr: guess, content: "xtables-legacy-multi"},
	{doc: "no program", host: docker + "rm *-legacy*; ", call: "select", status: 1, stderr: "iptables-wrapper: " +
		"select legacy: no such program: iptables-legacy or xtables-legacy-multi\niptables-wrapper: try: install "},
	{doc: "single programs", host: "rm iptables-nft; mv xtables-nft-multi iptables-nft; ", call: "select nft",
		status: 1, stderr: "it is not the program that implements all six commands\n" +
			"iptables-wrapper: try: make it a symlink to xtables-nft-multi"},
	{doc: "a name bypasses the switch", host: "ln -sf xtables-nft-multi ip6tables; ", call: "select legacy",
		status: 1, stderr: "\"/usr/sbin/ip6tables\": the commands of iptables do not lead to the wrapper"},
	{doc: "read-only", host: readOnly, call: "select", status: 1, stderr: variableHelps},
	{doc: "read-only, by name", host: readOnly, call: "select nft", status: 1, stderr: variableHelps},
	{doc: "read-only, stored before", host: stored + readOnly, call: "select nft", stdout: runsNFT,
		content: "xtables-nft-multi"},
	{doc: "read-only, the other one is stored", host: stored + readOnly, call: "select legacy", status: 1,
		stderr: imageHelps, content: "xtables-nft-multi"},
	{doc: "the lock is held", host: anyone, call: "select legacy", stdout: runsLegacy,
		content: "xtables-legacy-multi"},
	{doc: "a network of its own", host: "set -- unshare --net; ", call: "select", status: 1,
		stderr: "this is not known to be the network namespace of process 1\n" +
			"iptables-wrapper: try: iptables-wrapper select nft or"},
	{doc: "a network of its own, by name", host: "set -- unshare --net; ", call: "select legacy",
		stdout: runsLegacy, content: "xtables-legacy-multi", recorded: "-"},
	{doc: "the record cannot be made", host: record + "mount -o remount,bind,ro /dev; ", call: "select legacy",
		stdout: runsLegacy, content: "xtables-legacy-multi", recorded: "nft",
		stderr: "iptables-wrapper: legacy is stored, but not recorded: unlink /dev/iptables-backend-"},
	{doc: "nothing can be asked", host: "set -- setpriv --bounding-set=-net_admin; ", call: "select", status: 1,
		stderr: "nothing is stored, because the kernel did not answer: ask for nf_tables: operation not permitted"},
	{doc: "nothing can be asked, strict", host: "set -- setpriv --bounding-set=-net_admin; ", call: "select --strict",
		status: 1, stderr: "operation not permitted"},
	{doc: "nothing can be asked, by name", host: "set -- setpriv --bounding-set=-net_admin; ", call: "select nft",
		stdout: runsNFT, content: "xtables-nft-multi"},
	{doc: "another user", host: "set -- setpriv --reuid=1000; ", call: "select nft", status: 1,
		stderr: "permission denied\niptables-wrapper: try: run as root"},
	{doc: "nothing is wrapped", host: "rm iptables-current; ", call: "select nft", status: 1, stderr: installHelps,
		content: "-"},
	{doc: "no name leads to the switch", host: "rm iptables ip6tables iptables-* ip6tables-*; " +
		"ln -s /bin/true iptables; cp /proc/1/exe iptables-wrapper; " +
		"ln -s iptables-wrapper iptables-current; ", call: "select nft", status: 1,
		stderr: installHelps},
	{doc: "a foreign switch", host: "ln -sfT /bin/true iptables-current; ", call: "select nft", status: 1,
		stderr:  "it belongs neither to iptables nor to iptables-wrapper\niptables-wrapper: try: ",
		content: "/bin/true"},
	{doc: "others can write the directory", host: "chmod 777 /usr/sbin; ", call: "select nft", status: 1,
		stderr: "users other than root and the caller can write it\niptables-wrapper: try: "},

	{doc: "reset", host: stored + record, call: "reset", stdout: "the next call in /usr/sbin decides again\n"},
	{doc: "reset, nothing is kept", call: "reset", stdout: "the next call in /usr/sbin decides again\n"},
	{doc: "reset, read-only", host: stored + record + readOnly, call: "reset", status: 1, stderr: imageHelps,
		content: "xtables-nft-multi"},
	{doc: "reset, read-only, only recorded", host: record + readOnly, call: "reset",
		stdout: "the next call in /usr/sbin decides again\n"},
	{doc: "reset, the lock is held", host: stored + record + anyone, call: "reset",
		stdout: "the next call in /usr/sbin decides again\n"},
	{doc: "reset, nothing is wrapped", host: record + "rm iptables-current; ", call: "reset", status: 1,
		stderr: installHelps, content: "-"},
	{doc: "reset, others can write the directory", host: record + stored + "chmod 777 /usr/sbin; ", call: "reset",
		status: 1, stderr: "users other than root and the caller can write it\niptables-wrapper: try: ",
		content: "xtables-nft-multi"},
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

// The switch beside the wrapper's file comes first, and that of /usr/sbin is the one where there is none.
func TestWhichSwitch(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	lay(t)
	host.Run(t, "sh", "-ec", "mkdir /run/own; cd /usr/sbin; cp -a iptables-wrapper iptables-current iptables /run/own/")
	for _, step := range []struct{ do, want string }{
		{"/run/own/iptables-wrapper select legacy", "the commands in /run/own run legacy\n"},
		{"/run/own/iptables-wrapper reset", "the next call in /run/own decides again\n"},
		{"rm /run/own/iptables-current; /run/own/iptables-wrapper select nft", runsNFT},
	} {
		if got := host.Run(t, "sh", "-ec", step.do); got != step.want {
			t.Errorf("%s: got %q", step.do, got)
		}
	}
	end, err := filepath.EvalSymlinks("/usr/sbin/iptables")
	if end != "/usr/sbin/xtables-nft-multi" || err != nil {
		t.Errorf("got %q, %v", end, err)
	}
}
