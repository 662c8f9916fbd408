// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// fails runs a call that cannot become a program, and compares what it prints, without what begins each line.
func fails(t *testing.T, doc string, argv []string, status int, lines ...string) {
	t.Helper()
	var stderr bytes.Buffer
	got := run(argv, os.Environ(), &stderr)
	want := ""
	for _, line := range lines {
		want += "iptables-wrapper: " + line + "\n"
	}
	if got != status || stderr.String() != want {
		t.Errorf("%s: got status %d\n%swant status %d\n%s", doc, got, stderr.String(), status, want)
	}
}

// A wrong variable is a usage error, even for a call that needs no backend.
func TestWrongVariable(t *testing.T) {
	t.Setenv(Variable, "nf_tables\n")
	fails(t, "a wrong variable", []string{"/usr/sbin/iptables", "--version"}, 2,
		"cannot run iptables: environment variable IPTABLES_WRAPPER_BACKEND is not one of auto, nft, legacy: "+
			`"nf_tables\n"`,
		"try: set it to one of these, or unset it")
}

// A thread whose effective user is another one than its user is what a set-user-ID program is. It is refused before
// anything else is looked at.
func TestSetUserID(t *testing.T) {
	host.NeedsRoot(t, "change the effective user")
	t.Setenv(Variable, "wrong, too")
	host.OnThread(func() {
		const same = ^uintptr(0)
		// The kernel knows users by thread. The functions of package syscall change those of all threads.
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, 1000, same)
		if errno != 0 {
			t.Error(errno)
			return
		}
		fails(t, "set-user-ID", []string{"/usr/sbin/ip6tables-save"}, 126,
			"cannot run ip6tables-save: it runs set-user-ID",
			"try: chmod u-s the wrapper, and run it as root")
	})
}

// Each reason why a program does not run, with its status, which is never 1, and what to do.
func TestCannotRun(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const nft, legacy = "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"
	self, err := os.Executable()
	host.Check(t, err)
	// A wrapper that runs itself does not end. This is in seconds of the processor.
	host.Check(t, unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 20, Max: 20}))
	// The multi-call programs stay.
	host.Run(t, "find", "/usr/sbin", "-type", "l", "-name", "ip*tables-*", "-delete")
	program := host.Read(t, nft)
	write := func(content []byte) error { return errors.Join(os.Remove(nft), os.WriteFile(nft, content, 0o755)) }
	for _, test := range []struct {
		doc    string
		make   func() error
		argv   []string
		status int
		lines  []string
	}{
		{
			doc: "another architecture", make: func() error { return write(ofOtherArchitecture(program)) },
			argv: []string{"iptables", "-S"}, status: 126,
			lines: []string{
				"cannot run iptables: execve " + nft + ": exec format error (nft: IPTABLES_WRAPPER_BACKEND is set)",
				"try: install iptables for the architecture of this machine",
			},
		},
		{
			doc: "its loader is missing", make: func() error { return write(withoutLoader(t, program)) },
			argv: []string{"/sbin/iptables", "-S"}, status: 127,
			lines: []string{
				"cannot run iptables: execve " + nft + ": no such file or directory " +
					"(nft: IPTABLES_WRAPPER_BACKEND is set)",
				"try: install the libraries of that program: its loader is missing",
			},
		},
		{
			doc: "not executable", make: func() error { return os.Chmod(nft, 0o644) },
			argv: []string{"/usr/sbin/iptables", "-S"}, status: 126,
			lines: []string{
				"cannot run iptables: execute " + nft + ": permission denied (nft: IPTABLES_WRAPPER_BACKEND is set)",
				"try: run as root; if you are, check the file's mode, and that its file system is not mounted noexec",
			},
		},
		{
			doc: "the wrapper itself", make: func() error {
				return errors.Join(os.Remove(nft), os.Symlink(self, nft))
			},
			argv: []string{"iptables-save"}, status: 126,
			lines: []string{
				`cannot run iptables-save: "` + nft + `": it is the running program itself ` +
					"(nft: IPTABLES_WRAPPER_BACKEND is set)",
				"try: unmount what covers iptables' own program there, or install the iptables package again",
			},
		},
		{
			doc: "missing", make: func() error { return os.Remove(nft) },
			argv: []string{"./ip6tables-restore"}, status: 127,
			lines: []string{
				"cannot run ip6tables-restore: no such program: ip6tables-nft-restore or xtables-nft-multi " +
					"(nft: IPTABLES_WRAPPER_BACKEND is set)",
				"try: install that backend's iptables; if this is the wrong backend, change IPTABLES_WRAPPER_BACKEND",
			},
		},
	} {
		host.Check(t, test.make())
		t.Setenv(Variable, "nft")
		fails(t, test.doc, test.argv, test.status, test.lines...)
	}
	t.Setenv(Variable, "legacy")
	fails(t, "an argument that is too long", []string{"iptables", strings.Repeat("x", 1<<20)}, 126,
		"cannot run iptables: execve "+legacy+": argument list too long (legacy: IPTABLES_WRAPPER_BACKEND is set)",
		"try: pass fewer arguments or a smaller environment; the program's path counts, too")
	host.Check(t, unix.Mount("none", "/proc", "tmpfs", 0, ""))
	fails(t, "without /proc", []string{"iptables", "-S"}, 126,
		"cannot run iptables: /proc does not show the running file: readlink /proc/self/exe: no such file or directory",
		"try: mount /proc of this PID namespace, or enter that namespace, too: nsenter --pid")
}

