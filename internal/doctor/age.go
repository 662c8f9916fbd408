// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

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
