// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/internal/nft"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// container gives each situation a network namespace, a /dev, a /run and the six commands of an image of its own.
type container struct {
	t      *testing.T
	before map[string]string // the links in the directories that a situation changes
	files  map[string][]byte // the programs of iptables, and the wrapper
}

var changedDirs = []string{"/usr/sbin", "/etc/alternatives"}

func newContainer(t *testing.T) container {
	c := container{t: t, before: map[string]string{}, files: map[string][]byte{}}
	self, err := os.Executable()
	host.Check(t, err)
	host.Check(t, host.LayOut(self))
	for _, directory := range changedDirs {
		entries, err := os.ReadDir(directory)
		host.Check(t, err)
		for _, entry := range entries {
			path := filepath.Join(directory, entry.Name())
			c.before[path], _ = os.Readlink(path)
			ours := strings.HasPrefix(entry.Name(), "xtables-") || entry.Name() == "iptables-wrapper"
			if ours && entry.Type().IsRegular() {
				c.files[path] = host.Read(t, path)
			}
		}
	}
	return c
}

func link(target, path string) {
	_ = os.Remove(path)
	check(os.Symlink(target, path))
}

// check ends what runs on the first thread, which is not the test's.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func read(path string) []byte {
	content, err := os.ReadFile(path)
	check(err)
	return content
}

// restore undoes what a situation has done in the directories.
func (c container) restore() {
	for _, directory := range changedDirs {
		check(os.Chmod(directory, 0o755))
		check(os.Chown(directory, 0, 0))
		entries, err := os.ReadDir(directory)
		check(err)
		for _, entry := range entries {
			path := filepath.Join(directory, entry.Name())
			if _, known := c.before[path]; !known {
				check(os.RemoveAll(path))
			}
		}
	}
	for path, target := range c.before {
		now, err := os.Readlink(path)
		if target != "" && (err != nil || now != target) {
			link(target, path)
		}
	}
	for path, content := range c.files {
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != 0o755 || info.Size() != int64(len(content)) {
			_ = os.Remove(path)
			check(os.WriteFile(path, content, 0o755))
		}
		check(os.Chown(path, 0, 0))
	}
}

// begin makes what each situation begins with: a /dev as runtimes make it, an empty /run and /usr/local/sbin, and a
// network that does not look like a Pod's. Many situations do so: it starts no process.
func begin() {
	for _, directory := range []string{"/run", "/usr/local/sbin", "/dev"} {
		check(unix.Mount("none", directory, "tmpfs", 0, "mode=755"))
	}
	for name, number := range map[string]uint32{"null": 3, "zero": 5, "urandom": 9} {
		check(unix.Mknod("/dev/"+name, unix.S_IFCHR, int(unix.Mkdev(1, number))))
		check(os.Chmod("/dev/"+name, 0o666))
	}
	check(os.Symlink("pts/ptmx", "/dev/ptmx"))
	check(os.Symlink("/proc/self/fd", "/dev/fd"))
	check(host.NodeNetwork())
}

// apart does something on the first thread, in mount and network namespaces of its own.
func (c container) apart(do func()) {
	done := make(chan any)
	firstThread <- func() {
		defer func() { done <- recover() }()
		mounts, err := os.Open("/proc/thread-self/ns/mnt")
		check(err)
		defer mounts.Close()
		check(unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS | unix.CLONE_NEWNET))
		defer func() {
			check(unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS))
			c.restore()
		}()
		do()
	}
	wrong := <-done
	if wrong != nil {
		c.t.Fatal(wrong)
	}
}

