# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Only the wrapper, for other images to copy from:
#
#	COPY --from=iptables-wrapper /iptables-wrapper /usr/sbin/
#
# It builds with BuildKit, with docker's classic builder and with podman from 4.3 on, so no line says --platform=$BUILDPLATFORM, which
# neither the classic builder nor podman 4.3 sets. For another platform, the compiler runs emulated: "GOARCH=arm64 make build" is
# faster. The same source and VERSION give the same program; with podman build --timestamp 0, the same image.

FROM docker.io/library/golang:1.26.8-bookworm@sha256:dc9ad6c05acc7a88e5b71bde60a5fe3bd4b9f0db209011711b464107438a8107 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
RUN make build BINARY=/out/iptables-wrapper ${VERSION:+VERSION="$VERSION"}
RUN release/licenses.sh /out/iptables-wrapper >/out/LICENSES

# A release adds its version and revision: release/push.sh.
FROM scratch
LABEL org.opencontainers.image.title="iptables-wrapper" \
      org.opencontainers.image.description="Runs the iptables backend that the host uses, in any container" \
      org.opencontainers.image.source="https://github.com/iptables-wrappers/iptables-wrappers" \
      org.opencontainers.image.documentation="https://github.com/iptables-wrappers/iptables-wrappers/blob/main/docs/install.md" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/ /
ENTRYPOINT ["/iptables-wrapper"]
