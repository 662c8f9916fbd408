// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Backend is a backend of iptables.
type Backend = Mode
