// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package rules has the rules of hosts, as files: nodes/README.md and programs/README.md say whose they are.
package rules

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed nodes/*.save nodes/*.ipset programs/*.save programs/*.save6 programs/*.nft
var files embed.FS

// Nodes has the rules of real nodes.
func Nodes() fs.FS { return below("nodes") }

// Programs has the rules that programs of the host make.
func Programs() fs.FS { return below("programs") }

func below(dir string) fs.FS {
	found, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // only if the name is no path
	}
	return found
}

// A Dump is one file of Programs.
type Dump struct {
	File    string
	Program string   // the part of the file's name before its version: "docker"
	Text    string   // for iptables-restore, ip6tables-restore or nft -f
	Markers []string // the markers in it, each a table and a chain, or a native table
}

// Dumps returns all files of Programs. Their first lines say which markers they have.
func Dumps() (all []Dump) {
	found, err := fs.Glob(Programs(), "*")
	if err != nil {
		panic(err) // only if the pattern is malformed
	}
	for _, name := range found {
		content, err := fs.ReadFile(Programs(), name)
		if err != nil {
			panic(err) // only if the file is not embedded
		}
		first, _, _ := strings.Cut(string(content), "\n")
		list, isHead := strings.CutPrefix(first, "# markers: ")
		if !isHead {
			panic("test/rules/programs/" + name + ": begin it with \"# markers: \", and \"filter CHAIN\" or \"none\"")
		}
		d := Dump{File: name, Text: string(content)}
		d.Program, _, _ = strings.Cut(strings.TrimSuffix(name, path.Ext(name)), "-")
		if list != "none" {
			d.Markers = strings.Split(list, ", ")
		}
		all = append(all, d)
	}
	return all
}

// Markers returns the markers in all dumps.
func Markers() (all []string) {
	for _, d := range Dumps() {
		all = append(all, d.Markers...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
