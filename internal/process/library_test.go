// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build iptables_wrapper_signals && !mips && !mipsle && !mips64 && !mips64le

package process_test

import _ "unsafe" // for go:linkname

// As in package call.
//
//go:linkname runtimeIsLibrary runtime.islibrary
var runtimeIsLibrary = true
