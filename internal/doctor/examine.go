// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
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
	if r.Here.How == here.NotWrapped && r.Here.Backend == "" && r.mayStart(n.Tree, programs.Join(dir, "iptables")) {
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
		return err != nil || !r.Host.Conclusive || c.Mode() == "" || c.Mode() == r.Host.Mode
	})
	var data [2]unix.CapUserData
	_ = unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]) // fails for a wrong version only
	for i, name := range []string{unix.CAP_NET_ADMIN: netAdmin, unix.CAP_NET_RAW: netRaw} {
		if name != "" && data[0].Effective&(1<<i) != 0 {
			r.Capabilities = append(r.Capabilities, name)
		}
	}
	r.programs(n, dir)
	r.lock = r.lockError()

	// Only now: legacy's program loads x_tables where it can.
	unknown := func(host detect.Result) bool { return host.Of(detect.Legacy, detect.IPv4).Supported == detect.Unknown }
	r.canLoad = !unknown(r.Host) || r.failed(nil) != "" || !unknown(detect.Query{Everything: true}.Run())
	r.Diagnose()
	return r
}

// Stale returns the finding that a new container of the same Pod would not have. It starts no process, and takes milliseconds.
func Stale(n layout.Names, dir string, override detect.Mode) *Finding {
	r := glance(n, dir, detect.Query{Override: override})
	r.Findings = r.diagnose(nil, r.backend(), nil)
	return r.stale()
}

func glance(n layout.Names, dir string, q detect.Query) Report {
	r := Report{Version: Version, Capabilities: []string{}, Unreadable: []string{}, distrusted: !n.Self.Trusted(), user: os.Geteuid()}
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
		r.dirArgument = " --dir " + word(dir)
	}
	if r.Client != "" && n.Tree.SameFile(programs.Dir(r.Client), dir) {
		r.open = changeable(n.Tree, r.Client)
		r.exposed = n.Tree.Exposed(dir) != ""
	}
	r.rewritable = rewritable(n, r.Names)
	m, in := n.Memory(), n.Container
	if r.forgetful = m.Unwritable(); r.Here.How == here.Remembered && m.Path() != m.Own() {
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

// ask has a program that is not iptables' own say which backend it runs; "" if it does not say, or if it runs the wrapper,
// because that follows the variable. A call with the variable neither reads nor stores anything.
func ask(program string) (backend detect.Mode, wrapped bool) {
	defer os.Setenv(programs.ModeVariable, os.Getenv(programs.ModeVariable)) // empty is as good as none
	var said [2]detect.Mode
	for i, mode := range programs.Modes() {
		os.Setenv(programs.ModeVariable, string(mode))
		line, _, _ := install.Output(program, "iptables", "--version")
		var version, backend string
		if n, _ := fmt.Sscanf(line, "iptables v%s (%s", &version, &backend); n == 2 {
			said[i] = map[string]detect.Mode{"nf_tables)": detect.NFT, "legacy)": detect.Legacy}[backend]
		}
	}
	if said[0] == said[1] {
		return said[0], false
	}
	return "", slices.Equal(said[:], programs.Modes())
}

// older reports whether the switch in a directory is older than process 1.
func older(n layout.Names, dir string) bool {
	sw, noSwitch := n.Tree.Lstat(programs.Join(dir, layout.Switch))
	ticks, _, _ := strings.Cut(n.Container.Instance, ".") // from the boot to the start of process 1, of 10 ms each
	started, err := strconv.ParseInt(ticks, 10, 64)
	var now unix.Timespec
	if err != nil || noSwitch != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return false
	}
	start := time.Now().Add(time.Duration(started)*10*time.Millisecond - time.Duration(now.Nano()))
	return time.Unix(sw.Ctim.Unix()).Before(start.Add(-10 * time.Millisecond))
}

// programs looks at what runs in each mode.
func (r *Report) programs(n layout.Names, dir string) {
	own, _ := n.Self.Path()
	wrapper, noFile := install.Capabilities(n.Tree, own)
	r.wrapperCaps = wrapper != ""
	for _, mode := range programs.Modes() {
		if path, err := n.Find(dir, mode, "iptables"); err == nil && !r.mayStart(n.Tree, path) {
			r.Programs = append(r.Programs, Program{Mode: mode, Path: path, Error: "not started: others than root could replace it"})
			continue
		}
		path, version, err := install.Programs(n, dir, mode)
		if err == nil { // without its libraries a program has no match and no target
			if _, stderr, loadErr := install.Output(path, "iptables", "-m", "comment", "-h"); loadErr != nil {
				err = fmt.Errorf("%q cannot load its extensions: %w: %s", path, loadErr, stderr)
			}
		}
		p := Program{Mode: mode, Path: path, Version: version}
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
