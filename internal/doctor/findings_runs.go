// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
)

// Whether iptables runs at all: the permission, the kernel, the program, the lock, the tables.

const (
	installBoth = "In the image, install iptables 1.8.8 or newer with both backends."
	mountLock   = "Mount the host's /run/xtables.lock as a file (hostPath with type: FileOrCreate), or a writable " +
		"/run " +
		"(docker run --tmpfs /run). On the node, a directory of that name comes from a mount without this type: " +
		"take it away."
	showCapabilities = "grep -e Cap -e NoNewPrivs -e Seccomp /proc/self/status"
	showEvidence     = "iptables-wrapper detect -o table"
)

func (f *facts) notPermitted() *Finding {
	found := Finding{Severity: problem, Look: []string{showCapabilities}, Do: addCaps}
	said, printed := f.failed(notPermitted)
	switch {
	case !f.process.netAdmin:
		found.Text = "CAP_NET_ADMIN is missing: iptables can neither list nor change rules."
		if f.process.user != 0 {
			found.Text += " This process is user " + fmt.Sprint(f.process.user) +
				", and Kubernetes gives added capabilities to root only."
			found.Do = "Run the container as root with NET_ADMIN and NET_RAW. For another user, give the image's " +
				"programs and the wrapper file capabilities, and leave allowPrivilegeEscalation at true."
		}
		if f.process.noNewRights && f.process.user != 0 {
			found.Text += " File capabilities have no effect with allowPrivilegeEscalation: false (no-new-privileges)."
		}
	case f.denied() && f.process.userNamespace:
		found.Text = "CAP_NET_ADMIN is there and does not count: this process is in a user namespace (hostUsers: " +
			"false, " +
			"rootless), and the network namespace belongs to another one."
		found.Look = []string{"cat /proc/self/uid_map"}
		found.Do = "Run the container without a user namespace, or give it a network namespace of its own."
	case f.denied():
		found.Text = "CAP_NET_ADMIN is there and does not count: a seccomp profile or a security module refuses what " +
			"iptables asks the kernel (" + firstLine(f.Host.Result.Err()) + ")."
		found.Do = "Use a seccompProfile that permits netlink sockets and getsockopt, as RuntimeDefault does. With " +
			"SELinux or AppArmor, look at the node's audit log."
	case f.wanted() == evidence.Legacy && !f.process.netRaw:
		found.Text = "CAP_NET_RAW is missing: iptables-legacy opens a raw socket, so every call fails."
	case printed:
		return said.finding()
	default:
		return nil
	}
	return &found
}

