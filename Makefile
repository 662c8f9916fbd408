# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# "make" prints the targets that people use. The others are for CI, nightly runs and releases. Recipes need no more than a POSIX
# shell; "make build" needs Go besides, and neither git nor bash.

# The newest tag, otherwise the revision; without git, a sum of the sources.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || release/source.sh)
BINARY ?= bin/iptables-wrapper
COMMAND := github.com/iptables-wrappers/iptables-wrappers/internal/command

# What needs modules that the wrapper does not. "make test" leaves out the images, as it does the clients: where nothing has been built
# before, they take minutes.
MODULES := test/images test/script test/bench
# What takes longest begins first.
PACKAGES := ./test/release ./test/kernels ./test/program ./...

# Which program the tests run. Without it, each package builds one of its own. "make lint" vets.
GO_TEST := MAKEFLAGS= IPTABLES_WRAPPER=$(abspath $(BINARY)) go test -count=1 -vet=off
# TEST_ALL=nightly is what takes too long for "make test-all".
TEST_ALL ?= 1

# CI tests with it, beside the Go of go.mod. release/go.sh keeps both new.
NEWEST_GO := go1.27.4

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
REVIVE := github.com/mgechev/revive@v1.7.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
KUBECTL_VALIDATE := sigs.k8s.io/kubectl-validate@v0.0.4
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.3.0
# For how long each fuzz target runs: "make fuzz FUZZ=1h". Without it, a number of inputs: fewer where each starts a process.
FUZZ ?=

# How long a target takes, with what it needs first.
STARTED := $(shell date +%s)
TOOK = @echo "make $@: $$(($$(date +%s) - $(STARTED))) seconds" >&2

.PHONY: help build demo check test test-packages test-all lane-packages lane-others lint bench conformance release \
	nightly fuzz oldest-go vulncheck tools-demo tools-test tools-all

help:
	@sed -n 's/^##  *//p' Makefile

##  make build        bin/iptables-wrapper
##  make demo         see it work on the rules of a real node, without changing this machine
##  make check        what any user can run of the tests, and what was skipped, and why
##  make test         each behavior is tested, without images and clients: minutes once the tools are installed
##  make test-all     the same in full, with images and clients, and make lint: half an hour
##  make lint         formatting, vet, staticcheck, revive, actionlint, other systems
##  make bench        a wrapped call beside the direct one: BENCHFLAGS="-before REVISION" compares
##  make conformance  situations for any wrapper: WRAPPER=/path/to/it
##  make release      everything that a GitHub release needs, in dist/: VERSION=v1.2.3

# The tag leaves generators of documentation out, and changes nothing but the size. "go build ." makes the same program, which does
# not know its version.
build:
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags urfave_cli_no_docs \
		-ldflags '-w -X $(COMMAND).version=$(VERSION)' -o $(BINARY) .

demo: tools-demo build
	@test/demo.sh
	$(TOOK)

# All modules at a time: what waits for a disk or a guest leaves a core free. The output of each comes at its end.
test: tools-test build
	@{ while sleep 30 && kill -0 $$PPID; do \
		running=$$(pgrep --pgroup 0 --list-name '^(compile|link|.*\.test?)$$' | sed 's/.* //; s/\.test*$$//' | sort -u | tr '\n' ' '); \
		echo "make test: $$(($$(date +%s) - $(STARTED))) seconds, running: $$running" >&3; \
	done } 3>&2 >/dev/null 2>&1 & progress=$$!; \
	$(MAKE) --no-print-directory --keep-going --jobs --output-sync=target test-packages test-module-script test-module-bench; \
	status=$$?; kill $$progress; exit $$status
	$(TOOK)

# "go test ./..." as any user. Go prints nothing of tests that were skipped, so test/check.sh does.
check:
	@test/check.sh ./...

test-packages:
	$(GO_TEST) -timeout 60m -p 4 $(PACKAGES)

# The scripts take longest, and some of them wait: more of them at a time than there are cores.
test-module-script test-module-bench: test-module-%:
	cd test/$* && $(GO_TEST) -timeout 60m -parallel 4 ./...

# Two lanes, because the clients sleep more than they compute. Neither builds the program again, which the other is using.
test-all: tools-all build
	@$(MAKE) --no-print-directory --jobs=2 TEST_ALL=$(TEST_ALL) lane-packages lane-others
	$(TOOK)

