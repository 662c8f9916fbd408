// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// found is what find(1) is to say of a file.
const found = "%p %l %s %i %m %u\n"

// attacker is a user without capabilities.
const attacker = 1000

// attack has a thread of that user do something over and over until stop is called. To the kernel, a thread has a
// user of its own.
func attack(t *testing.T, step func()) (stop func()) {
	t.Helper()
	end := make(chan bool)
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends
		for _, call := range []uintptr{unix.SYS_SETGROUPS, unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			id := uintptr(attacker)
			if call == unix.SYS_SETGROUPS {
				id = 0 // none
			}
			if _, _, err := unix.RawSyscall(call, id, id, id); err != 0 {
				ended <- err
				return
			}
		}
		for {
			select {
			case <-end:
				ended <- nil
				return
			default:
				step()
			}
		}
	}()
	return func() {
		t.Helper()
		close(end)
		host.Check(t, <-ended)
	}
}

// exchange makes two paths change places. It fails while one of them does not exist.
func exchange(a, b string) {
	_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// usersTree makes a root file system of the attacker's with both programs in it, and returns its path.
func usersTree(t *testing.T) string {
	t.Helper()
	host.Run(t, "sh", "-ec", `mkdir -p /run/user/tree/usr/sbin
		for mode in nft legacy; do cp /usr/sbin/xtables-$mode-multi /run/user/tree/usr/sbin; done
		chown -R 1000:1000 /run/user`)
	return "/run/user/tree"
}

// attribute returns the file capabilities of a file, "" if it has none.
func attribute(path string) string {
	value := make([]byte, 64)
	n, err := unix.Lgetxattr(path, "security.capability", value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// Root installs into the tree of a user who makes another file of the one to which install gives the programs'
// capabilities. No file of the tree gets any.
func TestAttackCapabilities(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, wrapperFile)
	tree := usersTree(t)
	sbin := tree + "/usr/sbin"
	for _, program := range []string{"xtables-nft-multi", "xtables-legacy-multi"} {
		host.Run(t, "setcap", "cap_net_admin,cap_net_raw,cap_setuid=ep", filepath.Join(sbin, program))
	}
	host.Run(t, "sh", "-ec", "cp /bin/true "+tree+"/mine; chown 1000 "+tree+"/mine")
	mine := host.Read(t, tree+"/mine")
	stop := attack(t, func() {
		if unix.Access(sbin+"/.iptables-wrapper.new", unix.F_OK) == nil {
			_ = os.Rename(tree+"/mine", sbin+"/.iptables-wrapper.new")
			_ = os.WriteFile(tree+"/mine", mine, 0o755)
		}
	})
	defer stop()
	for range host.Number(20, 100) {
		output, err := exec.Command("iptables-wrapper", "install", "--root", tree, "--skip-checks").CombinedOutput()
		if !bytes.Contains(output, []byte("cannot give the wrapper the file capabilities")) || err == nil {
			t.Fatalf("it was not refused: %v: %s", err, output)
		}
		files, err := filepath.Glob(sbin + "/*")
		host.Check(t, err)
		hidden, err := filepath.Glob(sbin + "/.*")
		host.Check(t, err)
		for _, file := range append(files, hidden...) {
			if value := attribute(file); value != "" && filepath.Base(file)[0] != 'x' {
				t.Fatalf("%s has %x", file, value)
			}
		}
	}
}

// The directory that root names is a user's, who exchanges it and a symlink to the system's root. Nothing is
// installed there.
func TestAttackRoot(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, wrapperFile)
	tree := usersTree(t)
	host.Run(t, "sh", "-ec", `mkdir -p /run/protected/usr/sbin; cp /usr/sbin/xtables-*-multi /run/protected/usr/sbin
		ln -s /run/protected /run/user/link; chown -h 1000 /run/user/link`)
	before := host.Run(t, "find", "/run/protected", "-printf", found)
	stop := attack(t, func() { exchange(tree, "/run/user/link") })
	defer stop()
	succeeded := 0
	for range host.Number(15, 150) {
		output, err := exec.Command("iptables-wrapper", "install", "--root", tree, "--skip-checks").CombinedOutput()
		if err == nil {
			succeeded++
		}
		if after := host.Run(t, "find", "/run/protected", "-printf", found); after != before {
			t.Fatalf("%v: %s\nbefore:\n%s\nafter:\n%s", err, output, before, after)
		}
	}
	t.Logf("%d succeeded", succeeded)
}

// Within the tree, the user exchanges the directory of the commands and a symlink to a directory of root's. What
// install finds in one of them it does not replace in the other.
func TestAttackDirectory(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, wrapperFile)
	tree := usersTree(t)
	host.Run(t, "sh", "-ec", `cd /run/user/tree; mkdir roots
		for n in iptables ip6tables-save; do echo mine >roots/$n; done
		cp usr/sbin/xtables-*-multi roots; ln -s ../roots usr/link; chown -h 1000 usr/link`)
	before := host.Run(t, "find", tree+"/roots", "-type", "f", "-name", "ip*s*", "-printf", found)
	succeeded := 0
	for range host.Number(15, 150) {
		stop := attack(t, func() { exchange(tree+"/usr/sbin", tree+"/usr/link") })
		output, err := exec.Command("iptables-wrapper", "install", "--root", tree, "--skip-checks").CombinedOutput()
		stop()
		if err == nil {
			succeeded++
		}
		after := host.Run(t, "find", tree+"/roots", "-type", "f", "-name", "ip*s*", "-printf", found)
		if after != before {
			t.Fatalf("%v: %s\nbefore:\n%s\nafter:\n%s", err, output, before, after)
		}
		host.Run(t, "sh", "-ec", `cd /run/user/tree/usr
			if [ -L sbin ]; then mv sbin other; mv link sbin; mv other link; fi
			find sbin ../roots -name '*iptables-[cw]*' -delete; find sbin ../roots -name 'ip*' -type l -delete`)
	}
	t.Logf("%d succeeded", succeeded)
}

