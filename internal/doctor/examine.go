// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Examine looks at everything and writes no rule. It runs iptables' programs for their versions and to list tables, and
// the kernel may load the modules of what it is asked for. override is what the environment asks for, if it may.
func Examine(n layout.Names, dir string, override detect.Mode) Report {
	q := detect.Query{Override: override, DryRun: true, NAT: true, Everything: true}
	r := glance(n, dir, q)
	if r.Here.How == here.NotWrapped && r.Here.Backend == "" && r.open == "" {
		backend, wrapped := ask(r.Here.Program)
		r.Here.Backend, r.Here.Differs = backend, r.Host.Conclusive && backend != "" && backend != r.Host.Mode
		if own, err := n.Dir(); err == nil && r.dirArgument != "" {
			behind := glance(n, own, q)
			if wrapped || behind.Here.How == here.Switch && behind.Here.Backend == backend { // such as a script that calls it
				r, dir = behind, own
			}
		}
	}
	r.bypasses = slices.DeleteFunc(n.Others(dir), func(path string) bool {
		c, err := n.Tree.Follow(path)
		return err != nil || !r.Host.Conclusive || c.Mode() == r.Host.Mode
	})
	r.Capabilities = capabilities()
	r.programs(n, dir)
	r.lock = r.lockError(n.Self.Trusted())

	// Only now: legacy's program loads x_tables where it can.
	legacy := r.Host.Of(detect.Legacy, detect.IPv4)
	r.canLoad = legacy.Supported != detect.Unknown || legacy.Err != nil ||
		detect.Query{Everything: true}.Run().Of(detect.Legacy, detect.IPv4).Supported != detect.Unknown
	r.Diagnose()
	return r
}

// Glance is what Examine finds out without starting a process, in milliseconds: only the findings of Stale are right.
func Glance(n layout.Names, dir string, override detect.Mode) Report {
	r := glance(n, dir, detect.Query{Override: override})
	r.Findings = r.diagnose(nil, r.backend(), nil)
	return r
}

func glance(n layout.Names, dir string, q detect.Query) Report {
	r := Report{Version: Version, Unreadable: []string{}, distrusted: !n.Self.Trusted(), user: os.Geteuid()}
	r.Here, r.Host = here.Look(n, dir, q, here.Ask(n, dir, q))
	r.Network = here.ThisNetwork(n.Container, r.Host)
	r.Variable, _ = programs.ParseMode(os.Getenv(programs.ModeVariable))
	r.Names = n.Look(dir)
	for _, s := range r.Names {
		path := programs.Join(dir, s.Name)
		if _, err := n.Tree.Lstat(path); tree.IsNotExist(err) {
			r.absent = append(r.absent, s.Name)
		}
		r.claimed = cmp.Or(r.claimed, n.Ours(path))
		if s.Wrapper || s.Switched {
			r.unwritable = cmp.Or(r.unwritable, s.Unwritable)
		}
	}
	r.Client = here.Client(n)
	first, _ := here.Dir(n)
	own, _ := n.Dir()
	if !n.Tree.SameFile(first, dir) || !n.Tree.SameFile(own, dir) {
		r.dirArgument = " --dir " + dir
		if n.Tree.SameFile(programs.Dir(r.Client), dir) {
			r.open = open(n, r.Client)
		}
	}
	m, in := n.Memory(), n.Container
	if r.forgetful = m.Unwritable(); m.Path() != m.Own() {
		r.forgetful = memory.ErrRoots
	}
	r.strangers = !in.Own() && !(in.OwnNetns == detect.No && in.OwnRoot == detect.Yes) // as in ip netns exec
	if older(n, dir) || errors.Is(r.unwritable, unix.EROFS) || r.strangers && r.unwritable != nil {
		st, err := n.Tree.Stat(dir)
		root, _ := n.Tree.Stat("/")
		r.volume = err == nil && st.Dev != root.Dev
		r.image = !r.volume
	}
	ids, _ := os.ReadFile("/proc/self/uid_map") // the first user namespace maps each ID to itself
	r.userNamespace = !slices.Equal(strings.Fields(string(ids)), []string{"0", "0", "4294967295"})
	return r
}

func capabilities() []Capability {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only
	has := func(bit int) bool { return data[bit/32].Effective&(1<<(bit%32)) != 0 }
	return []Capability{
		{"CAP_NET_ADMIN", has(unix.CAP_NET_ADMIN), "reading and changing rules"},
		{"CAP_NET_RAW", has(unix.CAP_NET_RAW), "iptables-legacy"},
	}
}

// open is a directory in which somebody but root could replace the file that a path points to: nothing is started there.
func open(n layout.Names, path string) string {
	c, _ := n.Tree.Follow(path)
	for _, hop := range c.Hops {
		if dir := n.Tree.Exposed(programs.Dir(hop)); dir != "" {
			return dir
		}
	}
	return ""
}

// ask has a program that is not iptables' own say which backend it runs; "" if it does not say, or if it runs the wrapper,
// because that follows the variable. A call with the variable neither reads nor stores anything.
func ask(program string) (backend detect.Mode, wrapped bool) {
	defer os.Setenv(programs.ModeVariable, os.Getenv(programs.ModeVariable)) // empty is as good as none
	said := map[detect.Mode]detect.Mode{}
	for _, mode := range programs.Modes() {
		os.Setenv(programs.ModeVariable, string(mode))
		line, _, _ := install.Output(program, "iptables", "--version")
		var version, backend string
		if n, _ := fmt.Sscanf(line, "iptables v%s (%s", &version, &backend); n == 2 {
			said[mode] = map[string]detect.Mode{"nf_tables)": detect.NFT, "legacy)": detect.Legacy}[backend]
		}
	}
	nft, legacy := said[detect.NFT], said[detect.Legacy]
	if nft == legacy {
		return nft, false
	}
	return "", nft == detect.NFT && legacy == detect.Legacy
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