lane-packages: export TEST_ALL := $(TEST_ALL)
lane-packages:
	$(GO_TEST) -timeout 120m $(PACKAGES)
	@for module in $(MODULES); do (cd $$module && $(GO_TEST) -timeout 120m ./...) || exit; done

# Each client in two situations; in "make nightly", in all of them.
lane-others: export TEST_ALL := $(filter nightly,$(TEST_ALL))
lane-others:
	cd test/clients && $(GO_TEST) -timeout 120m ./...
	@$(MAKE) --no-print-directory lint fuzz

# gofmt is that of the Go that builds, which may not be the first in PATH. The processor is one that no release is built for, on
# which some of the kernel's numbers have other sizes. On the other systems, detect and exec can be built, and find nothing.
lint:
	@for tool in git shellcheck; do \
		command -v $$tool >/dev/null || { echo "make lint needs $$tool: install it first" >&2; exit 1; }; \
	done
	@unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted" >&2; exit 1; }
	@for module in . $(MODULES); do \
		(cd $$module && go mod tidy -diff && go vet ./... && go run $(STATICCHECK) ./...) || exit; \
	done
	@bare=$$(git grep -L SPDX-License-Identifier -- . ':!LICENSE' $$(grep -o '"[^"]*[*/][^"]*"' REUSE.toml | \
		sed 's/"\(.*\)"/:(exclude,glob)\1/')); test -z "$$bare" || { echo "no licence: $$bare" >&2; exit 1; }
	go run $(REVIVE) -config .revive.toml -set_exit_status ./...
	go run $(ACTIONLINT)
	shellcheck -x release/*.sh test/check.sh test/matrix.sh test/real/*.sh test/images/bases/fedora/alternatives
	GOARCH=mips go build -o /dev/null .
	@for system in darwin windows plan9; do GOOS=$$system go build ./detect ./exec || exit; done
	$(TOOK)

# Any wrapper, in every situation that needs no more than the six commands. SUITEFLAGS="-run ^host -all" plays some of them, and prints
# those that pass too.
WRAPPER ?= $(BINARY)
NAMES ?= $(if $(filter $(BINARY),$(WRAPPER)),test/conformance/testdata/install.sh,links)
conformance: tools-test $(if $(filter $(BINARY),$(WRAPPER)),build)
	go run ./test/conformance -wrapper $(WRAPPER) -names $(NAMES) $(SUITEFLAGS)
	$(TOOK)

# docs/evidence/benchmarks.*, then each part of a call. BENCHFLAGS="-quick -out /tmp" takes a minute, and any tree.
bench: tools-test build
	cd test/bench && go run . $(BENCHFLAGS)
	go test ./detect ./internal/... -run '^$$' -bench . -benchmem
	$(TOOK)

# From a clean checkout. docs/releasing.md says what follows.
release: tools-all
	release/build.sh $(VERSION)

# What takes too long for CI. Compiling kubectl-validate takes ten minutes of one core on a fresh machine.
nightly:
	CI=true TEST_HISTORIES=3000 TEST_CONTAINERS=3000 TEST_HOSTS=2000 $(MAKE) --no-print-directory TEST_ALL=nightly test-all
	CI=true $(MAKE) --no-print-directory fuzz FUZZ=10m
	go run $(KUBECTL_VALIDATE) --version 1.30 examples/*.yaml

# Every fuzz target. Given a time, go sometimes fails at its end: "context deadline exceeded".
fuzz:
	@grep -rHo --include='*_test.go' 'func Fuzz[A-Za-z0-9]*' . | sed 's/^\(.*\)\/[^/]*:func /\1 /' | sort | while read -r package target; do \
		case $$target in FuzzCall) inputs=1000x ;; *) inputs=20000x ;; esac; \
		go test $$package -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZ),$$inputs) -fuzzminimizetime 10x || exit; \
	done

# The Go that go.mod says is enough for who imports detect and exec, from the module proxy.
OLDEST_GO := go$(shell sed -n 's/^go //p' go.mod)
oldest-go:
	GOTOOLCHAIN=$(OLDEST_GO) go vet ./detect ./exec
	GOTOOLCHAIN=$(OLDEST_GO) go build -o /dev/null .

# Not a part of the tests, because it asks vuln.go.dev.
vulncheck:
	go run $(GOVULNCHECK) .

# Installs the missing programs that the targets call.
tools-demo tools-test tools-all: tools-%:
	@test/tools.sh $*
