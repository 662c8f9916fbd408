// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

module github.com/iptables-wrappers/iptables-wrappers/test/clients

go 1.26.0

toolchain go1.26.8

require (
	github.com/iptables-wrappers/iptables-wrappers v0.0.0
	golang.org/x/sys v0.47.0
)

replace github.com/iptables-wrappers/iptables-wrappers => ../..