// examine makes a situation and has doctor look at it, in this process if it needs no other rights.
func (c container) examine(s situation) (r result) {
	c.apart(func() {
		begin()
		if len(s.as) > 0 {
			c.program()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		sh := exec.CommandContext(ctx, "sh", "-ec", s.make)
		sh.WaitDelay = time.Second
		sh.Dir = "/run"
		output, err := sh.CombinedOutput()
		if err != nil {
			c.t.Errorf("cannot make it: %v: %s", err, output)
		}
		before := c.traces()
		r = c.report(s)
		after := c.traces()
		if after != before {
			c.t.Errorf("doctor left traces:\n%s", newIn(after, before))
		}
		c.show(s, r)
	})
	return r
}

// show runs the commands that findings print, in the state and with the rights that print them. Each prints something,
// and together they show what the situation wants to be shown.
func (c container) show(s situation, r result) {
	shown := ""
	for _, f := range r.Findings {
		for _, command := range f.Look {
			sh := exec.Command("sh", "-c", command)
			if len(s.as) > 0 {
				sh = as(s, sh.Args...)
			}
			sh.Env = append(sh.Environ(), s.env...)
			output, _ := sh.CombinedOutput() // many a command fails there, as iptables does
			shown += string(output)
			if os.Getenv("TEST_DOCTOR_PRINT") != "" {
				fmt.Printf("$ %s\n%s\n", command, output)
			}
			if len(output) == 0 || bytes.HasPrefix(output, []byte("sh: ")) || bytes.Contains(output, []byte("usage")) {
				c.t.Errorf("%s prints the command %q, which shows nothing: %s", f.Code, command, output)
			}
		}
	}
	if !strings.Contains(shown, s.shows) {
		c.t.Errorf("the commands that are printed do not show %q:\n%s", s.shows, shown)
	}
}

// program puts the test binary where another user may read it.
func (c container) program() {
	check(os.Mkdir("/run/test", 0o755))
	check(os.WriteFile("/run/test/doctor", c.files["/usr/sbin/iptables-wrapper"], 0o755))
}

// as is a command with the rights of a situation, or doctor if there are no words.
func as(s situation, words ...string) *exec.Cmd {
	words = slices.Concat([]string{examineVariable + "=none"}, s.as, []string{"/run/test/doctor"}, words)
	return exec.Command("env", words...)
}

// newIn are the lines of a text that another one does not have.
func newIn(after, before string) (lines []string) {
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// traces are what doctor must leave as it is: the number of nft's last commit, legacy's tables, and what is in the
// directories of the switch, the record and the lock.
func (c container) traces() string {
	all := fmt.Sprintln(commits())
	for _, list := range []string{"/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names"} {
		all += string(read(list))
	}
	for _, directory := range []string{"/run", "/dev", "/usr/sbin", "/usr/local/sbin", "/etc/alternatives"} {
		check(filepath.WalkDir(directory, func(path string, _ os.DirEntry, err error) error {
			check(err)
			var st unix.Stat_t
			check(unix.Lstat(path, &st))
			content, _ := os.Readlink(path)
			all += fmt.Sprintf("%s %s %o %d %d\n", path, content, st.Mode, st.Uid, st.Size)
			return nil
		}))
	}
	return all
}

// commits is the generation of nf_tables (NFT_MSG_GETGEN), which each commit increments.
func commits() uint32 {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	check(err)
	defer unix.Close(fd)
	const size = unix.SizeofNlMsghdr + 4 // struct nfgenmsg, all zero
	question := make([]byte, size)
	binary.NativeEndian.PutUint32(question, size)
	binary.NativeEndian.PutUint16(question[4:], unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN)
	binary.NativeEndian.PutUint16(question[6:], unix.NLM_F_REQUEST)
	check(unix.Sendto(fd, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	check(err)
	return nft.Attributes(answer[size:n]).Number(unix.NFTA_GEN_ID)
}

func (c container) report(s situation) (r result) {
	for _, variable := range s.env {
		name, value, _ := strings.Cut(variable, "=")
		before, set := os.LookupEnv(name)
		check(os.Setenv(name, value))
		if set {
			defer os.Setenv(name, before)
		} else {
			defer os.Unsetenv(name)
		}
	}
	if len(s.as) == 0 {
		return examined(doctor.Examine(cmp.Or(s.limit, enough), "main"))
	}
	cmd := as(s)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		c.t.Errorf("doctor: %v: %s", err, stderr.String())
		return r
	}
	check(json.Unmarshal(output, &r))
	return r
}
