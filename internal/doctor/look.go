// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// lookAtNames looks at the six commands in the directory.
func (r *Report) lookAtNames(n layout.Names, dir string) {
	r.Names = n.Look(dir)
	for _, s := range r.Names {
		path := programs.Join(dir, s.Name)
		_, err := n.Tree.Lstat(path)
		if tree.IsNotExist(err) {
			r.absent = append(r.absent, s.Name)
		}
		r.claimed = cmp.Or(r.claimed, n.Ours(path))
		if s.Wrapper || s.Switched {
			r.unwritable = cmp.Or(r.unwritable, s.Unwritable)
		}
	}
}

// lookAtClient looks at the iptables that PATH finds first, and who else could replace it, if it is in the directory.
func (r *Report) lookAtClient(n layout.Names, dir string) {
	r.Client = here.Client(n)
	if r.Client != "" && n.Tree.SameFile(programs.Dir(r.Client), dir) {
		r.open = changeable(n.Tree, r.Client)
		r.exposed = n.Tree.Exposed(dir) != ""
	}
}

// whyForgetful says why this user can neither make the memory nor remove it.
func (r *Report) whyForgetful(n layout.Names) error {
	m := n.Memory()
	if r.Here.How == here.Remembered && m.Path() != m.Own() {
		return memory.ErrRoots
	}
	return m.Unwritable()
}

// origin says where the switch comes from, if it was there before this container.
func (r *Report) origin(n layout.Names, dir string) (image, volume bool) {
	readOnly := errors.Is(r.unwritable, unix.EROFS)
	unknown := r.strangers && r.unwritable != nil
	if !olderThanProcess1(n, dir) && !readOnly && !unknown {
		return false, false
	}
	st, err := n.Tree.Stat(dir)
	root, noRoot := n.Tree.Stat("/")
	if err == nil && noRoot == nil && st.Dev != root.Dev {
		return false, true
	}
	return true, false
}

// olderThanProcess1 reports whether the switch in a directory is older than process 1.
func olderThanProcess1(n layout.Names, dir string) bool {
	sw, err := n.Tree.Lstat(programs.Join(dir, layout.Switch))
	if err != nil {
		return false
	}
	start, known := startOfProcess1(n)
	const tick = 10 * time.Millisecond
	return known && time.Unix(sw.Ctim.Unix()).Before(start.Add(-tick))
}

// startOfProcess1 is known in ticks of 10 ms since the boot.
func startOfProcess1(n layout.Names) (start time.Time, known bool) {
	started, err := strconv.ParseInt(n.Container.Life.Start, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	var sinceBoot unix.Timespec
	err = unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot)
	if err != nil {
		return time.Time{}, false
	}
	boot := time.Now().Add(-time.Duration(sinceBoot.Nano()))
	return boot.Add(time.Duration(started) * 10 * time.Millisecond), true
}

// askClient finds out what the iptables that PATH finds runs, where it is not iptables' own program: a script, for
// example. Where that turns out to run the commands in the wrapper's own directory, the report is about these.
func (r Report) askClient(n layout.Names, dir string, q detect.Query) (report Report, about string) {
	if !r.mayStart(n.Tree, programs.Join(dir, "iptables")) {
		return r, dir
	}
	backend, wrapped := ask(r.Here.Program)
	r.Here.Backend = backend
	r.Here.Differs = r.Host.Conclusive && backend != "" && backend != r.Host.Mode
	own, err := n.Dir()
	if err != nil || r.dirArgument == "" {
		return r, dir
	}
	behind := glance(n, own, q)
	if wrapped || behind.Here.How == here.Switch && behind.Here.Backend == backend {
		return behind, own
	}
	return r, dir
}

// ask has a program that is not iptables' own say which backend it runs; "" if it does not say, or if it runs the
// wrapper, because that follows the variable. A call with the variable neither reads nor stores anything.
func ask(program string) (backend detect.Mode, wrapped bool) {
	before := os.Getenv(programs.ModeVariable)
	defer os.Setenv(programs.ModeVariable, before) // empty is as good as none
	var said []detect.Mode
	for _, mode := range programs.Modes() {
		os.Setenv(programs.ModeVariable, string(mode))
		said = append(said, versionOf(program))
	}
	if said[0] == said[1] {
		return said[0], false
	}
	return "", slices.Equal(said, programs.Modes())
}
