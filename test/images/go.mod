// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// The tests of the images. A module of its own: who uses the wrapper's module does not get what reads YAML.
module github.com/iptables-wrappers/iptables-wrappers/test/images

go 1.26.0

toolchain go1.26.8

replace github.com/iptables-wrappers/iptables-wrappers => ../..

require (
	github.com/iptables-wrappers/iptables-wrappers v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.47.0
	sigs.k8s.io/yaml v1.6.0
)

require go.yaml.in/yaml/v2 v2.4.2 // indirect
