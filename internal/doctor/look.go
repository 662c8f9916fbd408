// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// lookAtNames looks at the six commands in the directory.
func (r *Report) lookAtNames(n layout.Names, dir string) {
	r.Names = n.Look(dir)
	for i, command := range r.Names {
		err := unexecutable(n.Tree, command)
		if err != nil {
			r.Names[i].Error = err.Error()
		}
		if errors.Is(err, unix.EISDIR) {
			r.isDirectory = command.ResolvesTo
		}
		if err != nil && command.Name == "iptables" {
			r.Here.How = here.Missing
			r.Here.Error = err.Error()
		}
	}
	for _, s := range r.Names {
		path := programs.Join(dir, s.Name)
		_, err := n.Tree.Lstat(path)
		if tree.IsNotExist(err) {
			r.absent = append(r.absent, s.Name)
			if here.InPath(n, s.Name) != "" {
				r.elsewhere = append(r.elsewhere, s.Name)
			}
		}
		r.notOurs = cmp.Or(r.notOurs, n.Ours(path))
		if s.Wrapper || s.Switched {
			r.unwritable = cmp.Or(r.unwritable, s.Unwritable)
		}
	}
}

// unexecutable says why nobody can execute that to which a command leads: it is a directory, or a file without the
// permission. docker run -v makes a directory where the file to mount is missing.
func unexecutable(t tree.Tree, command layout.Status) error {
	st, err := t.Stat(command.ResolvesTo)
	isProgram := command.Mode != "" // what is wrong with it is said elsewhere
	if command.Error != "" || isProgram || err != nil {
		return nil
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return tree.PathError("execute", command.ResolvesTo, unix.EISDIR)
	case st.Mode&0o111 == 0:
		return tree.PathError("execute", command.ResolvesTo, unix.EACCES)
	}
	return nil
}

// lookAtClient looks at the iptables that PATH finds first, and who else could replace it, if it is in the directory.
func (r *Report) lookAtClient(n layout.Names, dir string) {
	r.Client = here.Client(n)
	if r.Client == "" && r.Here.How != here.Missing {
		r.outOfPath = dir
	}
	if r.Client != "" && n.Tree.SameFile(programs.Dir(r.Client), dir) {
		_, r.openPath, _ = n.Tree.Settle(r.Client) // "" if that fails: then it cannot be started either
		st, err := n.Tree.Lstat(r.openPath)
		r.openFile = err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
		r.exposed = n.Tree.Exposed(dir) != ""
	}
}

// covered is a standard directory over which an empty volume is mounted.
func covered(n layout.Names) string {
	root, err := n.Tree.Stat("/")
	if err != nil {
		return ""
	}
	for _, dir := range programs.StandardDirs() {
		st, err := n.Tree.Stat(dir)
		if err != nil || st.Dev == root.Dev {
			continue
		}
		empty := true
		err = n.Tree.Scan(dir, func(string) bool {
			empty = false
			return false
		})
		if err == nil && empty {
			return dir
		}
	}
	return ""
}

// whyNoMemory says why this user can neither make the memory nor remove it.
func (r *Report) whyNoMemory(n layout.Names) error {
	m := n.Memory()
	if r.Here.How == here.Remembered && m.Path() != m.Own() {
		return memory.ErrRoots
	}
	return m.Unwritable()
}

// origin says where the switch comes from, if it was there before this container.
func (r *Report) origin(n layout.Names, dir string) (image, volume bool) {
	readOnly := errors.Is(r.unwritable, unix.EROFS)
	unknown := r.otherProcess1 && r.unwritable != nil
	if !olderThanContainer(n, dir) && !readOnly && !unknown {
		return false, false
	}
	st, err := n.Tree.Stat(dir)
	root, noRoot := n.Tree.Stat("/")
	if err == nil && noRoot == nil && st.Dev != root.Dev {
		return false, true
	}
	return true, false
}

// olderThanContainer reports whether the switch in a directory is older than the container.
func olderThanContainer(n layout.Names, dir string) bool {
	sw, err := n.Tree.Lstat(programs.Join(dir, layout.Switch))
	if err != nil {
		return false
	}
	made, known := layerMade()
	if !known {
		made, known = started(n)
	}
	return known && time.Unix(sw.Ctim.Unix()).Before(made)
}