// A directory's path may pass a symlink of root, but none that a user could make lead elsewhere.
func TestLedElsewhere(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	installed(t)
	host.Run(t, "sh", "-ec", `mkdir /run/user; ln -s /usr/sbin /run/user/link; chown -hR 1000:1000 /run/user
		ln -s /run/user/link /run/through; ln -s /usr/sbin /run/roots; chmod 755 /run`)
	for _, command := range []string{"reset", "select --mode nft"} {
		for _, dir := range []string{"/run/user/link", "/run/through"} {
			args := append(strings.Fields(command), "--dir", dir)
			output, err := exec.Command("iptables-wrapper", args...).CombinedOutput()
			if err == nil || !bytes.Contains(output, []byte("another user could make that symlink lead elsewhere")) {
				t.Errorf("%q: %v: %s", args, err, output)
			}
		}
		wantNames(t, wrapperFile)
	}
	host.Run(t, "iptables-wrapper", "select", "--mode", "nft", "--dir", "/run/roots")
	wantNames(t, nftProgram)

	// Nor for a third user, who cannot open the directory behind the link, only look up names in it.
	host.Run(t, "sh", "-ec", `mkdir -m 711 /run/closed
		ln -s /run/closed /run/user/closed; chown -h 1000 /run/user/closed
		for n in $0; do ln -s /usr/sbin/iptables-wrapper /run/closed/$n; done`, strings.Join(names, " "))
	output, err := exec.Command("setpriv", "--reuid=2000", "--regid=2000", "--clear-groups", "iptables-wrapper",
		"select", "--mode", "nft", "--dir", "/run/user/closed").CombinedOutput()
	if err == nil || !bytes.Contains(output, []byte("another user could make that symlink lead elsewhere")) {
		t.Errorf("a third user: %v: %s", err, output)
	}
}

// Root selects in a directory of a user, or calls a command there, while the user exchanges that directory and a
// symlink to one with somebody's iptables. The commands there are neither replaced nor joined by a switch.
func TestAttackSelect(t *testing.T) {
	for doc, script := range map[string]string{
		"select": "iptables-wrapper select --mode nft --dir /run/user/sbin",
		"reset":  "iptables-wrapper reset --dir /run/user/sbin",
		"a call": "/run/user/sbin/iptables -S",
	} {
		t.Run(doc, func(t *testing.T) {
			if !host.Contain(t) {
				return
			}
			host.PutWrapper(t, wrapperFile)
			six := strings.Join(names, " ")
			host.Run(t, "sh", "-ec", `mkdir -p /run/user /run/protected
				cd /run/protected
				cp /usr/sbin/xtables-*-multi .
				for n in $0; do ln -s xtables-legacy-multi $n; done
				cp -a /run/protected /run/fresh
				ln -s /run/protected /run/user/link
				chown -hR 1000:1000 /run/user
				iptables-nft -t mangle -N KUBE-IPTABLES-HINT`, six)
			before := host.Run(t, "find", "/run/protected", "-printf", found)
			for range host.Number(20, 150) {
				host.Run(t, "sh", "-ec", `cd /run/user
					if [ -L sbin ]; then mv link old; mv sbin link; fi
					rm -rf sbin old /dev/shm/iptables-wrapper.*
					cp -a /run/fresh sbin
					for n in $0; do ln -sf /usr/sbin/iptables-wrapper sbin/$n; done
					chown -hR 1000:1000 sbin`, six)
				stop := attack(t, func() { exchange("/run/user/sbin", "/run/user/link") })
				output, err := exec.Command("sh", "-c", script).CombinedOutput()
				stop()
				if after := host.Run(t, "find", "/run/protected", "-printf", found); after != before {
					t.Fatalf("%v: %s\nbefore:\n%s\nafter:\n%s", err, output, before, after)
				}
			}
		})
	}
}

// Root's memory is replaced, and for an instant the user's link has its name. Root does not take what that contains
// for its own.
func TestAttackMemory(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	const link = "/run/shared/link"
	host.Run(t, "mkdir", "-m", "1777", "/run/shared")
	stopUser := attack(t, func() {
		_ = os.Symlink("the user's", link)
		_ = os.Remove(link)
	})
	end := make(chan bool)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_ = os.Symlink("root's", link)
				_ = os.Remove(link)
			}
		}
	}()
	seen := map[string]int{}
	for n := 0; n < host.Number(50_000, 500_000) || len(seen) < 2; n++ {
		st, target, err := tree.Tree{}.StatLink(link)
		if err != nil {
			continue
		}
		seen[target]++
		if (st.Uid == 0) != (target == "root's") {
			t.Errorf("a link of user %d has %q", st.Uid, target)
			break
		}
	}
	stopUser()
	close(end)
	<-ended
	t.Log(seen)
}
