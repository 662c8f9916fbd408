// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// "make bench". A module of its own: nothing else needs what draws the picture.
module github.com/iptables-wrappers/iptables-wrappers/test/bench

go 1.26.0

toolchain go1.26.8

replace github.com/iptables-wrappers/iptables-wrappers => ../..

require (
	github.com/iptables-wrappers/iptables-wrappers v0.0.0-00010101000000-000000000000
	golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da
	golang.org/x/sys v0.49.0
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	golang.org/x/image v0.46.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
