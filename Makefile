# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# "make" prints the targets that people use. The others are parts of these, or for CI and releases: CONTRIBUTING.md has them.

SHELL := /bin/bash -euo pipefail

# Without tags, the newest version of the changelog, marked as built from source, and the revision. Without git, as in an image
# build, that version alone.
VERSION ?= $(or $(shell git describe --tags --dirty 2>/dev/null),$(shell sed -n 's/^## \[\(v[^]]*\)\].*/\1+source/p' CHANGELOG.md | \
	head -n 1)$(addprefix .,$(shell git describe --always --dirty --exclude '*' 2>/dev/null)))
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
KUBECTL_VALIDATE := sigs.k8s.io/kubectl-validate@v0.0.4
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.3.0
# How many inputs, or for how long each: "make fuzz FUZZTIME=1h".
FUZZTIME ?=
PARSER_INPUTS := 20000
CALL_INPUTS := 2000
BINARY ?= bin/iptables-wrapper

# The first keeps documentation generators out of the binary. The second keeps ignored signals ignored, and needs a linker flag:
# internal/process/signals.go says why.
TAGS := urfave_cli_no_docs,iptables_wrapper_signals
COMMAND := github.com/iptables-wrappers/iptables-wrappers/internal/command
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null | cut -c 1-12)
LDFLAGS := -w -checklinkname=0 -X $(COMMAND).version=$(VERSION) -X $(COMMAND).revision=$(REVISION)
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

.PHONY: help build release push sign publish ci nightly sbom-of test test-packages test-all lane-packages lane-others test-images test-faults test-kernels test-clients conformance demo fresh vet oldest-go cross lint manifests fuzz bench sbom vulncheck clean tools-demo tools-test tools-all

help:
	@sed -n 's/^##  *//p' Makefile

##  make build        bin/iptables-wrapper
##  make demo         see it work on the rules of a real node, without changing this machine
##  make test         each behavior is tested: a minute and a half once the tools are installed
##  make test-all     all images, kernels, clients, every call failing, and make lint: half an hour
##  make lint         formatting, vet, staticcheck, workflows, prose
##  make conformance  situations for any wrapper: WRAPPER=/path/to/it

build:
	go build $(BUILDFLAGS) -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $(BINARY) .

# How long a target takes, with what it needs first.
STARTED := $(shell date +%s)
TOOK = @echo "make $@: $$(($$(date +%s) - $(STARTED))) seconds" >&2

# The tests find the program that was built here in IPTABLES_WRAPPER; without it, each package builds one of its own. MAKEFLAGS
# is cleared for the makes that they start.
# No test needs what a debugger does.
GO_TEST := MAKEFLAGS= IPTABLES_WRAPPER=$(abspath $(BINARY)) go test -count=1 -ldflags=-s
# TEST_ALL=nightly is what takes too long for "make test-all".
TEST_ALL ?= 1
FULLY = TEST_ALL=$(TEST_ALL) $(GO_TEST)

# What takes longest begins first, so that it does not run alone on one core at the end.
PACKAGES := ./test/release ./test/kernels ./test ./...
# What needs modules that the wrapper does not. The clients have more of them: CLIENTS.
MODULES := test/images test/script test/bench

# All modules at a time: what waits for a disk or a guest leaves a core free. Go's tools and the tests end before they need
# their memory again, so it is collected less often; the wrapper of a script has the environment that the script gives it.
test: export GOGC := 400
test: tools-test vet build
	@$(MAKE) --no-print-directory --keep-going --jobs --output-sync=target test-packages $(MODULES:%=test-module-%)
	$(TOOK)

test-packages:
	$(GO_TEST) -timeout 60m -p 4 $(PACKAGES)

# The scripts take longest, and some of them wait: more of them at a time than there are cores.
$(MODULES:%=test-module-%): test-module-%:
	cd $* && $(GO_TEST) -timeout 60m -parallel 4 ./...

# Two lanes, because the clients sleep more than they compute.
test-all: tools-all vet build
	@$(MAKE) --no-print-directory -j2 lane-packages lane-others
	$(TOOK)

lane-packages:
	$(FULLY) -timeout 120m $(PACKAGES)
	@for module in $(MODULES); do (cd $$module && $(FULLY) -timeout 120m ./...); done

# Nothing here builds the program again, which the other lane is using.
lane-others:
	$(CLIENTS)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory fuzz

# The following are parts of "make test-all". TESTFLAGS=-update writes into docs/evidence/ what the tests expect.
test-images test-kernels test-faults: TEST_ALL := nightly
test-images: tools-all
	cd test/images && $(FULLY) -timeout 120m . $(TESTFLAGS)

# TESTFLAGS="-kernel 6.1 -case nft-removed" boots one kernel in one state.
test-kernels: tools-all
	$(FULLY) -timeout 120m ./test/kernels $(TESTFLAGS)

# System calls that fail, kills, random trees, races.
test-faults: tools-test build
	$(FULLY) -timeout 120m ./test -run '^(TestFaults|TestKill|TestRace|TestRandom)'

