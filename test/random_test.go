// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// FuzzCall gives the wrapper any arguments and any environment: what reaches the program is the same to the last byte, or
// the call makes no sense because of the wrapper's own variable, and one line says so.
func FuzzCall(f *testing.F) {
	dir := f.TempDir()
	host.Run(f, "go", "build", "-o", filepath.Join(dir, "xtables-nft-multi"), "./printer")
	if err := os.Link(filepath.Join(dir, "xtables-nft-multi"), filepath.Join(dir, "xtables-legacy-multi")); err != nil {
		f.Fatal(err)
	}
	wrapper := filepath.Join(dir, "iptables")
	putWrapper(f, wrapper)
	f.Add([]byte("-t\x00nat\x00-S"), []byte("PATH=/bin\x00A=1\x00A=2\x00\x00no-equals-sign\x00=odd\x00LANG=\xff"))
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("--\x00\x00\x00--version"), []byte("IPTABLES_WRAPPER_MODE=legacy\x00LD_PRELOAD=/x\x00GODEBUG=inittrace=0\x00GOTRACEBACK=crash"))
	f.Add([]byte("detect"), []byte("IPTABLES_WRAPPER_MODE=both"))
	f.Add([]byte("x"), []byte("IPTABLES_WRAPPER_DEBUG=1\x00IPTABLES_WRAPPER_MODE=auto\x00IPTABLES_WRAPPER_MODE=bad"))
	f.Fuzz(func(t *testing.T, args, environment []byte) {
		if len(args)+len(environment) > 64<<10 {
			t.Skip("too much for execve")
		}
		cmd := &exec.Cmd{Path: wrapper, Args: []string{"/any/where/iptables-save"}, Env: []string{}}
		if len(args) > 0 {
			cmd.Args = append(cmd.Args, strings.Split(string(args), "\x00")...)
		}
		mode, modeSet, debug := "", false, false
		for _, variable := range strings.Split(string(environment), "\x00") {
			name, value, isSet := strings.Cut(variable, "=")
			switch {
			case name == "GODEBUG" || name == "GOMEMLIMIT" || name == "GOMAXPROCS" || name == "GOGC":
				continue // the runtime has its own opinion about them
			case isSet && name == "IPTABLES_WRAPPER_MODE" && !modeSet:
				mode, modeSet = value, true // what stands twice counts once
			case isSet && name == "IPTABLES_WRAPPER_DEBUG":
				debug = true
			}
			cmd.Env = append(cmd.Env, variable)
		}
		if mode == "" || mode == "auto" {
			// The answer of this machine must not be kept.
			cmd.Env = append([]string{"IPTABLES_WRAPPER_MODE=nft"}, cmd.Env...)
			mode = "nft"
		}
		// exec.Cmd would leave out what stands twice.
		stdout, stderr, status := start(t, cmd.Path, cmd.Args, cmd.Env)
		if mode != "nft" && mode != "legacy" {
			if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "iptables-wrapper: ") || strings.Count(stderr, "\n") != 1 {
				t.Fatalf("IPTABLES_WRAPPER_MODE=%q: status %d, stdout %q, stderr %q", mode, status, stdout, stderr)
			}
			return
		}
		want := strings.Join(cmd.Args, "\x00") + "\x00\x00end\x00" + strings.Join(cmd.Env, "\x00") + "\x00\x00end\x00"
		if status != 0 || stdout != want || stderr != "" && !debug {
			t.Fatalf("args %q, environment %q: status %d, stderr %q, got\n%q, want\n%q", cmd.Args, cmd.Env, status, stderr, stdout, want)
		}
	})
}

// start runs a program with exactly these arguments and this environment.
func start(t *testing.T, path string, args, environment []string) (stdout, stderr string, status int) {
	t.Helper()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outRead.Close()
	errFile, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer errFile.Close()
	process, err := os.StartProcess(path, args, &os.ProcAttr{Env: environment, Files: []*os.File{nil, outWrite, errFile}})
	outWrite.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(outRead); err != nil {
		t.Fatal(err)
	}
	state, err := process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	errText, err := os.ReadFile(errFile.Name())
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), string(errText), state.ExitCode()
}

