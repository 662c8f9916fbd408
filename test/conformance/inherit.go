// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
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
	var list []situation
	for _, s := range []struct {
		name  string
		about string   // what is compared, with spaces before and behind; "" is everything
		with  []string // what starts it, before the path of iptables-restore
		env   []string
	}{
		{name: "plainly"},
		{
			name:  "variables of language runtimes",
			about: "environment",
			env: []string{"GODEBUG=madvdontneed=1", "GOMAXPROCS=1", "GOGC=1", "GOTRACEBACK=crash", "PYTHONHOME=/",
				"BASH_ENV=/x"},
		},
		{
			name:  "ignored signals, as nohup leaves them",
			about: "SigIgn",
			with:  []string{"env", "--ignore-signal=HUP,INT"},
		},
		{name: "blocked signals", about: "SigBlk", with: []string{"env", "--block-signal=USR1,USR2,WINCH,RTMAX"}},
		{
			name:  "blocked signals that are pending",
			about: "SigBlk ShdPnd",
			with: []string{"env", "--block-signal=WINCH,USR1", "sh", "-c", `kill -WINCH $$; kill -USR1 $$; exec "$@"`,
				"sh"},
		},
		{
			name:  "limits",
			about: "limits",
			with:  []string{"prlimit", "--nofile=300:4000", "--core=0", "--nproc=3000:4000", "--"},
		},
		{
			name:  "soft limit of descriptors at the hard one",
			about: "limits",
			with:  []string{"prlimit", "--nofile=4000:4000", "--"},
		},
		{
			name:  "open descriptors",
			about: "descriptors",
			with:  []string{"bash", "-c", `exec 3</dev/zero 7>/dev/null 200</etc/passwd; exec "$@"`, "bash"},
		},
		{name: "umask", about: "Umask", with: []string{"sh", "-c", `umask 0137; exec "$@"`, "sh"}},
		{name: "working directory", about: "directory", with: []string{"env", "--chdir=/usr/share"}},
		{name: "session", about: "session group terminal", with: []string{"setsid"}},
		{name: "nice", about: "nice", with: []string{"nice", "-n", "5"}},
		{name: "one processor", about: "Cpus_allowed", with: []string{"taskset", "1"}},
		{name: "no new privileges", about: "NoNewPrivs", with: []string{"setpriv", "--no-new-privs"}},
		{
			name:  "fewer capabilities",
			about: "CapInh CapPrm CapEff CapBnd CapAmb",
			with:  []string{"setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all"},
		},
	} {
		list = append(list, situation{group: "inherited", name: s.name, want: asDirectly,
			run: func(c *container) string {
				c.sh(`hint nft ip`)
				// What starts it cannot give it another argv[0], so the direct call goes through a link of the same
				// name.
				link := filepath.Join(c.dir, "iptables-restore")
				if err := os.Symlink(direct, link); err != nil {
					fail(err)
				}
				var seen [2]map[string]string
				for i, path := range []string{link, "/usr/sbin/iptables-restore"} {
					args := append(slices.Clone(s.with), path)
					cmd := exec.Command(args[0], args[1:]...)
					cmd.Env = s.env
					r, wrong := c.start(cmd)
					if wrong != "" {
						return wrong
					}
					seen[i] = r.describe()
					seen[i]["arguments"] = strings.Replace(seen[i]["arguments"], path, "iptables-restore", 1)
					r.end()
				}
				var different []string
				for _, key := range slices.Sorted(maps.Keys(seen[0])) {
					if seen[0][key] == seen[1][key] {
						continue
					}
					if s.about == "" || slices.Contains(strings.Fields(s.about), key) {
						different = append(different, key)
					} else {
						c.noticed("different: " + key)
					}
				}
				if len(different) == 0 {
					return asDirectly
				}
				return oneLine("different: " + strings.Join(different, ", "))
			}})
	}
	return list
}

// running is a process that was called, and the program that it became or started, as that waits for a file to read: a
// moment at which the kernel can be asked about it.
type running struct {
	cmd         *exec.Cmd
	called, pid int
}

