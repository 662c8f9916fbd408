// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// races are first calls at once.
func races() []situation {
	const together = `
		together() { # NUMBER PROGRAM ARGUMENTS...: {} is the number of the call
			n=$1; shift
			seq "$n" | PATH=$PLAIN xargs -P "$n" -I{} "$@" 2>>errors >>out || touch failed
		}
		count() { (iptables-$1-save; ip6tables-$1-save) 2>/dev/null | grep -c 'INPUT -s 10\.9\.' || :; }
		verdict() {
			[ ! -e failed ] || echo "some fail"
			grep -v '^# Warning: ip6*tables-legacy tables present' errors >>besides || :
			echo "legacy $(count legacy), nft $(count nft)"
		}
		one() {
			case "$(verdict)" in
			"legacy 20, nft 0"|"legacy 0, nft 20") echo "all in one backend" ;;
			*) verdict ;;
			esac
		}
		`
	var list []situation
	for _, root := range []struct{ group, script string }{{"race", ""}, {"race, read-only root", "read_only\n"}} {
		for _, s := range []struct{ name, want, script string }{
			{"20 first writers at once, rules in legacy", "legacy 20, nft 0",
				`fill legacy 3; together 20 iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT; verdict`},
			{"20 first writers at once, nothing on the host", "legacy 0, nft 20",
				`together 20 iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT; verdict`},
			{"20 first writers at once, each held before it records, nothing on the host", "all in one backend", `
				(for i in $(seq 10); do fill legacy 1 ip6; done) &
				together 20 strace -f -qq -o trace.{} -e trace=symlink,symlinkat \
					-e inject=symlink,symlinkat:delay_enter=20ms iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT
				wait; one`},
			{"20 first writers at once, each held before a rename, hint in nft", "legacy 0, nft 20", `hint nft ip6
				together 20 strace -f -qq -o trace.{} -e trace=rename,renameat,renameat2 \
					-e inject=rename,renameat,renameat2:delay_enter=20ms iptables -w -A INPUT -s 10.9.0.{} -j ACCEPT
				verdict`},
			{"a busy writer on a set of its own, many rules in nft, a few left in legacy", "nft",
				"fill nft 5000; fill legacy 1500" + busy},
		} {
			list = append(list, situation{
				group:  root.group,
				name:   s.name,
				want:   s.want,
				script: together + root.script + s.script,
			})
		}
	}
	return append(list,
		situation{
			group: "race",
			name:  "100 first calls, 20 at once, hint in legacy",
			want:  "none fails, none says anything",
			run:   firstCalls,
		},
		situation{group: "race", name: "the names while first calls run", want: "never missing", run: neverMissing})
}

// plainly runs a name of iptables as a client would, and returns what a client must not see: "" if there is nothing.
func plainly(name string, args ...string) (stdout, wrong string) {
	cmd := exec.Command(filepath.Join("/usr/sbin", name), args...)
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil {
		wrong = e.Error()
	}
	if err.Len() > 0 {
		wrong += " on stderr: " + err.String()
	}
	return out.String(), oneLine(wrong)
}

func firstCalls(c *container) string {
	c.sh(`hint legacy ip`)
	failed, loud, other := 0, 0, 0
	for range 5 {
		if err := c.lay(); err != nil {
			fail(err)
		}
		var lock sync.Mutex
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() {
				stdout, wrong := plainly(names[i%len(names)], "--version")
				lock.Lock()
				defer lock.Unlock()
				switch {
				case strings.HasPrefix(wrong, " on stderr"):
					loud++
				case wrong != "":
					failed++
				case !strings.Contains(stdout, "legacy"):
					other++
				}
			})
		}
		wait.Wait()
	}
	var list []string
	for what, n := range map[string]int{"fail": failed, "say something": loud, "run the other backend": other} {
		if n > 0 {
			list = append(list, "some "+what)
		}
	}
	if len(list) == 0 {
		return "none fails, none says anything"
	}
	return strings.Join(list, ", ")
}

func neverMissing(c *container) string {
	c.sh(`hint legacy ip`)
	if err := c.lay(); err != nil {
		fail(err)
	}
	for range 5 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			var wait sync.WaitGroup
			for _, name := range names {
				wait.Go(func() { plainly(name, "--version") })
			}
			wait.Wait()
		}()
		gone := missing(done)
		<-done
		if gone {
			return "missing"
		}
		if err := c.lay(); err != nil {
			fail(err)
		}
	}
	return "never missing"
}

// busy changes an unrelated set as fast as one process can, which interrupts each dump of rules.
const busy = `
	nft add table ip busy; nft add set ip busy s '{ type ipv4_addr; }'
	(while :; do
		echo 'add element ip busy s { 192.0.2.1 }'
		echo 'delete element ip busy s { 192.0.2.1 }'
	done) | HOME=$TMP nft -i >"$TMP/nft" 2>&1 &
	sleep 0.2; add 192.0.2.1; kill $!; where 192.0.2.1`

// missing looks at the names until done is closed, and reports whether one of them did not lead to a program.
func missing(done <-chan struct{}) bool {
	for {
		for _, name := range names {
			// One question to the kernel: it follows the link as it is in that instant.
			if info, err := os.Stat(filepath.Join("/usr/sbin", name)); err != nil || info.Mode()&0o111 == 0 {
				return true
			}
		}
		select {
		case <-done:
			return false
		default:
		}
	}
}
