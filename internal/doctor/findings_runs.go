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
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/start"
)

// Whether iptables runs at all: the permission, the kernel, the program, the lock, the tables.

const (
	installBoth  = "In the image, install iptables 1.8.8 or newer with both backends."
	showEvidence = "iptables-wrapper detect -o table"
	mountLock    = "Mount the host's /run/xtables.lock as a file (hostPath with type: FileOrCreate), or a writable " +
		"/run (docker run --tmpfs /run). Without a type, Kubernetes creates a directory there: remove it on the node. For " +
		"a user other than root, create the file in the image, owned by that user."
)

func (f *facts) notPermitted() *Finding {
	const look = "grep -e Cap -e NoNewPrivs -e Seccomp /proc/self/status"
	found := Finding{Severity: problem, Look: []string{look}, Do: addCaps}
	switch {
	case !f.process.netAdmin && f.process.user == 0:
		found.Text = "iptables can neither list nor change rules: CAP_NET_ADMIN is missing."
	case !f.process.netAdmin:
		found.Text = fmt.Sprintf("iptables can neither list nor change rules: CAP_NET_ADMIN is missing, because this is "+
			"user %d, and Kubernetes gives added capabilities to root only.", f.process.user)
		if f.process.noNewRights {
			found.Text += " File capabilities have no effect with allowPrivilegeEscalation: false."
		}
		found.Do = "Run the container as root with NET_ADMIN and NET_RAW. For another user, give the image's programs " +
			"and the wrapper file capabilities, and leave allowPrivilegeEscalation at true."
	case f.denied() && f.process.userNamespace:
		found.Text = "iptables can neither list nor change rules: CAP_NET_ADMIN does not count, because this process is " +
			"in a user namespace (hostUsers: false, rootless), and its network belongs to another one."
		found.Look = []string{"cat /proc/self/uid_map"}
		found.Do = "Run the container without a user namespace, or give it a network of its own."
	case f.denied():
		found.Text = "iptables can neither list nor change rules: CAP_NET_ADMIN does not count, because a seccomp profile " +
			"or a security module refuses what iptables asks the kernel (" + firstLine(f.Host.Err()) + ")."
		found.Do = "Use a seccompProfile that permits netlink sockets and getsockopt, as RuntimeDefault does. With " +
			"SELinux or AppArmor, look at the node's audit log."
	case f.wanted() == evidence.Legacy && !f.process.netRaw:
		found.Text = "Every call of iptables-legacy fails: CAP_NET_RAW is missing, and it opens a raw socket."
	default:
		return f.failed(notPermitted)
	}
	return &found
}

// denied reports that the kernel refuses what needs the capability.
func (f *facts) denied() bool {
	err := f.Host.Err()
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENOSYS)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return line
}

func (f *facts) kernel() *Finding {
	const allModules = "install all modules of the running kernel (RHEL 10: kernel-modules-extra). If the kernel was " +
		"updated, reboot."
	mode := f.wanted()
	v4, v6 := f.Host.Of(mode)[evidence.IPv4], f.Host.Of(mode)[evidence.IPv6]
	other := f.Host.Of(mode.Other())[evidence.IPv4]
	if f.denied() || !f.process.netAdmin {
		return nil
	}
	found := Finding{
		Severity: problem,
		Look:     []string{showEvidence, "uname -r", "lsmod"},
		Do:       "On the node, load nf_tables, nft_chain_nat, nft_compat and xt_comment. If they are missing, " + allModules,
	}
	if mode == evidence.Legacy {
		found.Do = loadLegacy + " If they are missing, " + allModules
	}
	switch {
	case other.Works == evidence.No && (v4.Works == evidence.No || v4.Lacks != ""):
		found.Text = "iptables cannot work on this node: its kernel can do neither nft nor legacy" +
			lacking(f.Host.NFT[evidence.IPv4]) + "."
	case v4.Works == evidence.No:
		found.Text = "iptables" + cannot(mode, v4)
	case v6.Works == evidence.No && f.process.ipv6:
		found.Text = "ip6tables" + cannot(mode, v6)
	case mode == evidence.NFT && f.nat[evidence.IPv4].Lacks != "":
		found.Text = "iptables should run nft, and the kernel lacks " + f.nat[evidence.IPv4].Lacks +
			": what needs them fails."
	default:
		return f.failed(kernel)
	}
	return &found
}

