// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// The scripts, and the schemas of what is printed. A module of its own: who uses the wrapper's module does not get what these need.
module github.com/iptables-wrappers/iptables-wrappers/test/script

go 1.26.0

toolchain go1.26.8

replace github.com/iptables-wrappers/iptables-wrappers => ../..

require (
	github.com/iptables-wrappers/iptables-wrappers v0.0.0-00010101000000-000000000000
	github.com/rogpeppe/go-internal v1.16.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	golang.org/x/sys v0.47.0
	golang.org/x/tools v0.26.0
)

require golang.org/x/text v0.14.0 // indirect