# Each client in two situations; with TEST_ALL in the environment, as in "make nightly", in all situations.
test-clients: tools-all build
	$(CLIENTS)

CLIENTS = cd test/clients && $(GO_TEST) -timeout 120m ./... $(TESTFLAGS)

# Any wrapper, in every situation that needs no more than the six names: make conformance WRAPPER=/path/to/it
# SUITEFLAGS="-run ^host -all" plays some of them, and prints those that pass too.
WRAPPER ?= $(BINARY)
NAMES ?= links
conformance: tools-test $(if $(filter $(BINARY),$(WRAPPER)),build)
	go run ./test/conformance -wrapper $(WRAPPER) -names $(NAMES) $(SUITEFLAGS)
	$(TOOK)

demo: tools-demo build
	@test/demo.sh
	$(TOOK)

# "make demo" and "make test" on a machine that was just installed, of any suite of Debian or Ubuntu.
SUITE ?= sid
fresh: tools-test
	test/fresh.sh $(SUITE) $(FRESHFLAGS)
	$(TOOK)

# With the gofmt of the Go that builds, which may not be the first in PATH, if there is one.
vet:
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted" >&2; exit 1; }
	go vet -tags $(TAGS) ./...
	@for module in $(MODULES); do (cd $$module && go vet ./...); done

# The Go that go.mod says is enough for who imports detect and exec, from the module proxy.
OLDEST_GO := go$(shell sed -n 's/^go //p' go.mod)
oldest-go:
	GOTOOLCHAIN=$(OLDEST_GO) go vet ./detect ./exec
	GOTOOLCHAIN=$(OLDEST_GO) go build $(BUILDFLAGS) -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $(BINARY)-oldest-go .

# A processor that no release is built for, and on which some of the kernel's numbers have other sizes; and the systems on which
# detect and exec can be built, and find nothing.
cross:
	GOARCH=mips go build -tags $(TAGS) -ldflags '$(LDFLAGS)' -o /dev/null .
	@for system in darwin windows plan9; do GOOS=$$system go build ./detect ./exec; done

lint: vet cross
	go mod tidy -diff
	go run $(STATICCHECK) -tags $(TAGS) ./...
	@for module in $(MODULES); do (cd $$module && go mod tidy -diff && go run $(STATICCHECK) ./...); done
	go run $(ACTIONLINT)
	go run ./test/style
	test/prose/check.sh
	$(TOOK)

# Compiles kubectl-validate first, which takes ten minutes of one core on a fresh machine.
manifests:
	go run $(KUBECTL_VALIDATE) --version 1.30 examples/*.yaml

# Every fuzz target for a number of inputs. Given a time instead, go sometimes fails at its end: "context deadline exceeded".
fuzz:
	@for package in detect internal/doctor internal/extensions internal/netlink test; do \
		case $$package in test) inputs=$(CALL_INPUTS) ;; *) inputs=$(PARSER_INPUTS) ;; esac; \
		for target in $$(grep -ho 'func Fuzz[A-Za-z]*' $$package/*_test.go | cut -d' ' -f2); do \
			go test ./$$package -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),$${inputs}x) -fuzzminimizetime 10x; \
		done; \
	done

# What is in the binary, for anyone who must know. vulncheck is not part of "make test", because it asks vuln.go.dev.
sbom: build sbom-of

sbom-of:
	cd test/sbom && go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod bin -json -std -noserial -version "$(VERSION)" -output $(abspath $(BINARY)).cdx.json $(abspath $(BINARY))

vulncheck:
	go run $(GOVULNCHECK) -tags $(TAGS) .

# Everything that a GitHub release needs, in dist/: make release VERSION=v1.2.3, from a clean checkout.
release: tools-all
	release/build.sh $(VERSION)

# What the release workflow then does with dist/, each in a job of its own: images to REGISTRY, signatures, a GitHub release.
push:
	release/push.sh $(VERSION)

sign:
	release/sign.sh

publish:
	release/publish.sh $(VERSION)

# What the CI workflow runs.
ci:
	.ci/run

# What takes too long for CI: CONTRIBUTING.md says what that is.
nightly:
	CI=true TEST_TREES=100000 TEST_HISTORIES=3000 TEST_CONTAINERS=3000 TEST_PROGRAMS=2000 TEST_ALL=nightly $(MAKE) --no-print-directory test-all manifests
	CI=true $(MAKE) --no-print-directory fuzz FUZZTIME=10m

# A wrapped call beside the direct one: docs/evidence/benchmarks.*. Then each part of it. BENCHFLAGS="-before REVISION" measures that
# one too; BENCHFLAGS="-quick -out /tmp" takes a minute, and any tree.
bench: tools-test build
	cd test/bench && go run . $(BENCHFLAGS)
	go test ./detect ./internal/... -run '^$$' -bench . -benchmem
	$(TOOK)

# Installs the missing programs that the targets call.
tools-demo tools-test tools-all: tools-%:
	@test/tools.sh $*

clean:
	rm -rf bin
