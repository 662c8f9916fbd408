// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package rules has the rules of hosts, as files: nodes/README.md and programs/README.md say whose they are.
package rules

import (
	"embed"
	"io/fs"
)

//go:embed nodes/*.save nodes/*.ipset nodes/*.nft programs/*.save programs/*.save6 programs/*.nft
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