// ofOtherArchitecture returns an ELF file with the number of a machine that is none.
func ofOtherArchitecture(program []byte) []byte {
	const machine = 18 // offset of e_machine, see elf(5)
	other := bytes.Clone(program)
	other[machine], other[machine+1] = 0xfe, 0xfe
	return other
}

// withoutLoader returns an ELF file whose loader does not exist.
func withoutLoader(t *testing.T, program []byte) []byte {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(program))
	host.Check(t, err)
	other := bytes.Clone(program)
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			other[p.Off+1] = '#'
		}
	}
	if bytes.Equal(other, program) {
		t.Fatal("the program has no loader")
	}
	return other
}

// A proven backend without a program: the other one's is no substitute. So it is where the loader of a guess is
// missing. Nothing is recorded.
func TestNoSubstitute(t *testing.T) {
	for _, test := range []struct{ doc, host, remove, missing string }{
		{
			doc: "proven", host: "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT", remove: "rm /usr/sbin/*-legacy*",
			missing: "no such program: iptables-legacy or xtables-legacy-multi " +
				"(legacy: chain KUBE-IPTABLES-HINT of kubelet is in legacy's mangle table (IPv4))",
		},
		{
			doc: "a guess without its loader", remove: "rm /usr/sbin/iptables-nft; chmod 755 /run/program; " +
				"mv /run/program /usr/sbin/xtables-nft-multi",
			missing: "execve /usr/sbin/xtables-nft-multi: no such file or directory",
		},
	} {
		t.Run(test.doc, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			wrapped(t)
			program := withoutLoader(t, host.Read(t, "/usr/sbin/xtables-nft-multi"))
			host.Check(t, os.WriteFile("/run/program", program, 0o755))
			host.Run(t, "sh", "-ec", test.host+"\n"+test.remove)
			c := calls(t, "iptables", "-A", "INPUT", "-j", "ACCEPT")
			if c.status != 127 || !strings.Contains(c.stderr, test.missing) || strings.Count(c.stderr, "\n") != 2 {
				t.Errorf("got status %d\n%s", c.status, c.stderr)
			}
			if test.host != "" && c.recorded != "" || c.stored != link.Wrapper {
				t.Errorf("kept: %+v", c)
			}
		})
	}
}

// The program's file has a capability that the container lacks.
func TestFileCapabilities(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Needs(t, "setcap")
	wrapped(t)
	host.Run(t, "setcap", "cap_net_admin,cap_net_raw+ep", "/usr/sbin/xtables-nft-multi")
	c := calls(t, "setpriv", "--bounding-set=-net_raw", "iptables", "-S")
	if c.status != 126 || !strings.Contains(c.stderr, "xtables-nft-multi: operation not permitted") &&
		!strings.Contains(c.stderr, "iptables-nft: operation not permitted") || strings.Count(c.stderr, "\n") != 2 {
		t.Errorf("got %+v", c)
	}
}
