// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with iptables in this container, and how to fix it. Examine does all I/O;
// Diagnose turns what was found into findings and is pure.
package doctor

import (
	"slices"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/extensions"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
)

// Version goes up when something in docs/doctor.v5.schema.json changes its meaning or is removed.
const Version = 5

// Report is everything that was looked at. Its JSON form is docs/doctor.v5.schema.json.
type Report struct {
	Version      int             `json:"version"`
	Findings     []Finding       `json:"findings"`
	Host         detect.Result   `json:"host"`
	Here         here.Here       `json:"here"`
	Network      here.Network    `json:"network"`
	Variable     detect.Mode     `json:"variable,omitempty"` // of this process
	Capabilities []string        `json:"capabilities"`       // of the two that iptables needs
	Programs     []Program       `json:"programs"`
	Names        []layout.Status `json:"names"`
	Unreadable   []string        `json:"unreadable"`       // what iptables-nft reports of tables that it cannot list
	Client       string          `json:"client,omitempty"` // the iptables that PATH finds first

	Extensions []extensions.Support `json:"extensions"` // whether the kernel has what users of iptables need most

	// This process.
	user          int  // the effective one
	distrusted    bool // the caller has fewer privileges than this process, so the variable does not count
	userNamespace bool // this process is in a user namespace of its own, or that is unknown
	otherProcess1 bool // process 1 is not this container's, or that is unknown
	noNewRights   bool // file capabilities and set-user-ID have no effect

	badVariable string // the variable's value, if it is not a valid mode

	// The commands in the directory.
	dirArgument string          // what a command needs to be about this directory: " --dir /usr/local/sbin"
	absent      []string        // names that are not in the directory
	elsewhere   []string        // of these, the ones that PATH finds in another directory
	outOfPath   string          // the directory, if PATH finds no iptables
	isDirectory string          // to what a command leads, if that is a directory
	covered     string          // a standard directory over which an empty volume is mounted
	onlyWrapper bool            // the image has nothing but the wrapper
	notOurs     error           // why select and reset refuse: a command is somebody else's
	unwritable  error           // why the commands cannot be changed
	inImage     bool            // the switch was there before this container, in its image
	inVolume    bool            // the switch was there before this container, in a volume
	noMemory    error           // why this user can neither make the memory nor remove it
	says        map[string]said // by name, what commands say that are neither the wrapper nor iptables' own programs
	bypasses    []bypass        // commands that run a backend without the wrapper
	misnamed    bool            // the client runs the wrapper under a name that is none of the six

	// What users other than root could change.
	openPath   string     // what they could change to replace the client, "" if nothing
	openFile   bool       // that is a file
	exposed    bool       // the directory, so install refuses
	unstarted  []exposure // programs that were not started for that reason
	rewritable []string   // files of the wrapper

	// The programs.
	fileCaps        []string // programs whose file capabilities are not those of the wrapper's file
	wrapperCaps     bool     // the wrapper's file has some
	unlisted        []string // why iptables-nft could not list its tables at all
	canLoad         bool     // legacy's program could load x_tables, or they were loaded already
	libraries       string   // the variable that keeps them from finding their libraries
	unloadable      []string // extensions whose libraries the program of the wanted backend cannot load
	hidingLibraries string   // the variable that is why
	noexec          string   // the program that is in a file system in which nothing can be executed

	// The backend that the host does not use.
	saved          []saved // its tables, as far as they could be listed
	savedHost      []saved // those of the host's own, where some of these chains are left over
	otherNotInPath bool    // PATH does not find its programs, so that no command with them can be run here

	// The lock of iptables-legacy.
	lock    error  // why it cannot be had
	ownLock bool   // XTABLES_LOCKFILE names it
	holder  string // who holds it
}

// The capabilities that iptables needs: for reading and changing rules, and for iptables-legacy.
const (
	netAdmin = "CAP_NET_ADMIN"
	netRaw   = "CAP_NET_RAW"
)

// Program is what runs as iptables in one backend.
type Program struct {
	Mode    detect.Mode `json:"mode"`
	Path    string      `json:"path,omitempty"`
	Version string      `json:"version,omitempty"` // the line that it prints
	Error   string      `json:"error,omitempty"`
}

// How severe a finding is. Only a problem makes doctor end with status 1.
const (
	Problem = "problem"
	Warning = "warning"
)

// severities are all of them, in the order in which their findings are reported.
var severities = []string{Problem, Warning}

// Where a fix is applied.
const (
	Container = "container" // here and now, by the user that runs doctor
	Image     = "image"     // and in a container that is made of it
	Pod       = "pod"       // in the Pod's spec or the options of docker run, and in a new container
	Node      = "node"
)

// Finding is one thing that is wrong, and the first fix for it that can be applied.
type Finding struct {
	Code     string `json:"code"` // stable, and the anchor of a paragraph in docs/troubleshooting.md
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Fix      string `json:"fix"` // after the first line, each line is a command
	Where    string `json:"where"`
	NotSpec  bool   `json:"-"` // the fix is about the Pod itself, not about its spec
}

// Diagnose fills in the findings, the most severe first.
func (r *Report) Diagnose() {
	r.Findings = r.diagnose(r.hostRules(), r.backendRules(), r.others())
}

// others are independent of each other. In an image of nothing but the wrapper, nothing of iptables can be wrong.
func (r *Report) others() []rule {
	if r.onlyWrapper {
		return nil
	}
	return slices.Concat(r.commands(), r.abilities(), r.locking(), r.foreignRules(), r.steadiness())
}

// stale returns a finding about what this container has decided itself, so that a new one of the same Pod would be
// right. Where process 1 is not this container's, it cannot be told from what the image brought along.
func (r *Report) stale() *Finding {
	const remembered = "wrong-backend-remembered"
	decided := []string{"wrong-backend-stored", remembered, "two-backends"}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return slices.Contains(decided, f.Code) })
	if i < 0 || r.otherProcess1 {
		return nil
	}
	brought := r.inImage || r.inVolume || r.neverWrapped()
	aboutCommands := r.Findings[i].Code != remembered // a memory is always the container's own
	if brought && aboutCommands {
		return nil
	}
	return &r.Findings[i]
}
