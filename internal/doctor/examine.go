// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/extensions"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
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
	if r.Here.How == here.NotWrapped && r.Here.Backend == "" {
		r, dir = r.askClient(n, dir, q)
	}
	r.says = r.askNames(n, dir)
	r.bypasses = r.lookForBypasses(n, dir)
	r.Capabilities = capabilities()
	r.lookAtPrograms(n, dir)
	r.onlyWrapper = onlyWrapper(n.Tree) && len(r.absent) == len(r.Names)
	r.covered = covered(n)
	r.lookForLibraries(n.Tree)
	// Only now: iptables-legacy was started, and loads the modules whose lists in /proc are read here.
	r.Extensions = extensions.Look(r.Host.Of(detect.NFT, detect.IPv4).Supported != detect.No)
	r.saveOther(n, dir)
	r.lookAtLock()
	r.canLoad = r.xtablesCanLoad() // only now: legacy's program loads x_tables where it can
	r.Diagnose()
	return r
}

// Stale returns the finding that a new container of the same Pod would not have. It starts no process, and takes
// milliseconds.
func Stale(n layout.Names, dir string, override detect.Mode) *Finding {
	r := glance(n, dir, detect.Query{Override: override})
	r.Findings = r.diagnose(nil, r.backendRules(), nil)
	return r.stale()
}

// glance looks at what can be seen without starting anything.
func glance(n layout.Names, dir string, q detect.Query) Report {
	r := Report{
		Version:       Version,
		Capabilities:  []string{},
		Unreadable:    []string{},
		user:          os.Geteuid(),
		distrusted:    !n.Self.Trusted(),
		userNamespace: !memory.MapsAll(),
		otherProcess1: otherProcess1(n),
	}
	r.Here, r.Host = here.Look(n, dir, q, here.Ask(n, dir, q))
	r.Network = here.ThisNetwork(n.Container, r.Host)
	r.Variable, r.badVariable = variable()
	r.noNewRights = noNewRights()
	r.dirArgument = dirArgument(n, dir)
	r.lookAtNames(n, dir)
	r.lookAtClient(n, dir)
	r.rewritable = rewritable(n, r.Names)
	r.noMemory = r.whyNoMemory(n)
	r.inImage, r.inVolume = r.origin(n, dir)
	return r
}

// otherProcess1 reports that process 1 is not this container's, or that this is unknown. In ip netns exec, it is
// this container's, and only the network is another one.
func otherProcess1(n layout.Names) bool {
	c := n.Container
	otherNetwork := c.OwnNetns == detect.No && c.OwnRoot == detect.Yes
	return !c.Own() && !otherNetwork
}

// dirArgument is what a command needs to be about a directory: nothing, if it would take that one anyway.
func dirArgument(n layout.Names, dir string) string {
	first, _ := here.Dir(n)
	own, _ := n.Dir()
	if n.Tree.SameFile(first, dir) && n.Tree.SameFile(own, dir) {
		return ""
	}
	return " --dir " + word(dir)
}

// variable is what the environment asks for, or its value, if that is not a valid mode.
func variable() (mode detect.Mode, bad string) {
	value := os.Getenv(programs.ModeVariable)
	mode, err := programs.ParseMode(value)
	if err != nil {
		return "", value
	}
	return mode, ""
}

// noNewRights reports that executing a file gives no capabilities: allowPrivilegeEscalation: false, see
// PR_SET_NO_NEW_PRIVS in prctl(2). A file that has some could not even be executed here if they were not in the
// bounding set.
func noNewRights() bool {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err == nil && set == 1
}

// onlyWrapper reports that there is no system beside the wrapper, as in the published image.
func onlyWrapper(t tree.Tree) bool {
	for _, dir := range []string{"/usr", "/bin", "/sbin"} {
		_, err := t.Lstat(dir)
		if !tree.IsNotExist(err) {
			return false
		}
	}
	return true
}

// capabilities are those that this process has, of the two that iptables needs.
func capabilities() []string {
	has := []string{}
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only
	if data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0 {
		has = append(has, netAdmin)
	}
	if data[0].Effective&(1<<unix.CAP_NET_RAW) != 0 {
		has = append(has, netRaw)
	}
	return has
}

// xtablesCanLoad reports that x_tables were there from the beginning, or have been loaded since, or that this cannot be
// known. Until they are loaded, it is unknown whether there are any.
func (r *Report) xtablesCanLoad() bool {
	loaded := func(host detect.Result) bool {
		return host.Of(detect.Legacy, detect.IPv4).Supported != detect.Unknown
	}
	if loaded(r.Host) || r.failed(nil) != "" {
		return true
	}
	return loaded(detect.Query{Everything: true}.Run())
}