func cannot(mode evidence.Mode, a evidence.About) string {
	return " fails here: it should run " + string(mode) + ", and the kernel cannot do that" + lacking(a) + "."
}

// lacking is the part of the kernel that is missing, in a clause.
func lacking(a evidence.About) string {
	if a.Lacks == "" {
		return ""
	}
	return " (it lacks " + a.Lacks + ")"
}

func (f *facts) noProgram() *Finding {
	found := Finding{Severity: problem, Look: []string{"ls -l " + f.place.Dir}, Do: installBoth}
	var broken []layout.Name
	for _, n := range f.Names {
		if n.Err != nil {
			broken = append(broken, n)
		}
	}
	switch {
	case f.Here.How == byNothing && len(broken) == len(f.Names):
		found.Text = "There is no iptables here: the image has none, or a volume covers its directory (" + f.Here.Error + ")."
		found.Do = installBoth + " Then run iptables-wrapper install there."
	case f.place.Client == "":
		found.Text = "No program finds iptables: it is in " + f.place.Dir + ", which is not in PATH."
		found.Do = "Add " + f.place.Dir + " to PATH."
	case len(broken) > 0:
		found.Text = f.these(broken, "lead to nothing")
		found.Do = f.install(broken[0].Path)
	case f.missing != nil && f.Here.How != byNotWrapped:
		found.Text = fmt.Sprintf("iptables fails here, with status 127 or 126: it should run %s, and the image's program "+
			"for that is missing or cannot be started (%v).", f.wanted(), f.missing)
	case f.notPermitted() != nil || f.kernel() != nil:
		return nil
	case f.broken() != "":
		found.Text = "iptables fails here: its program for " + string(f.wanted()) + " does not work (" + f.broken() + ")."
	default:
		return cmp.Or(f.failed(noProgram), f.unexplained())
	}
	return &found
}

// broken is what is wrong with the program that should run, as far as it was started.
func (f *facts) broken() string {
	for _, p := range f.Programs {
		if p.Backend == f.wanted() && p.Error != start.ErrRefused.Error() {
			return p.Error
		}
	}
	return ""
}

// unexplained is about a command that failed for a reason that no message explains, and no other finding.
func (f *facts) unexplained() *Finding {
	for _, out := range f.printed {
		_, known := find(out.Text())
		if f.Here.Error != "" || out.Err == nil || errors.Is(out.Err, start.ErrRefused) || known != "" {
			continue
		}
		said, _, _ := strings.Cut(out.Text(), "\n")
		return &Finding{
			Severity: problem,
			Text:     fmt.Sprintf("iptables fails here (%v): %q printed %q.", out.Err, out.Command, said),
			Look:     []string{out.Command},
			Do:       "Run it by hand, and look at what it prints and at the kernel's log (dmesg).",
		}
	}
	return nil
}

func (f *facts) nftTable() *Finding {
	if f.wanted() != evidence.NFT {
		return nil
	}
	var foreign []string
	for _, about := range f.Host.NFT {
		for _, c := range about.Foreign {
			foreign = append(foreign, fmt.Sprintf("chain %q of table %s", c.Name, c.Table))
		}
	}
	if len(foreign) == 0 {
		return f.failed(nftTable)
	}
	return &Finding{
		Severity: problem,
		Text: "iptables may fail, or list only part of its rules: somebody uses nft directly in its tables (" +
			List(foreign) + ").",
		Look: []string{"nft list ruleset"},
		Do:   "Have the program that uses nft directly put its chains into a table with a name of its own.",
	}
}

func (f *facts) lock() *Finding {
	if f.wanted() != evidence.Legacy || f.lockFault == nil {
		return f.failed(lock)
	}
	return &Finding{
		Severity: problem,
		Text:     "Every call of iptables-legacy fails: it cannot open its lock (" + f.lockFault.Error() + ").",
		Look:     []string{"ls -ld /run/xtables.lock"},
		Do:       mountLock,
	}
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
		release := iptables.ParseRelease(p.Version)
		if p.Backend == evidence.NFT && f.wanted() == evidence.NFT && release.LosesRules() {
			return &Finding{
				Severity: warning,
				Text: "A DROP with a condition can become a DROP without one: " + p.Path + " is version " +
					release.String() + ". When it writes a table back, it loses parts of the rules that " +
					iptables.Faithful.String() + " or newer has made.",
				Look: []string{"iptables --version"},
				Do:   installBoth,
			}
		}
	}
	return nil
}
