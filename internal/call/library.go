// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build iptables_wrapper_signals && !mips && !mipsle && !mips64 && !mips64le

package call

import _ "unsafe" // for go:linkname

// runtimeIsLibrary is true when the process starts, as Go's linker makes it for -buildmode=c-shared: then the
// runtime leaves the caller's signals and standard descriptors alone. init decides who needs more than that. It
// stands here rather than in package process because a program that never called process.FinishStart would end
// before main.
//
//go:linkname runtimeIsLibrary runtime.islibrary
var runtimeIsLibrary = true
