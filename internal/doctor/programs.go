// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// programs looks at what runs in each mode.
func (r *Report) programs(n layout.Names, dir string) {
	own, _ := n.Self.Path()
	wrapper, noFile := install.Capabilities(n.Tree, own)
	r.wrapperCaps = wrapper != ""
	for _, mode := range programs.Modes() {
		p := Program{Mode: mode}
		var err error
		if p.Path, p.Version, err = install.Programs(n, dir, mode); err == nil {
			// Without its libraries a program has no match and no target.
			if _, stderr, loadErr := install.Output(p.Path, "iptables", "-m", "comment", "-h"); loadErr != nil {
				err = fmt.Errorf("%q cannot load its extensions: %w: %s", p.Path, loadErr, stderr)
			}
		}
		if err != nil {
			// One missing program is reported, not all six.
			p.Error, _, _ = strings.Cut(err.Error(), "\n")
		} else if mode == detect.NFT {
			for i, name := range []string{"iptables-save", "ip6tables-save"} {
				if family := []detect.Family{detect.IPv4, detect.IPv6}[i]; len(r.Host.Of(mode, family).Tables) > 0 {
					stdout, stderr, err := install.Output(p.Path, name)
					r.listed(name, stdout, stderr, err)
				}
			}
		}
		r.Programs = append(r.Programs, p)
		if has, err := install.Capabilities(n.Tree, p.Path); err == nil && noFile == nil && has != wrapper {
			r.fileCaps = append(r.fileCaps, p.Path)
		}
	}
}

// listed looks at what a listing printed. What iptables-nft cannot list it mentions in a comment, and ends with status 0.
// Another failure has nothing to do with tables that others created. A listing that we ended was only a long one.
func (r *Report) listed(name, stdout, stderr string, err error) {
	for line := range strings.Lines(stdout + stderr) {
		if strings.HasPrefix(line, "#") && strings.Contains(line, "incompatible") {
			r.Unreadable = append(r.Unreadable, fmt.Sprintf("%s: %s", name, strings.TrimSpace(strings.TrimPrefix(line, "#"))))
		}
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		r.unlisted = append(r.unlisted, fmt.Sprintf("%s: %v: %s", name, err, stderr))
	}
}

// lockError says why iptables-legacy could not lock its tables: it opens a file for that and creates it if there is none.
func (r *Report) lockError(trusted bool) error {
	path := os.Getenv("XTABLES_LOCKFILE")
	if path == "" || !trusted {
		path = "/run/xtables.lock"
	}
	var t tree.Tree
	c, err := t.Follow(path)
	switch {
	case tree.IsNotExist(err): // it is created where the links point
		return t.Access(programs.Dir(c.End), unix.W_OK)
	case err == nil && c.Stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return &os.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	case err == nil:
		if err = t.Access(path, unix.R_OK); err == nil && r.wanted() == detect.Legacy {
			r.holder = holder(path, c.Stat.Ino)
		}
	}
	return err
}

// holder says who has held a lock for a second, which is longer than a command of iptables takes; "" if nobody has.
func holder(path string, inode uint64) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd) // which unlocks it
	for range 20 {
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK {
			return ""
		}
		time.Sleep(50 * time.Millisecond)
	}
	who := "a process outside this container"
	locks, _ := os.ReadFile("/proc/locks") // 1: FLOCK  ADVISORY  WRITE 1234 00:19:5678 0 EOF
	for line := range strings.Lines(string(locks)) {
		if f := strings.Fields(line); len(f) > 5 && f[1] == "FLOCK" && strings.HasSuffix(f[5], fmt.Sprint(":", inode)) {
			name, _ := os.ReadFile("/proc/" + f[4] + "/comm")
			who = fmt.Sprintf("process %s (%s)", f[4], strings.TrimSpace(string(name)))
		}
	}
	return who + " holds " + path
}
