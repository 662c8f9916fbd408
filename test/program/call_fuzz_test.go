// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// FuzzCall gives the wrapper any arguments and any environment: what reaches the program is the same to the last byte,
// or the call makes no sense because of the wrapper's own variable, and one line says so.
func FuzzCall(f *testing.F) {
	dir := f.TempDir()
	host.Run(f, "go", "build", "-o", filepath.Join(dir, "xtables-nft-multi"), "printer.go")
	if err := os.Link(filepath.Join(dir, "xtables-nft-multi"), filepath.Join(dir, "xtables-legacy-multi")); err != nil {
		f.Fatal(err)
	}
	wrapper := filepath.Join(dir, "iptables")
	host.PutWrapper(f, wrapper)
	f.Add([]byte("-t\x00nat\x00-S"), []byte("PATH=/bin\x00A=1\x00A=2\x00\x00no-equals-sign\x00=odd\x00LANG=\xff"))
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("--\x00\x00\x00--version"),
		[]byte("IPTABLES_WRAPPER_BACKEND=legacy\x00LD_PRELOAD=/x\x00GODEBUG=inittrace=0\x00GOTRACEBACK=crash"))
	f.Add([]byte("detect"), []byte("IPTABLES_WRAPPER_BACKEND=both"))
	f.Add([]byte("x"), []byte("IPTABLES_WRAPPER_BACKEND=auto\x00IPTABLES_WRAPPER_BACKEND=bad"))
	f.Fuzz(func(t *testing.T, args, environment []byte) {
		if len(args)+len(environment) > 64<<10 {
			t.Skip("too much for execve")
		}
		cmd := &exec.Cmd{Path: wrapper, Args: []string{"/any/where/iptables-save"}, Env: []string{}}
		if len(args) > 0 {
			cmd.Args = append(cmd.Args, strings.Split(string(args), "\x00")...)
		}
		backend, backendSet := "", false
		seen := map[string]bool{}
		for _, variable := range strings.Split(string(environment), "\x00") {
			name, value, isSet := strings.Cut(variable, "=")
			switch {
			case variable == "" || isSet && seen[name]:
				continue // a limit: Go passes on neither empty strings nor a variable's second value
			case name == "GODEBUG" || name == "GOMEMLIMIT" || name == "GOMAXPROCS" || name == "GOGC":
				continue // the runtime has its own opinion about them
			case isSet && name == "IPTABLES_WRAPPER_BACKEND" && !backendSet:
				backend, backendSet = value, true // what stands twice counts once
			}
			seen[name] = seen[name] || isSet
			cmd.Env = append(cmd.Env, variable)
		}
		if backend == "" || backend == "auto" {
			// The answer of this machine must not be kept.
			cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
				return strings.HasPrefix(v, "IPTABLES_WRAPPER_BACKEND=")
			})
			cmd.Env = append([]string{"IPTABLES_WRAPPER_BACKEND=nft"}, cmd.Env...)
			backend = "nft"
		}
		// exec.Cmd would leave out what stands twice.
		stdout, stderr, status := start(t, cmd.Path, cmd.Args, cmd.Env)
		if backend != "nft" && backend != "legacy" {
			said := strings.Split(stderr, "\n")
			if status != 2 || stdout != "" || len(said) != 3 || !strings.HasPrefix(said[0], "iptables-wrapper: ") ||
				!strings.HasPrefix(said[1], "iptables-wrapper: try: ") {
				t.Fatalf("the variable is %q: status %d, stdout %q, stderr %q", backend, status, stdout, stderr)
			}
			return
		}
		want := strings.Join(cmd.Args, "\x00") + "\x00\x00end\x00" + strings.Join(cmd.Env, "\x00") + "\x00\x00end\x00"
		if status != 0 || stdout != want || stderr != "" {
			t.Fatalf("args %q, environment %q: status %d, stderr %q, got\n%q, want\n%q", cmd.Args, cmd.Env, status,
				stderr, stdout, want)
		}
	})
}

// start runs a program with exactly these arguments and this environment.
func start(t *testing.T, path string, args, environment []string) (stdout, stderr string, status int) {
	t.Helper()
	var files [2]*os.File
	for i := range files {
		file, err := os.CreateTemp(t.TempDir(), "output")
		host.Check(t, err)
		defer file.Close()
		files[i] = file
	}
	process, err := os.StartProcess(path, args, &os.ProcAttr{
		Env:   environment,
		Files: []*os.File{nil, files[0], files[1]},
	})
	host.Check(t, err)
	state, err := process.Wait()
	host.Check(t, err)
	return read(t, files[0].Name()), read(t, files[1].Name()), state.ExitCode()
}
