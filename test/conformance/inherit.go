// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// inheritance is whether the program gets everything that the caller gave.
func inheritance() []situation {
	long := strings.Repeat("x", 100_000)
	var list []situation
	for _, s := range []struct {
		name string
		with []string // what starts it, before the path of iptables-restore and its arguments
		args []string
		env  []string
	}{
		{name: "plainly"},
		{name: "arguments of odd bytes and lengths", args: []string{"-T", "a b\xff\n\t", "-T", "", "-T", "ä", "--modprobe=" + long}},
		{name: "environment of odd bytes and lengths", env: []string{"A=b c", "EMPTY=", "BYTES=\xff\n", "=odd", "no-equals-sign", "LD_BIND_NOW=1", "LONG=" + long}},
		{name: "empty environment", env: []string{}},
		{name: "variables of language runtimes", env: []string{"GODEBUG=madvdontneed=1", "GOMAXPROCS=1", "GOGC=1", "GOTRACEBACK=crash", "PYTHONHOME=/", "BASH_ENV=/x"}},
		{name: "ignored signals", with: []string{"env", "--ignore-signal=HUP,INT,QUIT,PIPE,TERM,USR1,CHLD,URG,TSTP,RTMIN,RTMAX"}},
		{name: "blocked signals", with: []string{"env", "--block-signal=HUP,TERM,USR2,CHLD,RTMAX"}},
		{name: "blocked signals that are pending", with: []string{"env", "--block-signal=WINCH,USR1", "sh", "-c", `kill -WINCH $$; kill -USR1 $$; exec "$@"`, "sh"}},
		{name: "limits", with: []string{"prlimit", "--nofile=300:4000", "--core=0", "--nproc=3000:4000", "--"}},
		{name: "soft limit of descriptors at the hard one", with: []string{"prlimit", "--nofile=4000:4000", "--"}},
		{name: "open descriptors", with: []string{"bash", "-c", `exec 3</dev/zero 7>/dev/null 200</etc/passwd; exec "$@"`, "bash"}},
		{name: "umask", with: []string{"sh", "-c", `umask 0137; exec "$@"`, "sh"}},
		{name: "working directory", with: []string{"env", "--chdir=/usr/share"}},
		{name: "session", with: []string{"setsid"}},
		{name: "nice", with: []string{"nice", "-n", "5"}},
		{name: "one processor", with: []string{"taskset", "1"}},
		{name: "no new privileges", with: []string{"setpriv", "--no-new-privs"}},
		{name: "fewer capabilities", with: []string{"setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all"}},
	} {
		list = append(list, situation{group: "inherited", name: s.name, want: asDirectly, run: func(c *container) string {
			c.sh(plainHost)
			// What starts it cannot give it another argv[0], so the direct call goes through a link of the same name.
			link := filepath.Join(c.dir, "iptables-restore")
			if err := os.Symlink(direct, link); err != nil {
				fail(err)
			}
			var seen [2]map[string]string
			for i, path := range []string{link, "/usr/sbin/iptables-restore"} {
				args := slices.Concat(s.with, []string{path}, s.args)
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Env = s.env
				r, wrong := start(cmd)
				if wrong != "" {
					return wrong
				}
				seen[i] = r.describe()
				seen[i]["arguments"] = strings.Replace(seen[i]["arguments"], path, "iptables-restore", 1)
				r.end()
			}
			return difference(seen[0], seen[1])
		}})
	}
	return list
}

func difference(direct, wrapped map[string]string) string {
	var keys []string
	for key := range maps.Keys(direct) {
		if wrapped[key] != direct[key] {
			keys = append(keys, key)
		}
	}
	for key := range maps.Keys(wrapped) {
		if _, ok := direct[key]; !ok {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return asDirectly
	}
	slices.Sort(keys)
	return oneLine("different: " + strings.Join(keys, ", "))
}

// running is a program as it waits for its standard input: a moment at which the kernel can be asked about it.
type running struct {
	pid   int
	cmd   *exec.Cmd
	stdin io.Closer
}

// start starts a command and waits until its process is the real iptables-restore, reading. What is wrong is said if it
// never is.
func start(cmd *exec.Cmd) (running, string) {
	cmd.Stdin = nil
	stdin, err := cmd.StdinPipe()
	if err != nil {
		fail(err)
	}
	if err := cmd.Start(); err != nil {
		return running{}, err.Error()
	}
	r, wrong := waitFor(cmd.Process.Pid)
	r.cmd, r.stdin = cmd, stdin
	if wrong != "" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return r, wrong
}

// patience is for a program that never comes. One that comes takes milliseconds.
const patience = 10 * time.Second

func waitFor(pid int) (running, string) {
	r := running{pid: pid}
	program, err := os.ReadFile(direct)
	if err != nil {
		fail(err)
	}
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		if stat := r.read("stat"); stat == "" || strings.Contains(stat, ") Z ") {
			return r, "it ended before it read standard input"
		}
		if r.isReading(program) {
			return r, ""
		}
		for child := range strings.FieldsSeq(r.read("task/" + strconv.Itoa(pid) + "/children")) {
			if pid, err := strconv.Atoi(child); err == nil && (running{pid: pid}).isReading(program) {
				return r, "another process is the program"
			}
		}
	}
	return r, "the process never is the program"
}

// isReading says whether the process is that program and waits for its standard input.
func (r running) isReading(program []byte) bool {
	return strings.HasPrefix(r.read("syscall"), fmt.Sprintf("%d 0x0 ", unix.SYS_READ)) && r.read("exe") == string(program)
}

func (r running) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", r.pid, file) }

// read returns "" for a process that is gone.
func (r running) read(file string) string {
	content, _ := os.ReadFile(r.proc(file))
	return string(content)
}

func (r running) end() {
	_ = r.stdin.Close()
	_ = r.cmd.Wait()
}

func (r running) gone() bool {
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		if stat := r.read("stat"); stat == "" || strings.Contains(stat, ") Z ") {
			return true
		}
	}
	return false
}

// describe is all that the program inherits, as the kernel sees it.
func (r running) describe() map[string]string {
	d := map[string]string{
		"arguments":   fmt.Sprintf("%q", r.read("cmdline")),
		"environment": fmt.Sprintf("%q", r.read("environ")),
		"limits":      r.read("limits"),
		"oom score":   r.read("oom_score_adj"),
	}
	for line := range strings.Lines(r.read("status")) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"Umask", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm",
			"CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Cpus_allowed", "PPid"}, name) {
			d[name] = value
		}
	}
	// The fields behind the name in proc_pid_stat(5) begin with the third.
	_, after, _ := strings.Cut(r.read("stat"), ") ")
	if fields := strings.Fields(after); len(fields) > 16 {
		for name, n := range map[string]int{"process group": 5, "session": 6, "terminal": 7, "nice": 19} {
			if d[name] = fields[n-3]; d[name] == strconv.Itoa(r.pid) && name != "nice" {
				d[name] = "itself"
			}
		}
	}
	d["working directory"], _ = os.Readlink(r.proc("cwd"))
	descriptors, _ := os.ReadDir(r.proc("fd"))
	for _, fd := range descriptors {
		file, _ := os.Readlink(r.proc("fd/" + fd.Name()))
		file, _, _ = strings.Cut(file, ":[") // the number of a pipe
		d["descriptor "+fd.Name()] = file
	}
	return d
}
