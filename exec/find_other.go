// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package exec

import "os"

func trusted(string) bool { return false }

// executable finds nothing: iptables is a program of Linux.
func executable(string) error { return os.ErrNotExist }
