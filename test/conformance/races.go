// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

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
	for range 15 {
		if err := c.lay(); err != nil {
			fail(err)
		}
		var lock sync.Mutex
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Add(1)
			go func() {
				defer wait.Done()
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
			}()
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
	for range 20 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			var wait sync.WaitGroup
			for _, name := range names {
				wait.Add(1)
				go func() { defer wait.Done(); plainly(name, "--version") }()
			}
			wait.Wait()
		}()
		_, missing := host.Watch(done, names)
		<-done
		if missing != nil {
			return "missing"
		}
		if err := c.lay(); err != nil {
			fail(err)
		}
	}
	return "never missing"
}

// killed ends a first call, and every process that it started, before each call by which a file could be changed.
func killed(c *container) string {
	c.sh(`hint legacy ip`)
	kills := 0
	for _, call := range []string{"symlink,symlinkat", "rename,renameat,renameat2", "unlink,unlinkat", "link,linkat"} {
		for when := 1; ; when++ {
			if err := c.lay(); err != nil {
				fail(err)
			}
			cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call,
				"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, when), "/usr/sbin/iptables", "--version")
			if err := cmd.Run(); err == nil {
				break // it makes no such call any more
			}
			if kills++; kills > 60 {
				return "every first call fails"
			}
			for _, name := range names {
				stdout, wrong := plainly(name, "--version")
				if wrong != "" {
					return name + ": " + wrong
				}
				if !strings.Contains(stdout, "legacy") {
					return name + " runs the other backend"
				}
			}
		}
	}
	return "every name works, all in one backend"
}
