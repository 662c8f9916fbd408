// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !iptables_wrapper_signals || mips || mipsle || mips64 || mips64le

package exec

// ReleaseSignals does nothing in a build by plain "go install": see signals.go.
func ReleaseSignals() {}

func restoreSignals() {}