// denied reports that the kernel refuses what needs the capability.
func (f *facts) denied() bool {
	err := f.Host.Result.Err()
	for _, errno := range []error{unix.EAFNOSUPPORT, unix.ENOSYS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return f.Host.Result.Denied()
}

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (f *facts) kernel() *Finding {
	found := Finding{
		Severity: problem,
		Look:     []string{showEvidence, "uname -r", "lsmod"},
		Do: "On the node, load the modules nf_tables, nft_chain_nat, nft_compat and xt_comment. If they are missing, " +
			"install all modules of the running kernel (RHEL 10: kernel-modules-extra). If the kernel was updated, " +
			"reboot.",
	}
	said, printed := f.failed(kernel)
	mode := f.wanted()
	v4, v6 := f.about(mode, evidence.IPv4), f.about(mode, evidence.IPv6)
	switch {
	case f.denied() || !f.process.netAdmin:
		return nil
	case v4.Works == evidence.No && f.about(mode.Other(), evidence.IPv4).Works == evidence.No:
		found.Text = "The kernel can do neither nft nor legacy" + lacking(f.about(evidence.NFT, evidence.IPv4)) +
			", so iptables cannot work on this node."
	case v4.Works == evidence.No:
		found.Text = fmt.Sprintf("iptables should run %s, and the kernel cannot do that%s.", mode, lacking(v4))
	case v6.Works == evidence.No && f.process.ipv6:
		found.Text = fmt.Sprintf("ip6tables should run %s, and the kernel cannot do that%s.", mode, lacking(v6))
	case printed:
		return said.finding()
	default:
		return nil
	}
	if mode == evidence.Legacy && v4.Works == evidence.No {
		found.Do = loadLegacy + " If they are missing, install all modules of the running kernel, or have the host " +
			"use nft."
	}
	return &found
}

// lacking is the part of the kernel that is missing, in a clause.
func lacking(a evidence.About) string {
	if a.Lacks == "" {
		return ""
	}
	return " (" + a.Lacks + ")"
}

func (f *facts) noProgram() *Finding {
	found := Finding{Severity: problem, Look: []string{"ls -l " + word(f.place.Dir)}, Do: installBoth}
	said, printed := f.failed(noProgram)
	var broken []string
	for _, n := range f.Names {
		if n.Error != "" {
			broken = append(broken, n.Name)
		}
	}
	switch {
	case f.place.Client == "" && len(broken) < len(f.Names):
		found.Text = "iptables is in " + f.place.Dir + ", and that directory is not in PATH."
		found.Do = "Add " + f.place.Dir + " to PATH."
	case f.Here.How == byNothing && len(broken) == len(f.Names):
		found.Text = "There is no iptables here: the image has none, or a volume covers its directory (" +
			f.Here.Error + ")."
		found.Do = installBoth + " Then run iptables-wrapper install there."
	case len(broken) > 0:
		found.Text = fmt.Sprintf("%d of the six commands lead to nothing in %s: %s.", len(broken), f.place.Dir,
			list(shown(broken)))
		found.Do = "In the image, run iptables-wrapper install" + f.dirFlag() + " --force."
	case f.missing != nil && f.Here.How != byNotWrapped:
		found.Text = fmt.Sprintf("iptables should run %s, and this image has no program for it that can be started "+
			"(%v). Such "+
			"a call fails, with status 127 or 126, and never runs the other backend instead.", f.wanted(),
			f.missing)
	case f.notPermitted() != nil || f.kernel() != nil:
		return nil
	case f.broken(f.wanted()) != "":
		found.Text = "The program for " + string(f.wanted()) + " does not start: " + f.broken(f.wanted()) + "."
	case printed:
		return said.finding()
	default:
		return f.unexplained()
	}
	return &found
}

// shown leaves out the commands whose name is that of an action: what doctor prints names no action.
func shown(names []string) (all []string) {
	for _, name := range names {
		if !strings.HasSuffix(name, "tables-restore") {
			all = append(all, name)
		}
	}
	return all
}

// broken is what is wrong with the program of a backend, as far as it was started.
func (f *facts) broken(mode evidence.Mode) string {
	for _, p := range f.Programs {
		if p.Backend == mode && p.Error != errRefused.Error() {
			return p.Error
		}
	}
	return ""
}

// unexplained is about a command that failed for a reason that no message explains, and no other finding.
func (f *facts) unexplained() *Finding {
	if f.Here.Error != "" {
		return nil
	}
	for _, out := range f.printed {
		_, text := find(out.text())
		if out.err == nil || errors.Is(out.err, errRefused) || text != "" {
			continue
		}
		said, _, _ := strings.Cut(out.text(), "\n")
		return &Finding{
			Severity: problem,
			Text:     fmt.Sprintf("%q fails here: %v: %s", out.command, out.err, said),
			Look:     []string{out.command},
			Do:       "Start it by hand, and look at what it prints and at the kernel's log (dmesg).",
		}
	}
	return nil
}

func (f *facts) nftTable() *Finding {
	if f.wanted() != evidence.NFT {
		return nil
	}
	faults := f.nftFaults
	for _, family := range []evidence.Family{evidence.IPv4, evidence.IPv6} {
		for _, c := range f.about(evidence.NFT, family).Foreign {
			faults = append(faults, fmt.Sprintf("chain %q of table %s is not iptables' own, or has rules that are not",
				c.Name, c.Table))
		}
	}
	if len(faults) == 0 {
		if said, printed := f.failed(nftTable); printed {
			return said.finding()
		}
		return nil
	}
	return &Finding{
		Severity: problem,
		Text:     "Somebody uses nft directly in a table of iptables: " + list(faults) + ". iptables may fail there.",
		Look:     []string{"nft list ruleset"},
		Do: "Have the program that uses nft directly put its chains into a table with a name of its own. " +
			"Before a dormant table is woken, look at its rules: all of them take effect at once.",
	}
}

func (f *facts) lock() *Finding {
	said, printed := f.failed(lock)
	found := said.finding()
	switch {
	case f.wanted() != evidence.Legacy && !printed:
		return nil
	case !printed && f.lockFault == nil:
		return nil
	case !printed: // no table is there to be listed, which would have shown it
		found.Text = "iptables-legacy cannot have its lock: " + f.lockFault.Error() + "."
		found.Do = mountLock
	}
	found.Look = []string{"ls -ld /run/xtables.lock", "lslocks"}
	return found
}

// lockFault says why iptables-legacy cannot open its lock, which it creates if there is none. It is not opened here:
// that would create it, too.
func lockFault() error {
	path := cmp.Or(os.Getenv("XTABLES_LOCKFILE"), "/run/xtables.lock")
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		err = unix.Access(filepath.Dir(path), unix.W_OK)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file", path)
	case err == nil:
		err = unix.Access(path, unix.R_OK)
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	return nil
}

func (f *facts) oldIptables() *Finding {
	for _, p := range f.Programs {
		if p.Backend == evidence.NFT && f.wanted() == evidence.NFT && iptables.ParseRelease(p.Version).LosesRules() {
			return &Finding{
				Severity: warning,
				Text: p.Path + " (" + p.Version + ") loses parts of rules that 1.8.8 or newer has made when it " +
					"writes their table: a DROP with a condition can become a DROP without one.",
				Look: []string{"iptables --version"},
				Do:   "In the image, install iptables 1.8.8 or newer.",
			}
		}
	}
	return nil
}
