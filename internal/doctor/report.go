// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with iptables in this container, and how to fix it. Examine does all I/O;
// Diagnose turns what was found into findings and is pure.
package doctor

import (
	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/links"
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
	Here         Here             `json:"here"`
	Network      Network          `json:"network"`
	Remembered   detect.Mode      `json:"remembered,omitempty"`
	Variable     detect.Mode      `json:"variable,omitempty"` // of this process
	Capabilities []Capability     `json:"capabilities"`
	Programs     []Program        `json:"programs"`
	Names        []links.Status   `json:"names"`
	Extensions   []detect.Support `json:"extensions"`
	Unreadable   []string         `json:"unreadable"` // what iptables-nft reports of tables that it cannot list

	distrusted  bool     // the caller has fewer privileges than this process, so the variable does not count
	canLoad     bool     // legacy's program could load x_tables, or they were loaded already
	fixed       error    // why the links cannot be changed
	forgetful   error    // why nothing can be remembered
	strangers   bool     // process 1 is not this container's, or that cannot be told
	lock        error    // why iptables-legacy cannot lock its tables
	fileCaps    []string // programs whose file capabilities differ from the wrapper's
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
