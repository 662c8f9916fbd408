// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostprograms has the rules that programs of the host make, see README.md.
package hostprograms

import "embed"

//go:embed *.save *.save6 *.nft
var Files embed.FS