// started says when the container was last started: docker restart counts. A runtime makes the files of /dev then, and
// their time and the switch's are by the same clock, even if somebody has set that since. Where /dev is not the
// container's own, the start of process 1 has to do.
func started(n layout.Names) (start time.Time, known bool) {
	ptmx, err := n.Tree.Lstat("/dev/ptmx")
	if err == nil && tree.IsLink(ptmx) { // in the host's /dev, it is a device
		return time.Unix(ptmx.Ctim.Unix()), true
	}
	return startOfProcess1(n)
}

// layerMade says when the container's own layer was made, if its root is an overlay: the directory into which a
// runtime puts what the container changes is made with the container, and kept when that is started again.
func layerMade() (made time.Time, known bool) {
	var fs unix.Statfs_t
	err := unix.Statfs("/", &fs)
	if err != nil || fs.Type != unix.OVERLAYFS_SUPER_MAGIC {
		return time.Time{}, false
	}
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}, false
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), true
}

// startOfProcess1 is known in ticks since the boot, so this is the earliest time by today's clock.
func startOfProcess1(n layout.Names) (start time.Time, known bool) {
	ticks, err := strconv.ParseInt(n.Container.Life.Start, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	var sinceBoot unix.Timespec
	err = unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot)
	if err != nil {
		return time.Time{}, false
	}
	boot := time.Now().Add(-time.Duration(sinceBoot.Nano()))
	const tick = 10 * time.Millisecond
	return boot.Add(time.Duration(ticks-1) * tick), true
}

// askClient finds out what the iptables that PATH finds runs, where it is not iptables' own program: a script, for
// example. Where that turns out to run the commands in the wrapper's own directory, the report is about these.
func (r Report) askClient(n layout.Names, dir string, q detect.Query) (report Report, about string) {
	says, err := r.ask(n.Tree, programs.Join(dir, "iptables"))
	if err != nil {
		return r, dir
	}
	r.misnamed = says.misnamed
	r.Here.Backend = says.backend
	if says.wrapped {
		r.Here.Backend = cmp.Or(q.Override, r.Host.Mode)
		r.Here.How = here.EachCall
	}
	if says.wrapped && q.Override != "" {
		r.Here.How = here.Variable
	}
	r.Here.Differs = r.Here.Backend != "" && r.hostUses(otherMode(r.Here.Backend))
	own, err := n.Dir()
	if err != nil || r.dirArgument == "" || says.misnamed {
		return r, dir
	}
	behind := glance(n, own, q)
	if says.wrapped || behind.Here.How == here.Switch && behind.Here.Backend == says.backend {
		return behind, own
	}
	return r, dir
}

// said is what a program says about itself.
type said struct {
	backend  detect.Mode // "" if it does not say, or runs the wrapper
	wrapped  bool        // it runs the wrapper, as one of the six commands
	misnamed bool        // it runs the wrapper under another name, which then takes arguments for its own
	other    bool        // it is none of these
}

// askNames has the commands beside iptables say what they run, where that is neither the wrapper nor iptables' own
// program: a script, for example.
func (r *Report) askNames(n layout.Names, dir string) map[string]said {
	says := map[string]said{}
	for _, command := range r.Names[1:] {
		known := command.Wrapper || command.Mode != "" || command.Error != ""
		if known {
			continue
		}
		answer, err := r.ask(n.Tree, programs.Join(dir, command.Name))
		if err == nil {
			says[command.Name] = answer
		}
	}
	return says
}

// ask has a program that is not iptables' own say which backend it runs. The wrapper follows the variable, and a call
// with the variable neither reads nor stores anything. It is an error if the program was not started.
func (r *Report) ask(t tree.Tree, program string) (said, error) {
	before := os.Getenv(programs.ModeVariable)
	defer os.Setenv(programs.ModeVariable, before) // empty is as good as none
	var modes []detect.Mode
	misnamed := false
	for _, mode := range programs.Modes() {
		os.Setenv(programs.ModeVariable, string(mode))
		line, _, err := r.start(t, program, "iptables", "--version")
		if errors.Is(err, errReplaceable) {
			return said{}, err
		}
		modes = append(modes, backendIn(line))
		misnamed = strings.HasPrefix(line, self.WrapperName+" ")
	}
	if modes[0] == modes[1] {
		return said{backend: modes[0], misnamed: misnamed, other: modes[0] == "" && !misnamed}, nil
	}
	return said{wrapped: slices.Equal(modes, programs.Modes())}, nil
}
