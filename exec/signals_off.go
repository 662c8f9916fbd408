// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !iptables_wrapper_signals

package exec

// restoreSignals does nothing in a build by plain "go install": see signals.go.
func restoreSignals() {}
