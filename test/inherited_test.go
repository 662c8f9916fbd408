// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// waiting is iptables-restore as it waits for its standard input: a moment at which the kernel can be asked about it.
type waiting struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// wait starts a command and waits until it is the real iptables-restore, reading.
func wait(t *testing.T, cmd *exec.Cmd) waiting {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := waiting{cmd, stdin}
	for {
		exe, err := os.Readlink(w.proc("exe"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(exe, "-multi") && strings.HasPrefix(w.read(t, "syscall"), "0 0x0 ") { // read(0, on x86_64
			return w
		}
		if state := w.read(t, "stat"); strings.Contains(state, ") Z ") {
			t.Fatalf("%s ended: %s", cmd, state)
		}
		runtime.Gosched()
	}
}

func (w waiting) proc(file string) string { return fmt.Sprintf("/proc/%d/%s", w.cmd.Process.Pid, file) }

func (w waiting) read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(w.proc(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (w waiting) end(t *testing.T) {
	t.Helper()
	w.stdin.Close()
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("%s: %v", w.cmd, err)
	}
}

// describe says all that the program inherits, as the kernel sees it. The process id is that of what was started: the
// files are those of cmd.Process.Pid.
func (w waiting) describe(t *testing.T) map[string]string {
	t.Helper()
	d := map[string]string{
		"arguments":   fmt.Sprintf("%q", w.read(t, "cmdline")),
		"environment": fmt.Sprintf("%q", w.read(t, "environ")),
		"limits":      w.read(t, "limits"),
		"oom":         w.read(t, "oom_score_adj"),
	}
	for _, line := range strings.Split(w.read(t, "status"), "\n") {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"Umask", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm",
			"CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Cpus_allowed", "PPid"}, name) {
			d[name] = value
		}
	}
	// The fields behind the name in proc_pid_stat(5) begin with the third.
	_, after, _ := strings.Cut(w.read(t, "stat"), ") ")
	field := func(n int) string {
		return strings.ReplaceAll(strings.Fields(after)[n-3], fmt.Sprint(w.cmd.Process.Pid), "itself")
	}
	d["process group"], d["session"], d["terminal"], d["nice"] = field(5), field(6), field(7), field(19)
	cwd, err := os.Readlink(w.proc("cwd"))
	if err != nil {
		t.Fatal(err)
	}
	d["working directory"] = cwd
	descriptors, err := os.ReadDir(w.proc("fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range descriptors {
		file, err := os.Readlink(w.proc("fd/" + fd.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if before, _, isPipe := strings.Cut(file, ":["); isPipe {
			file = before
		}
		d["descriptor "+fd.Name()] = file
	}
	return d
}

// has says whether a signal set of proc_pid_status(5) has all these signals. It may have more, from anyone who runs the test.
func has(set string, signals uint64) bool {
	got, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
	return err == nil && got&signals == signals
}

func TestInherited(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	cases := []struct {
		doc  string
		with []string // what starts it, before the path of iptables-restore and its arguments
		args []string
		env  []string
		want func(map[string]string) bool // nil: that both ways are the same is all
	}{
		{doc: "plainly"},
		{doc: "arguments", args: []string{"-T", "a b\xff\n\t", "-T", "", "-T", "ä", "--modprobe=" + long}},
		{doc: "environment", env: []string{"A=b c", "EMPTY=", "BYTES=\xff\n", "=odd", "no-equals-sign", "LD_BIND_NOW=1", "LONG=" + long}},
		{doc: "empty environment", env: []string{}},
		{doc: "Go's own variables", env: []string{"GODEBUG=madvdontneed=1", "GOMAXPROCS=1", "GOGC=1", "GOTRACEBACK=crash"}},
		{
			doc:  "ignored signals",
			with: []string{"env", "--ignore-signal=HUP,INT,QUIT,PIPE,TERM,USR1,CHLD,URG,TSTP,RTMIN,RTMAX"},
			want: func(d map[string]string) bool { return has(d["SigIgn"], 0x8000000200495207) },
		},
		{
			doc:  "blocked signals",
			with: []string{"env", "--block-signal=HUP,TERM,USR2,CHLD,RTMAX"},
			want: func(d map[string]string) bool { return has(d["SigBlk"], 0x8000000000014801) },
		},
		{
			doc:  "blocked signals that are waiting",
			with: []string{"env", "--block-signal=WINCH,USR1", "sh", "-c", `kill -WINCH $$; kill -USR1 $$; exec "$@"`, "sh"},
			want: func(d map[string]string) bool { return has(d["ShdPnd"], 0x8000200) },
		},
		{doc: "limits", with: []string{"prlimit", "--nofile=300:4000", "--core=0", "--nproc=3000:4000", "--"}},
		{doc: "limit of descriptors, soft as hard", with: []string{"prlimit", "--nofile=4000:4000", "--"}},
		{doc: "descriptors", with: []string{"bash", "-c", `exec 3</dev/zero 7>/dev/null 200</etc/passwd; exec "$@"`, "bash"}},
		{doc: "umask", with: []string{"sh", "-c", `umask 0137; exec "$@"`, "sh"}},
		{doc: "working directory", with: []string{"env", "--chdir=/usr/share"}},
		{doc: "session", with: []string{"setsid"}},
		{doc: "nice", with: []string{"nice", "-n", "5"}},
		{doc: "one processor", with: []string{"taskset", "1"}},
		{doc: "no new privileges", with: []string{"setpriv", "--no-new-privs"}},
		{doc: "fewer capabilities", with: []string{"setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all"}},
	}
	inBothModes(t, func(t *testing.T, mode string) {
		readOnly(t)
		// What starts it cannot give it another argv[0], so direct calls go through a link of the same name.
		direct := filepath.Join(t.TempDir(), "iptables-restore")
		if err := os.Symlink("/usr/sbin/xtables-"+mode+"-multi", direct); err != nil {
			t.Fatal(err)
		}
		for _, test := range cases {
			t.Run(test.doc, func(t *testing.T) {
				var d [2]map[string]string
				for i, path := range []string{direct, "/usr/sbin/iptables-restore"} {
					args := append(append(slices.Clone(test.with), path), test.args...)
					cmd := exec.Command(args[0], args[1:]...)
					cmd.Env = test.env
					w := wait(t, cmd)
					d[i] = w.describe(t)
					d[i]["arguments"] = strings.Replace(d[i]["arguments"], path, "iptables-restore", 1)
					w.end(t)
				}
				for key := range d[0] {
					if d[0][key] != d[1][key] {
						t.Errorf("%s: direct %s, wrapped %s", key, d[0][key], d[1][key])
					}
				}
				if len(d[0]) != len(d[1]) {
					t.Errorf("direct %v, wrapped %v", d[0], d[1])
				}
				if test.want != nil && !test.want(d[1]) {
					t.Errorf("not what the case is about: %v", d[1])
				}
			})
		}
	})
}
