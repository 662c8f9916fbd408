// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The host of these situations is nft by hint and by rules, so that a wrapper that decides badly can still be transparent.
const plainHost = `hint nft ip; hint nft ip6; fill nft 3; fill nft 3 ip6`

const asDirectly = "as directly"

// transparency is whether a call through the wrapper is the direct call in all that a caller can notice.
func transparency() []situation {
	var list []situation
	for _, root := range []struct{ group, script string }{{"transparent", plainHost}, {"transparent, read-only root", plainHost + "; read_only"}} {
		for _, calls := range []struct {
			name  string
			calls []call
		}{
			{"calls that succeed", []call{
				{args: []string{"iptables", "--version"}}, {args: []string{"iptables", "-S"}}, {args: []string{"iptables", "-t", "mangle", "-S"}},
				{args: []string{"iptables-save"}}, {args: []string{"iptables-save", "-t", "nat"}}, {args: []string{"ip6tables", "-S"}}, {args: []string{"ip6tables-save"}},
				{args: []string{"iptables", "-A", "INPUT", "-m", "comment", "--comment", "a b\tc \"q\" \xff\xfe ä", "-j", "ACCEPT"}},
			}},
			{"calls that fail", []call{
				{args: []string{"iptables", "-S", "NO-SUCH-CHAIN"}}, {args: []string{"iptables", "-C", "INPUT", "-j", "DROP"}},
				{args: []string{"iptables", "-t", "no-such-table", "-S"}}, {args: []string{"iptables", "--no-such-option"}}, {args: []string{"iptables"}},
				{args: []string{"iptables", "-A", "INPUT", "-m", "no-such-match"}}, {args: []string{"iptables", "-S", ""}}, {args: []string{"iptables", ""}},
				{args: []string{"iptables", "--", "-S"}}, {args: []string{"iptables-restore", "/no/such/file"}},
			}},
			{"rules by standard input", []call{
				{stdin: "*filter\n-A INPUT -s 192.0.2.1 -j DROP\nCOMMIT\n", args: []string{"iptables-restore"}},
				{stdin: "*filter\n-A INPUT -s 2001:db8::1 -j DROP\nCOMMIT\n", args: []string{"ip6tables-restore", "--test"}},
				{stdin: "*filter\nnonsense\nCOMMIT\n", args: []string{"iptables-restore"}},
			}},
			{"argv[0] is another of the names, with or without a path", []call{
				{path: "iptables", args: []string{"ip6tables-save"}}, {path: "ip6tables-restore", args: []string{"./iptables", "-S"}},
				{path: "iptables-save", args: []string{"/no/such/directory/iptables", "-S", "NO-SUCH-CHAIN"}},
			}},
		} {
			list = append(list, situation{group: root.group, name: calls.name, want: asDirectly, run: func(c *container) string {
				c.sh(root.script)
				return c.compare(calls.calls, root.group == "transparent")
			}})
		}
	}
	return append(list,
		situation{group: "transparent", name: "20,000 rules by standard input, in the first call", want: "20000 rules", script: plainHost + `
			(echo '*nat'; seq -f '-A OUTPUT -p tcp --dport %g -j ACCEPT' 20000; echo COMMIT) >rules
			call iptables-restore <rules; echo "$(iptables-nft-save -t nat | grep -c -e '-A OUTPUT') rules"`},
		situation{group: "transparent", name: "standard input that the caller has read a part of", want: "nft", script: plainHost + `
			(echo ignored; echo '*filter'; echo '-A INPUT -s 192.0.2.1 -j ACCEPT'; echo COMMIT) >rules
			(read -r ignored; call iptables-restore --noflush) <rules; where 192.0.2.1`},
		situation{group: "transparent", name: "standard input and output are closed", want: "nft", script: plainHost + `
			call sh -c 'exec iptables -A INPUT -s 192.0.2.1 -j ACCEPT <&- >&-'; where 192.0.2.1`},
		situation{group: "transparent", name: "every exit status", want: asDirectly, run: everyStatus},
		situation{group: "transparent", name: "the process that was called is the program", want: "the same process", run: sameProcess},
		situation{group: "transparent", name: "a signal ends it", want: "the caller sees each of them", run: deathBySignal},
		situation{group: "transparent", name: "SIGTERM at any instant of a first call", want: "it ends by it", run: terminated},
		situation{group: "transparent", name: "its parent dies (PR_SET_PDEATHSIG)", want: "it dies too", run: parentDeath},
	)
}

// call is a name of iptables with its arguments, and what it reads.
type call struct {
	path  string // the name that is called, if argv[0] is another
	stdin string
	args  []string
}

const direct = "/usr/sbin/xtables-nft-multi"

// command makes a call ready, directly or through the wrapper.
func (c call) command(wrapped bool) *exec.Cmd {
	path := direct
	if wrapped {
		path = filepath.Join("/usr/sbin", cmp.Or(c.path, c.args[0]))
	}
	return &exec.Cmd{Path: path, Args: c.args, Env: []string{"PATH=/usr/sbin:/usr/bin"}, Stdin: strings.NewReader(c.stdin)}
}

// outcome is all that the caller learns.
func outcome(cmd *exec.Cmd) string {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.Split(stdout.String(), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "# Generated by") || strings.HasPrefix(line, "# Completed on") // they have the time
	})
	return fmt.Sprintf("%v, stdout %q, stderr %q", cmd.ProcessState, strings.Join(lines, "\n"), stderr.String())
}

// compare makes each call directly and wrapped, the latter as a first call if the names can be laid again.
func (c *container) compare(calls []call, again bool) string {
	var different []string
	for _, call := range calls {
		if again {
			if err := c.lay(); err != nil {
				fail(err)
			}
		}
		want := outcome(call.command(false))
		host := c.sh(`iptables-nft-save | grep -c ^-A`)
		if got := outcome(call.command(true)); got != want {
			different = append(different, strings.Join(call.args, " "))
		} else if strings.HasPrefix(want, "exit status 0") && call.args[0] == "iptables-restore" && host != c.sh(`iptables-nft-save | grep -c ^-A`) {
			different = append(different, strings.Join(call.args, " ")+" (other rules)")
		}
	}
	if len(different) == 0 {
		return asDirectly
	}
	return oneLine("different: " + strings.Join(different, "; "))
}

func everyStatus(c *container) string {
	c.sh(plainHost)
	if err := os.Remove(direct); err != nil {
		fail(err)
	}
	if err := os.WriteFile(direct, []byte("#!/bin/sh\nfor status; do :; done\nexit $status\n"), 0o755); err != nil {
		fail(err)
	}
	var calls []call
	for _, status := range []int{0, 1, 2, 3, 4, 32, 64, 111, 126, 127, 128, 254, 255} {
		calls = append(calls, call{args: []string{"iptables", fmt.Sprint(status)}})
	}
	return c.compare(calls, true)
}

// reading starts iptables-restore through the wrapper and returns when the program behind it waits for standard input.
func (c *container) reading() (running, string) {
	if err := c.lay(); err != nil {
		fail(err)
	}
	return start(call{args: []string{"iptables-restore"}}.command(true))
}

func sameProcess(c *container) string {
	c.sh(plainHost)
	r, wrong := c.reading()
	if wrong != "" {
		return wrong
	}
	defer r.end()
	return "the same process"
}
