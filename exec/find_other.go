// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package exec

import "os"

// Only Linux has iptables, so nothing is found.

func checkDirectory(string) error { return os.ErrNotExist }

func checkProgram(string) error { return os.ErrNotExist }