// Random trees of files, links, loops and directories under the six names, in /usr/sbin and in /etc/alternatives: whatever
// is called, nothing changes that is not a name on its way to the wrapper or to an iptables program, no name that led
// somewhere is broken, and a command that fails has changed nothing.
func TestRandomTrees(t *testing.T) {
	trees := host.Number(100, 1000)
	other := os.Getenv("TEST_TREES")
	if other != "" {
		var err error
		if trees, err = strconv.Atoi(other); err != nil {
			t.Fatalf("TEST_TREES: %v", err)
		}
	}
	if _, outside := resultsDir(t); outside && other == "" {
		defer func() {
			section(t, "trees", trees, "random trees of names", "Links, loops, files and directories under the six names in /usr/sbin and /etc/alternatives, and a first\ncall, `install`, `reset` or `select` on them.")
		}()
	}
	t.Run("in a container", func(t *testing.T) {
		if !host.Contain(t) {
			return
		}
		r := host.Rand(t)
		host.Run(t, "iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
		// The programs are in a directory of their own, so that /usr/sbin can be emptied each time.
		host.Run(t, "sh", "-ec", `mkdir /run/programs; cp /usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /bin/true /run/programs
			mkdir /run/root; ln -s /run/programs/true /run/root/foreign`)
		if err := os.WriteFile("/run/programs/iptables-wrapper", wrapperContent(t), 0o755); err != nil {
			t.Fatal(err)
		}
		host.Run(t, "sh", "-ec", `mount -t tmpfs none /usr/sbin; mount -t tmpfs none /etc/alternatives`)
		done := map[string]int{}
		for range trees {
			done[growAndCall(t, r)]++
			if t.Failed() {
				return
			}
		}
		t.Logf("%v", done)
	})
}

func wrapperContent(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(os.Getenv(wrapperVariable))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

const programs = "/run/programs/"

// growAndCall makes a tree, calls something, and checks the result. It returns what was called and how it ended.
func growAndCall(t *testing.T, r *rand.Rand) string {
	grown := grow(t, r)
	before := look(t)
	call := [][]string{
		{"/usr/sbin/iptables", "--version"}, {"/usr/sbin/ip6tables-save", "--version"},
		{programs + "iptables-wrapper", "reset", "--dir", "/usr/sbin"},
		{programs + "iptables-wrapper", "select", "--dir", "/usr/sbin"},
		{programs + "iptables-wrapper", "select", "--dir", "/usr/sbin", "--mode", "legacy"},
		{programs + "iptables-wrapper", "install", "--dir", "/usr/sbin", "--skip-checks", "--alternatives", "never"},
	}[r.IntN(6)]
	cmd := exec.Command(call[0], call[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	started := err == nil || errors.As(err, &exit)
	after := look(t)
	isCommand := strings.HasPrefix(call[0], programs)
	complain := func(format string, args ...any) {
		t.Errorf("%s\n%v: %v: %s\nbefore: %v\nafter: %v\n%s", strings.Join(grown, "\n"), call, err, output, before, after, fmt.Sprintf(format, args...))
	}
	for path, entry := range before {
		now, there := after[path]
		switch {
		case entry.end != "" && now.end == "" && there:
			complain("%s pointed to %s, and is broken", path, entry.end)
		case there && now.content == entry.content:
		case entry.link && strings.HasPrefix(filepath.Base(path), ".") && !there:
			// a temporary link that a killed process could have left is used up
		case isCommand && err != nil:
			complain("it failed, and changed %s", path)
		case !slices.Contains(names, filepath.Base(path)) && !slices.Contains([]string{"iptables-wrapper", "iptables-current"}, filepath.Base(path)):
			complain("%s is not its to change", path)
		case entry.foreign && !(filepath.Base(path) == "iptables-current" && unused(before, entry.end)):
			complain("%s points to %s, and was changed", path, entry.end)
		case !there:
			complain("%s is gone", path)
		case !isCommand && !entry.wrapper && filepath.Base(path) != "iptables-current":
			complain("%s did not point to the wrapper", path)
		}
	}
	for path := range after {
		if _, there := before[path]; !there && (isCommand && err != nil || strings.HasPrefix(filepath.Base(path), ".")) {
			complain("%s is new", path)
		}
	}
	if !started {
		return "nothing"
	}
	return fmt.Sprint(filepath.Base(call[0]), " ", call[1], " ", cmd.ProcessState.ExitCode())
}

// unused reports whether none of the six names ends there. A switch that no name uses is pointed at the wrapper before one
// does.
func unused(tree map[string]entry, end string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return tree["/usr/sbin/"+name].end == end })
}

// grow makes a tree and says what is in it.
func grow(t *testing.T, r *rand.Rand) (grown []string) {
	t.Helper()
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	paths := []string{"/usr/sbin/iptables-wrapper", "/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi",
		"/usr/sbin/iptables-current", "/usr/sbin/.iptables-current.new", "/usr/sbin/.iptables-save.new"}
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives"} {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	// Mostly what is usual, so that there are names to move.
	usual := r.IntN(3) > 0
	for i, path := range paths {
		kind := r.IntN(15)
		if usual && r.IntN(8) > 0 {
			kind = []int{0, 11, 12, 1, 13, 13, 14}[min(i, 6)]
		}
		var err error
		target := ""
		switch kind {
		case 0:
			if err = os.Link("/usr/sbin/iptables-wrapper", path); err != nil {
				err = os.WriteFile(path, wrapperContent(t), 0o755)
			}
		case 1:
			target = "/usr/sbin/iptables-wrapper"
		case 2:
			target = "iptables-wrapper"
		case 3:
			target = "/etc/alternatives/" + filepath.Base(path)
		case 4:
			target = "/usr/sbin/" + names[r.IntN(len(names))]
		case 5:
			target = []string{"xtables-nft-multi", programs + "xtables-legacy-multi"}[r.IntN(2)]
		case 6:
			target = filepath.Base(path) // a loop
		case 7:
			target = []string{"gone", "/run/root/foreign", "../../run/root/foreign", "/usr/sbin"}[r.IntN(4)]
		case 8:
			err = os.WriteFile(path, []byte("#!/bin/sh\nexit 7\n"), 0o755)
		case 9:
			err = os.Mkdir(path, 0o755)
		case 10:
			err = os.WriteFile(path, wrapperContent(t), 0o755)
		case 11:
			target = programs + "xtables-nft-multi"
		case 12:
			target = programs + "xtables-legacy-multi"
		case 13:
			continue
		case 14:
			target = "/usr/sbin/iptables-current"
		}
		if target != "" {
			err = os.Symlink(target, path)
		}
		check(err)
		grown = append(grown, fmt.Sprintf("%s: %d %s", path, kind, target))
	}
	return grown
}

// entry is what a path of a tree is and where it leads.
type entry struct {
	content string // of a link, or what kind of file it is
	link    bool
	end     string // "" if it is broken
	wrapper bool   // that is a wrapper
	foreign bool   // that is neither a wrapper nor an iptables program
}

func look(t *testing.T) map[string]entry {
	t.Helper()
	found := map[string]entry{}
	for _, dir := range []string{"/usr/sbin", "/etc/alternatives"} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			path := filepath.Join(dir, file.Name())
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			e := entry{content: fmt.Sprint(info.Mode(), info.Size())}
			if target, err := os.Readlink(path); err == nil {
				e.content, e.link = target, true
			}
			if end, err := filepath.EvalSymlinks(path); err == nil {
				e.end, e.wrapper = end, isOurs(end)
				e.foreign = !e.wrapper && !passesProgram(path)
			}
			found[path] = e
		}
	}
	return found
}

// passesProgram reports whether a path points to, or through, the name of an iptables program.
func passesProgram(path string) bool {
	for range 40 {
		if strings.HasPrefix(filepath.Base(path), "xtables-") {
			return true
		}
		target, err := os.Readlink(path)
		if err != nil {
			return false
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return false
}
