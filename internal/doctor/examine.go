// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with iptables in this container, and how to fix it. Examine does all I/O;
// Diagnose turns what was found into findings and is pure.
package doctor

import (
	"cmp"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// Version goes up when something in docs/doctor.schema.json changes its meaning or is removed.
const Version = 4

// Report is everything that was looked at. Its JSON form is docs/doctor.schema.json.
type Report struct {
	Version      int             `json:"version"`
	Findings     []Finding       `json:"findings"`
	Host         detect.Result   `json:"host"`
	Here         here.Here       `json:"here"`
	Network      here.Network    `json:"network"`
	Remembered   detect.Mode     `json:"remembered,omitempty"`
	Variable     detect.Mode     `json:"variable,omitempty"` // of this process
	Capabilities []Capability    `json:"capabilities"`
	Programs     []Program       `json:"programs"`
	Names        []layout.Status `json:"names"`
	Unreadable   []string        `json:"unreadable"` // what iptables-nft reports of tables that it cannot list

	Client string `json:"client,omitempty"` // the iptables that PATH finds first

	dirArgument   string   // what a command needs to be about this directory: " --dir /usr/local/sbin"
	elsewhere     bool     // the directory is not the wrapper's own
	force         string   // what install needs to replace iptables here: " --force"
	absent        []string // names that are not in the directory
	bare          bool     // the image has neither a command nor an iptables program
	exposed       bool     // others can write in the directory, so install refuses
	open          error    // why others than root could replace the client
	claimed       error    // why select and reset refuse: a command is somebody else's
	baked         bool     // the switch was there before this container
	volume        bool     // and the directory is a mount of its own
	distrusted    bool     // the caller has fewer privileges than this process, so the variable does not count
	userNamespace bool     // this process is in a user namespace of its own, or that is unknown
	canLoad       bool     // legacy's program could load x_tables, or they were loaded already
	unwritable    error    // why the commands cannot be changed
	forgetful     error    // why nothing can be remembered
	forgettable   bool     // the memory can be removed
	strangers     bool     // process 1 is not this container's, or that is unknown
	lock          error    // why iptables-legacy cannot lock its tables
	holder        string   // who holds that lock
	user          int      // the effective one
	bypasses      []string // paths in other directories that run the backend which the host does not use
	unlisted      []string // why iptables-nft could not list its tables at all
	fileCaps      []string // programs with file capabilities that differ from the wrapper's
	lostCaps      []string // programs without any, although the wrapper's file has some
	wrapperCaps   bool     // the wrapper's file has capabilities
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

// Examine looks at everything and writes no rule. It runs iptables' programs for their versions and to list tables, and
// the kernel may load the modules of what it is asked for. override is what the environment asks for, if it may.
func Examine(n layout.Names, dir string, override detect.Mode) Report {
	q := detect.Query{DryRun: true, NAT: true, Everything: true}
	r := glance(n, dir, override, q)
	if r.Here.How == here.NotWrapped && r.Here.Backend == "" && r.open == nil {
		backend, wrapped := ask(r.Here.Program)
		r.Here.Backend, r.Here.Differs = backend, r.Host.Conclusive && backend != "" && backend != r.Host.Mode
		if own, err := n.Dir(); err == nil && r.elsewhere {
			behind := glance(n, own, override, q)
			if wrapped || behind.Here.How == here.Switch && behind.Here.Backend == backend { // such as a script that calls it
				r, dir = behind, own
			}
		}
	}
	r.Variable, _ = programs.ParseMode(os.Getenv(programs.ModeVariable))
	r.bypasses = bypasses(n, dir, r.Host)
	r.Capabilities = capabilities()
	r.programs(n, dir)
	r.bare = len(r.absent) == len(r.Names) && !slices.ContainsFunc(r.Programs, func(p Program) bool { return !p.missing })
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
	r := glance(n, dir, override, detect.Query{})
	r.Findings = r.diagnose(nil, r.backend(), nil)
	return r
}

func glance(n layout.Names, dir string, override detect.Mode, q detect.Query) Report {
	r := Report{Version: Version, Unreadable: []string{}, distrusted: !n.Self.Trusted(), user: os.Geteuid(), userNamespace: inUserNamespace()}
	r.Remembered = here.RememberedIn(n, dir).Mode
	asked := here.Ask(n, dir, q)
	if r.Here = here.Look(n, dir, override, asked); r.Here.How == here.Variable { // which ignores the memory
		q.Installed = here.Installed(n, dir)
		asked = n.Memory().Answer(q)
	}
	r.Host = here.Proven(asked)
	r.Host.Evidence, r.Host.Conflicts = asked.Evidence, asked.Conflicts
	r.Network = here.ThisNetwork(n.Container, r.Host)
	r.Here = here.Look(n, dir, override, asked)
	r.Names = n.Look(dir)
	if i := slices.IndexFunc(r.Names, func(s layout.Status) bool { return (s.Wrapper || s.Switched) && s.Unwritable != nil }); i >= 0 {
		r.unwritable = r.Names[i].Unwritable
	}
	for _, name := range programs.Names() {
		path := programs.Join(dir, name)
		if _, err := n.Tree.Lstat(path); tree.IsNotExist(err) {
			r.absent = append(r.absent, name)
		}
		r.claimed = cmp.Or(r.claimed, n.Ours(path))
	}
	r.Client = here.Client(n)
	first, err := here.Dir(n)
	if err == nil && !n.Tree.SameFile(first, dir) {
		r.dirArgument = " --dir " + dir
	}
	if own, err := n.Dir(); err == nil && !n.Tree.SameFile(own, dir) {
		r.elsewhere, r.dirArgument = true, " --dir "+dir
		if n.Tree.SameFile(programs.Dir(r.Client), dir) {
			r.exposed, r.open = n.Tree.Exposed(dir) != "", open(n, r.Client)
		}
	}
	if r.Here.How == here.NotWrapped && r.Names[0].Mode == "" || r.Here.How == here.Missing {
		r.force = " --force"
	}
	m := n.Memory()
	r.forgetful = m.Unwritable()
	r.forgettable = m.Path() == m.Own() && access(programs.Dir(m.Path()), unix.W_OK|unix.X_OK) == nil
	in := n.Container
	r.strangers = !in.Own() && !(in.OwnNetns == detect.No && in.OwnRoot == detect.Yes) // as in ip netns exec
	r.baked = older(n, dir) || errors.Is(r.unwritable, unix.EROFS) || r.strangers && r.unwritable != nil
	if st, err := n.Tree.Stat(dir); r.baked && err == nil {
		root, _ := n.Tree.Stat("/")
		r.volume = st.Dev != root.Dev
	}
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
