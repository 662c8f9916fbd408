// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package exec

import "os"

// check finds nothing: only Linux has iptables.
func check(string, string) error { return os.ErrNotExist }
