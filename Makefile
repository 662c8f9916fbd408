# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# make demo   see it work, on the rules of a real node, without changing this machine
# make test   every test, as in CI
# make build  bin/iptables-wrapper
# make test-images  the images of images/: built, and run in containers
# make test-faults  system calls that fail, kills, random trees, races, load
# make test-kernels  Debian's kernels from 5.10 to the newest, with and without each backend
# make sbom   what is in the binary, as CycloneDX
# make release VERSION=v1.2.3  binaries, tarballs, images, checksums

SHELL := /bin/bash -euo pipefail

# Without git, as in an image build, the newest version of the changelog, marked as built from source.
VERSION ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),$(shell sed -n 's/^## \[\(v[^]]*\)\].*/\1+source/p' CHANGELOG.md | head -n 1))
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
KUBECTL_VALIDATE := sigs.k8s.io/kubectl-validate@v0.0.4
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.3.0
# How many inputs, or for how long each: "make fuzz FUZZTIME=1h".
FUZZTIME ?=
PARSER_INPUTS := 300000
CALL_INPUTS := 10000
BINARY ?= bin/iptables-wrapper

# The first two keep documentation generators out of the binary. The third keeps ignored signals ignored, and needs the
# linker's leave: exec/inherited.go says why.
TAGS := urfave_cli_no_docs,urfave_cli_no_suggest,iptables_wrapper_signals
LDFLAGS := -s -w -checklinkname=0 -X github.com/iptables-wrappers/iptables-wrappers/internal/command.version=$(VERSION)
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

.PHONY: build release sbom sbom-of test test-images test-faults test-kernels demo lint fuzz bench sbom vulncheck tools clean

build:
	go build $(BUILDFLAGS) -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $(BINARY) .

test: tools lint build
	go test -count=1 -timeout 40m ./...
	$(MAKE) --no-print-directory fuzz

# A part of "make test". Adding -update writes what came of it into images/README.md.
test-images: tools
	go test -count=1 -timeout 30m ./test/images $(TESTFLAGS)

# A part of "make test". TESTFLAGS="-kernel 6.1 -case nft-removed" runs one; -update writes what came of it into docs/kernels.md.
test-kernels: tools
	go test -count=1 -timeout 40m ./test/kernels $(TESTFLAGS)

demo: tools build
	@test/demo.sh

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted" >&2; exit 1; }
	go mod tidy -diff
	go vet -tags $(TAGS) ./...
	go run $(STATICCHECK) -tags $(TAGS) ./...
	go run $(KUBECTL_VALIDATE) --version 1.30 examples/*.yaml

# A part of "make test" too. Adding -update writes what came of it into docs/evidence/faults.md and the README.
test-faults: tools
	go test -count=1 -timeout 30m ./test -run '^(TestFaults|TestKilled|TestRandomTrees|TestRaces|TestLoad|TestFuzzed|TestReadme|TestSecurity|TestSBOM)' $(TESTFLAGS)

# Every fuzz target for a number of inputs. Given a time instead, go sometimes fails at its end: "context deadline exceeded".
fuzz:
	@for package in detect test; do \
		case $$package in test) inputs=$(CALL_INPUTS) ;; *) inputs=$(PARSER_INPUTS) ;; esac; \
		for target in $$(grep -ho 'func Fuzz[A-Za-z]*' $$package/*_test.go | cut -d' ' -f2); do \
			go test ./$$package -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),$${inputs}x) -fuzzminimizetime 10x; \
		done; \
	done

# What is in the binary, for whoever must know. Not a part of "make test" is vulncheck, which asks vuln.go.dev.
sbom: build sbom-of

sbom-of:
	cd test/sbom && GOFLAGS= go tool cyclonedx-gomod bin -json -noserial -version "$(VERSION)" -output $(abspath $(BINARY)).cdx.json $(abspath $(BINARY))

vulncheck:
	go run $(GOVULNCHECK) -tags $(TAGS) .

# Everything that a GitHub release needs, in dist/: make release VERSION=v1.2.3, from a clean checkout.
release:
	release/build.sh $(VERSION)

# A wrapped call beside the direct one: docs/evidence/benchmarks.*. Then each part of it. BENCHFLAGS="-before REVISION" measures that
# one too.
bench: tools build
	go run ./test/bench $(BENCHFLAGS)
	go test ./detect ./exec -run '^$$' -bench . -benchmem

# What the tests and the demonstration call.
tools:
	@test/tools.sh

clean:
	rm -rf bin
