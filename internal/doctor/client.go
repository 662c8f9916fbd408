// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// open says why somebody but root could replace the file that a path points to: nothing is started there.
func open(n layout.Names, path string) error {
	c, err := n.Tree.Follow(path)
	if err != nil {
		return err
	}
	for _, hop := range c.Hops {
		var fs unix.Statfs_t
		if dir := n.Tree.Exposed(programs.Dir(hop)); dir != "" && (unix.Statfs(dir, &fs) != nil || fs.Flags&unix.ST_RDONLY == 0) {
			return fmt.Errorf("%s can be changed by others", dir)
		}
	}
	return nil
}

// bypasses are the paths in other directories that run the backend which the host is known not to use.
func bypasses(n layout.Names, dir string, host detect.Result) []string {
	return slices.DeleteFunc(n.Others(dir), func(path string) bool {
		c, err := n.Tree.Follow(path)
		return err != nil || !host.Conclusive || c.Mode() == "" || c.Mode() == host.Mode
	})
}

// ask has a program that is not iptables' own say which backend it runs; "" if it does not say, or if it runs the wrapper,
// because that follows the variable. A call with the variable neither reads nor stores anything.
func ask(program string) (backend detect.Mode, wrapped bool) {
	old, set := os.LookupEnv(programs.ModeVariable)
	said := map[detect.Mode]detect.Mode{}
	for _, mode := range programs.Modes() {
		os.Setenv(programs.ModeVariable, string(mode))
		line, _, _ := install.Output(program, "iptables", "--version")
		for word, backend := range map[string]detect.Mode{"(nf_tables)": detect.NFT, "(legacy)": detect.Legacy} {
			if strings.HasPrefix(line, "iptables v") && strings.Contains(line, word) {
				said[mode] = backend
			}
		}
	}
	if os.Unsetenv(programs.ModeVariable); set {
		os.Setenv(programs.ModeVariable, old)
	}
	if said[detect.NFT] != said[detect.Legacy] {
		return "", said[detect.NFT] == detect.NFT && said[detect.Legacy] == detect.Legacy
	}
	return said[detect.NFT], false
}

// older reports whether the switch in a directory is older than process 1.
func older(n layout.Names, dir string) bool {
	sw, noSwitch := n.Tree.Lstat(programs.Join(dir, layout.Switch))
	ticks, _, _ := strings.Cut(n.Container.Instance, ".") // of process 1, of 10 ms, since the boot
	started, err := strconv.ParseInt(ticks, 10, 64)
	var now unix.Timespec
	if err != nil || noSwitch != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return false
	}
	start := time.Now().Add(time.Duration(started)*10*time.Millisecond - time.Duration(now.Nano()))
	return time.Unix(sw.Ctim.Unix()).Before(start.Add(-10 * time.Millisecond))
}

// inUserNamespace reports whether this process is in another user namespace than the first one, which maps every ID to itself.
func inUserNamespace() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || !slices.Equal(strings.Fields(string(ids)), []string{"0", "0", "4294967295"})
}

// lockError says why iptables-legacy could not lock its tables: it opens a file for that and creates it if there is none.
func (r *Report) lockError(trusted bool) error {
	path := os.Getenv("XTABLES_LOCKFILE")
	if path == "" || !trusted {
		path = "/run/xtables.lock"
	}
	c, err := tree.Tree{}.Follow(path)
	switch {
	case tree.IsNotExist(err): // it is created where the links point
		err = access(programs.Dir(c.End), unix.W_OK)
	case err == nil && c.Stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		err = unix.EISDIR
	case err == nil:
		if err = access(path, unix.R_OK); err == nil && r.wanted() == detect.Legacy {
			r.holder = holder(path, c.Stat.Ino)
		}
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return nil
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
