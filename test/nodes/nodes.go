// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes has the rules of real nodes, see README.md.
package nodes

import "embed"

//go:embed *.save *.ipset
var Files embed.FS