// start starts iptables-restore, to read a FIFO that this process holds open and never writes to, and waits until it
// does. What is wrong is said if it never does.
func (c *container) start(cmd *exec.Cmd) (running, string) {
	if _, err := os.Stat(c.fifo()); err != nil {
		if err := unix.Mkfifo(c.fifo(), 0o644); err != nil {
			fail(err)
		}
		if _, err := unix.Open(c.fifo(), unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			fail(err)
		}
	}
	cmd.Args = append(cmd.Args, c.fifo())
	if err := cmd.Start(); err != nil {
		return running{}, err.Error()
	}
	r, wrong := c.waitFor(cmd.Process.Pid)
	r.cmd = cmd
	if wrong != "" {
		r.end()
	}
	return r, wrong
}

func (c *container) fifo() string { return filepath.Join(c.dir, "fifo") }

// patience is for a program that never comes. One that comes takes milliseconds.
const patience = 10 * time.Second

func (c *container) waitFor(called int) (running, string) {
	program, err := os.ReadFile(direct)
	if err != nil {
		fail(err)
	}
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		if gone(called) {
			return running{}, "it ended before it read its file"
		}
		for _, pid := range family(called) {
			number, rest, _ := strings.Cut(read(pid, "syscall"), " 0x")
			fd, err := strconv.ParseInt(strings.SplitN(rest, " ", 2)[0], 16, 32)
			file, _ := os.Readlink(proc(pid, fmt.Sprint("fd/", fd)))
			if err == nil && number == fmt.Sprint(unix.SYS_READ) && file == c.fifo() &&
				read(pid, "exe") == string(program) {
				return running{called: called, pid: pid}, ""
			}
		}
	}
	return running{}, "no process is the program"
}

// family is a process and what it has started.
func family(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(proc(pid, "task/*/children"))
	for _, list := range lists {
		content, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(content)) {
			if pid, err := strconv.Atoi(child); err == nil {
				all = append(all, family(pid)...)
			}
		}
	}
	return all
}

func proc(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }

// read returns "" for a process that is gone.
func read(pid int, file string) string {
	content, _ := os.ReadFile(proc(pid, file))
	return string(content)
}

func (r running) end() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	if r.pid != 0 && r.pid != r.called {
		_ = unix.Kill(r.pid, unix.SIGKILL)
	}
}

func gone(pid int) bool {
	stat := read(pid, "stat")
	return stat == "" || strings.Contains(stat, ") Z ")
}

// ends waits for the end of a process.
func ends(pid int) bool {
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		if gone(pid) {
			return true
		}
	}
	return false
}

// describe is all that the program inherits, as the kernel sees it, but for its standard input and its parent.
func (r running) describe() map[string]string {
	d := map[string]string{
		"arguments":   fmt.Sprintf("%q", read(r.pid, "cmdline")),
		"environment": fmt.Sprintf("%q", read(r.pid, "environ")),
		"limits":      read(r.pid, "limits"),
		"oom":         read(r.pid, "oom_score_adj"),
	}
	for line := range strings.Lines(read(r.pid, "status")) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"Umask", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh",
			"CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Cpus_allowed"}, name) {
			d[name] = value
		}
	}
	// The fields behind the name in proc_pid_stat(5) begin with the third.
	_, after, _ := strings.Cut(read(r.pid, "stat"), ") ")
	if fields := strings.Fields(after); len(fields) > 16 {
		for name, n := range map[string]int{"group": 5, "session": 6, "terminal": 7, "nice": 19} {
			d[name] = fields[n-3]
			if d[name] == strconv.Itoa(r.called) && name != "nice" {
				d[name] = "the process that was called"
			}
		}
	}
	d["directory"], _ = os.Readlink(proc(r.pid, "cwd"))
	descriptors, _ := os.ReadDir(proc(r.pid, "fd"))
	for _, fd := range descriptors {
		if file, _ := os.Readlink(proc(r.pid, "fd/"+fd.Name())); fd.Name() != "0" {
			kind, _, _ := strings.Cut(file, ":[") // without the number of a pipe or socket
			d["descriptors"] += fd.Name() + " " + kind + "\n"
		}
	}
	return d
}
