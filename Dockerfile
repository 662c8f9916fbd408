# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# The wrapper alone, for other images to take it from:
#
#	COPY --from=iptables-wrapper /iptables-wrapper /usr/sbin/
#
# Build it for any of linux/amd64, arm64, arm/v7, ppc64le, s390x, riscv64 and 386. The same source and VERSION give the same
# program; with podman build --timestamp 0, the same image.

ARG GO_IMAGE=go
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26.8-bookworm@sha256:dc9ad6c05acc7a88e5b71bde60a5fe3bd4b9f0db209011711b464107438a8107 AS go

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH TARGETVARIANT VERSION
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH GOARM=${TARGETVARIANT#v} \
    make build BINARY=/out/iptables-wrapper ${VERSION:+VERSION="$VERSION"}
RUN release/licenses.sh /out/iptables-wrapper >/out/LICENSES

FROM scratch
ARG VERSION REVISION
LABEL org.opencontainers.image.title="iptables-wrapper" \
      org.opencontainers.image.description="Runs the iptables backend that the host uses, in any container" \
      org.opencontainers.image.source="https://github.com/iptables-wrappers/iptables-wrappers" \
      org.opencontainers.image.documentation="https://github.com/iptables-wrappers/iptables-wrappers/blob/main/docs/install.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /out/ /
ENTRYPOINT ["/iptables-wrapper"]
