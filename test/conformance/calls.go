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

// The host of these situations is nft by hint and by rules, so that a wrapper that decides badly can still be
// transparent.
const plainHost = `hint nft ip; hint nft ip6; fill nft 3; fill nft 3 ip6`

const asDirectly = "as directly"

// input is whether the program reads the standard input of the call.
func input() []situation {
	const group = "standard input"
	return []situation{
		compared(group, "rules", []call{
			{stdin: "*filter\n-A INPUT -s 192.0.2.1 -j DROP\nCOMMIT\n", args: []string{"iptables-restore"}},
			{
				stdin: "*filter\n-A INPUT -s 2001:db8::1 -j DROP\nCOMMIT\n",
				args:  []string{"ip6tables-restore", "--test"},
			},
			{stdin: "*filter\nnonsense\nCOMMIT\n", args: []string{"iptables-restore"}},
		}, false),
		{group: group, name: "20,000 rules in the first call", want: "20000 rules", script: plainHost + `
			(echo '*nat'; seq -f '-A OUTPUT -p tcp --dport %g -j ACCEPT' 20000; echo COMMIT) >rules
			call iptables-restore <rules; echo "$(iptables-nft-save -t nat | grep -c -e '-A OUTPUT') rules"`},
		{group: group, name: "the caller has read a part of it", want: "nft", script: plainHost + `
			(echo ignored; echo '*filter'; echo '-A INPUT -s 192.0.2.1 -j ACCEPT'; echo COMMIT) >rules
			(read -r ignored; call iptables-restore --noflush) <rules; where 192.0.2.1`},
		{group: group, name: "it and standard output are closed", want: "nft", script: plainHost + `
			call sh -c 'exec iptables -A INPUT -s 192.0.2.1 -j ACCEPT <&- >&-'; where 192.0.2.1`},
		{group: group, name: "a client replaces the whole table, then adds to it", want: "legacy, legacy", script: `
			fill legacy 5; printf '*filter\n-A INPUT -s 192.0.2.7 -j ACCEPT\nCOMMIT\n' | call iptables-restore
			where 192.0.2.7; client`},
	}
}

// transparency is whether a call through the wrapper prints what the direct call prints, and ends as it does.
func transparency() []situation {
	var list []situation
	for _, readOnly := range []bool{false, true} {
		group := "transparent"
		if readOnly {
			group += ", read-only root"
		}
		list = append(list,
			compared(group, "calls that succeed", []call{
				{args: []string{"iptables", "--version"}}, {args: []string{"iptables", "-S"}},
				{args: []string{"iptables", "-t", "mangle", "-S"}},
				{args: []string{"iptables-save"}}, {args: []string{"iptables-save", "-t", "nat"}},
				{args: []string{"ip6tables", "-S"}}, {args: []string{"ip6tables-save"}},
				{
					args: []string{"iptables", "-A", "INPUT", "-m", "comment", "--comment", "a b\tc \"q\" \xff\xfe ä",
						"-j", "ACCEPT"},
				},
			}, readOnly),
			compared(group, "calls that fail", []call{
				{args: []string{"iptables", "-S", "NO-SUCH-CHAIN"}},
				{args: []string{"iptables", "-C", "INPUT", "-j", "DROP"}},
				{args: []string{"iptables", "-t", "no-such-table", "-S"}},
				{args: []string{"iptables", "--no-such-option"}}, {args: []string{"iptables"}},
				{args: []string{"iptables", "-A", "INPUT", "-m", "no-such-match"}},
				{args: []string{"iptables", "-S", ""}}, {args: []string{"iptables", ""}},
				{args: []string{"iptables", "--", "-S"}}, {args: []string{"iptables-restore", "/no/such/file"}},
			}, readOnly),
			compared(group, "argv[0] is another of the names, with or without a path", []call{
				{path: "iptables", args: []string{"ip6tables-save"}},
				{path: "ip6tables-restore", args: []string{"./iptables", "-S"}},
				{path: "iptables-save", args: []string{"/no/such/directory/iptables", "-S", "NO-SUCH-CHAIN"}},
			}, readOnly),
			situation{
				group: group,
				name:  "every exit status",
				want:  asDirectly,
				run:   func(c *container) string { return everyStatus(c, readOnly) },
			})
	}
	return list
}

func compared(group, name string, calls []call, readOnly bool) situation {
	return situation{group: group, name: name, want: asDirectly, run: func(c *container) string {
		c.plain(readOnly)
		return c.compare(calls, !readOnly)
	}}
}

func (c *container) plain(readOnly bool) {
	c.sh(plainHost)
	if readOnly {
		c.sh("read_only")
	}
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
	return &exec.Cmd{
		Path:  path,
		Args:  c.args,
		Env:   []string{"PATH=/usr/sbin:/usr/bin"},
		Stdin: strings.NewReader(c.stdin),
	}
}

// outcome is all that the caller learns.
func outcome(cmd *exec.Cmd) (printed, errors string) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); !ended(err) {
		return err.Error(), ""
	}
	lines := slices.DeleteFunc(strings.Split(stdout.String(), "\n"), func(line string) bool {
		// they have the time
		return strings.HasPrefix(line, "# Generated by") || strings.HasPrefix(line, "# Completed on")
	})
	return fmt.Sprintf("%v, stdout %q", cmd.ProcessState, strings.Join(lines, "\n")), stderr.String()
}

func ended(err error) bool {
	var exit *exec.ExitError
	return err == nil || errors.As(err, &exit)
}

// compare makes each call directly and wrapped, the latter as a first call if the names can be laid again. What is said
// before the program's own message on standard error is another property.
func (c *container) compare(calls []call, again bool) string {
	var different []string
	for _, call := range calls {
		if again {
			if err := c.lay(); err != nil {
				fail(err)
			}
		}
		want, wantErr := outcome(call.command(false))
		restores := call.args[0] == "iptables-restore"
		rules := ""
		if restores {
			rules = c.sh(`iptables-nft-save | grep -c ^-A`)
		}
		got, gotErr := outcome(call.command(true))
		before, same := strings.CutSuffix(gotErr, wantErr)
		c.noticed(before)
		if got != want || !same {
			different = append(different, strings.Join(call.args, " "))
		} else if strings.HasPrefix(want, "exit status 0") && restores &&
			rules != c.sh(`iptables-nft-save | grep -c ^-A`) {
			different = append(different, strings.Join(call.args, " ")+" (other rules)")
		}
	}
	if len(different) == 0 {
		return asDirectly
	}
	return oneLine("different: " + strings.Join(different, "; "))
}

// noticed is what was seen besides.
func (c *container) noticed(text string) {
	if line, _, _ := strings.Cut(text, "\n"); line != "" {
		fmt.Fprintln(&c.besides, line)
	}
}

func everyStatus(c *container, readOnly bool) string {
	c.sh(plainHost)
	// Only a call whose first argument is a number ends with that.
	program := "#!/bin/sh\nfor status; do :; done\ncase $status in *[!0-9]*|'') exec " + c.tools +
		`/xtables-nft-multi "$@" ;; esac` + "\nexit $status\n"
	if err := errors.Join(os.Remove(direct), os.WriteFile(direct, []byte(program), 0o755)); err != nil {
		fail(err)
	}
	if readOnly {
		c.sh("read_only")
	}
	var calls []call
	for _, status := range []int{0, 1, 2, 111, 126, 127, 255} {
		calls = append(calls, call{args: []string{"iptables", fmt.Sprint(status)}})
	}
	return c.compare(calls, !readOnly)
}
