// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with iptables in this container, and how to fix it. Examine does all I/O;
// Diagnose turns what was found into findings and is pure.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Version goes up when something in docs/doctor.schema.json changes its meaning or is removed.
const Version = 2

// Severity orders findings. Only a problem makes doctor end with status 1.
type Severity string

// The most severe first.
const (
	Problem Severity = "problem"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is one thing that is wrong and one way to fix it. As a row of a table, it applies where there is a detail, for
// which {} stands in the texts.
type Finding struct {
	Severity Severity `json:"severity"`
	detail   string
	Text     string `json:"text"`
	Fix      string `json:"fix"`
}

// Report is everything that was looked at. Its JSON form is docs/doctor.schema.json.
type Report struct {
	Version      int              `json:"version"`
	Findings     []Finding        `json:"findings"`
	Host         detect.Result    `json:"host"`
	Here         here.Here        `json:"here"`
	Network      here.Network     `json:"network"`
	Remembered   detect.Mode      `json:"remembered,omitempty"`
	Variable     detect.Mode      `json:"variable,omitempty"` // of this process
	Capabilities []Capability     `json:"capabilities"`
	Programs     []Program        `json:"programs"`
	Names        []layout.Status  `json:"names"`
	Extensions   []detect.Support `json:"extensions"`
	Unreadable   []string         `json:"unreadable"` // what iptables-nft reports of tables that it cannot list

	distrusted  bool     // the caller has fewer privileges than this process, so the variable does not count
	canLoad     bool     // legacy's program could load x_tables, or they were loaded already
	fixed       error    // why the links cannot be changed
	forgetful   error    // why nothing can be remembered
	strangers   bool     // process 1 is not this container's, or that is unknown
	lock        error    // why iptables-legacy cannot lock its tables
	user        int      // the effective one
	bypasses    []string // paths in other directories that run the backend which the host does not use
	unlisted    []string // why iptables-nft could not list its tables at all
	fileCaps    []string // programs with file capabilities that differ from the wrapper's
	lostCaps    []string // programs without any, although the wrapper's file has some
	wrapperCaps bool     // the wrapper's file has capabilities
}

// Capability is one that iptables needs.
type Capability struct {
	Name      string `json:"name"`
	Present   bool   `json:"present"`
	NeededFor string `json:"needed_for"`
}

// Program is what runs as iptables in one mode.
type Program struct {
	Mode    detect.Mode `json:"mode"`
	Path    string      `json:"path,omitempty"`
	Version string      `json:"version,omitempty"` // the line that it prints
	Error   string      `json:"error,omitempty"`
	missing bool
}

// wantedExtensions are those that kube-proxy, CNI plugins and service meshes use. Targets are in capitals.
const wantedExtensions = "addrtype comment conntrack mark multiport owner physdev recent rpfilter set socket statistic " +
	"CONNMARK CT DNAT LOG MARK MASQUERADE NFLOG REDIRECT REJECT SNAT TCPMSS TPROXY"

// Examine looks at everything and writes no rule. It runs iptables' programs for their versions and to list tables, and
// the kernel may load the modules of what it is asked for. override is what the environment asks for, if it may.
func Examine(n layout.Names, dir string, override detect.Mode) Report {
	r := Report{Version: Version, Unreadable: []string{}, distrusted: !n.Self.Trusted(), user: os.Geteuid()}
	r.Variable, _ = programs.ParseMode(os.Getenv(programs.ModeVariable))
	container := n.Container
	r.Remembered = here.RememberedIn(n, dir).Mode
	asked := here.Ask(n, dir, detect.Query{DryRun: true, NAT: true, Everything: true})
	r.Host = here.Proven(asked)
	r.Network = here.ThisNetwork(container, r.Host)
	r.Here = here.Look(n, dir, override, asked)
	r.Names = n.Look(dir)
	if i := slices.IndexFunc(r.Names, func(s layout.Status) bool { return s.Wrapper && s.Unwritable != nil }); i >= 0 {
		r.fixed = r.Names[i].Unwritable
	}
	r.bypasses = bypasses(n, dir, r.Host)
	r.forgetful = n.Memory().Unwritable()
	r.strangers = !container.Own() && !(container.OwnNetns == detect.No && container.OwnRoot == detect.Yes) // as in ip netns exec
	r.Capabilities = capabilities()
	r.lock = lock(n.Self.Trusted())
	r.programs(n, dir)

	// Only now: legacy's program loads x_tables where it can, and then they can be asked for extensions.
	var wanted []detect.Extension
	for name := range strings.FieldsSeq(wantedExtensions) {
		wanted = append(wanted, detect.Extension{Name: name, Target: strings.ToUpper(name) == name})
	}
	r.Extensions = detect.Extensions(wanted)
	for i, x := range r.Extensions {
		if errors.Is(x.Err, unix.ENOPROTOOPT) { // a module may provide it, but legacy's program could not load it just now
			r.Extensions[i].Has = detect.No
		}
	}
	legacy := r.Host.Of(detect.Legacy, detect.IPv4)
	r.canLoad = legacy.Supported != detect.Unknown || legacy.Err != nil ||
		detect.Query{Everything: true}.Run().Of(detect.Legacy, detect.IPv4).Supported != detect.Unknown
	r.Diagnose()
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

// access is access(2) for the effective user, whose rights iptables has.
func access(path string, mode uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
}

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
			p.missing = errors.Is(err, programs.ErrMissing)
		} else if mode == detect.NFT {
			r.listErrors(p.Path)
		}
		r.Programs = append(r.Programs, p)
		switch has, err := install.Capabilities(n.Tree, p.Path); {
		case err != nil || noFile != nil || has == wrapper:
		case has == "":
			r.lostCaps = append(r.lostCaps, p.Path)
		default:
			r.fileCaps = append(r.fileCaps, p.Path)
		}
	}
}

// lock says why iptables-legacy could not lock its tables: it opens a file for that and creates it if there is none.
func lock(trusted bool) error {
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
		err = access(path, unix.R_OK)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return nil
}

// listErrors has iptables-nft list its tables, where there are any.
func (r *Report) listErrors(program string) {
	for i, name := range []string{"iptables-save", "ip6tables-save"} {
		if family := []detect.Family{detect.IPv4, detect.IPv6}[i]; len(r.Host.Of(detect.NFT, family).Tables) > 0 {
			stdout, stderr, err := install.Output(program, name)
			r.listed(name, stdout, stderr, err)
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
