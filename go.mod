// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

module github.com/iptables-wrappers/iptables-wrappers

go 1.25.0

toolchain go1.26.8

require (
	github.com/coreos/go-iptables v0.8.0
	github.com/urfave/cli/v2 v2.27.7
	golang.org/x/sys v0.47.0
)

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
)
