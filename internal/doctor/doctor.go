// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with iptables in this container, and how to fix it. Examine does all I/O;
// Diagnose turns what was found into findings and is pure.
package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
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
	Variable     detect.Mode     `json:"variable,omitempty"` // of this process
	Capabilities []string        `json:"capabilities"`       // of the two that iptables needs
	Programs     []Program       `json:"programs"`
	Names        []layout.Status `json:"names"`
	Unreadable   []string        `json:"unreadable"`       // what iptables-nft reports of tables that it cannot list
	Client       string          `json:"client,omitempty"` // the iptables that PATH finds first

	dirArgument   string     // what a command needs to be about this directory: " --dir /usr/local/sbin"
	absent        []string   // names that are not in the directory
	open          string     // what others could change to replace the client, "" if they cannot
	unstarted     []exposure // programs that were not started, because others could replace them
	rewritable    []string   // files of the wrapper that others can write
	exposed       bool       // or could where nothing is read-only, so install refuses
	claimed       error      // why select and reset refuse: a command is somebody else's
	image, volume bool       // the switch was there before this container: in its image, or in a volume
	distrusted    bool       // the caller has fewer privileges than this process, so the variable does not count
	userNamespace bool       // this process is in a user namespace of its own, or that is unknown
	canLoad       bool       // legacy's program could load x_tables, or they were loaded already
	unwritable    error      // why the commands cannot be changed
	forgetful     error      // why this user can neither make the memory nor remove it
	strangers     bool       // process 1 is not this container's, or that is unknown
	lock          error      // why iptables-legacy cannot lock its tables
	ownLock       bool       // XTABLES_LOCKFILE names it
	holder        string     // who holds that lock
	user          int        // the effective one
	bypasses      []string   // paths in other directories that run the backend which the host does not use
	unlisted      []string   // why iptables-nft could not list its tables at all
	fileCaps      []string   // programs whose file capabilities are not those of the wrapper's file
	wrapperCaps   bool       // the wrapper's file has some
}

// The capabilities that iptables needs: for reading and changing rules, and for iptables-legacy.
const (
	netAdmin = "CAP_NET_ADMIN"
	netRaw   = "CAP_NET_RAW"
)

// Program is what runs as iptables in one mode.
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
}

// rule is a row of the tables: a finding for when there is a detail. {} stands for the detail in the texts.
type rule struct {
	code, severity, detail, text string
	fixes                        fixes // the first that can be applied is printed
}

type fixes []fix

type fix struct {
	applies     bool
	where, text string
}

// always marks a fix that needs nothing.
const always = true

func only(where, text string) fixes { return fixes{{always, where, text}} }

// when is the detail of a rule that applies under a condition.
func when[T ~string](condition bool, detail T) string {
	if condition {
		return string(detail)
	}
	return ""
}

// Diagnose fills in the findings, the most severe first. Where there is no iptables at all, nothing of it can be wrong.
func (r *Report) Diagnose() {
	others := r.others()
	if len(r.absent) == len(r.Names) && !slices.ContainsFunc(r.Programs, func(p Program) bool { return p.Path != "" }) {
		others = nil
	}
	r.Findings = r.diagnose(r.host(), r.backend(), others)
}

// diagnose reports each rule that applies, but of host and backend only the first: the others there are consequences of it,
// or say the same.
func (r *Report) diagnose(host, backend, others []rule) []Finding {
	found := []Finding{}
	other := map[detect.Mode]detect.Mode{detect.NFT: detect.Legacy, detect.Legacy: detect.NFT}[r.Host.Mode]
	here := cmp.Or(r.Here.Backend, r.Host.Mode) // the backend that calls use here
	for _, severity := range []string{Problem, Warning} {
		for _, rule := range slices.Concat(first(host), first(backend), others) {
			if rule.detail == "" || rule.severity != severity {
				continue
			}
			fix := rule.fixes[slices.IndexFunc(rule.fixes, func(f fix) bool { return f.applies })]
			fill := strings.NewReplacer(oneLine(
				"{}", strings.Join(strings.Fields(rule.detail), " "),
				"{variable}", programs.ModeVariable,
				"{here}", string(here),
				"{program}", r.Here.Program,
				"{host}", string(r.Host.Mode),
				"{other}", string(other),
				"{because}", r.Host.Because(),
				"{dir}", r.dirArgument,
				"{client}", r.Client,
			)...)
			found = append(found, Finding{rule.code, severity, fill.Replace(rule.text), fill.Replace(fix.text), fix.where})
		}
	}
	return found
}

// oneLine keeps what is filled in from adding a line, such as a command: an error has several lines, and a file's name may.
func oneLine(pairs ...string) []string {
	for i, text := range pairs {
		pairs[i] = strings.ReplaceAll(text, "\n", " ")
	}
	return pairs
}

// first returns the first rule that applies, if there is one.
func first(rules []rule) []rule {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.detail != "" })
	return rules[max(i, 0) : i+1]
}

// stale returns a finding about what this container has decided itself, so that a new one of the same Pod would be right. Where
// process 1 is not this container's, it cannot be told from what the image brought along.
func (r *Report) stale() *Finding {
	own := []string{"wrong-backend-stored", "wrong-backend-remembered", "two-backends"}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return slices.Contains(own, f.Code) })
	if i < 0 || r.image || r.volume || r.strangers {
		return nil
	}
	return &r.Findings[i]
}
