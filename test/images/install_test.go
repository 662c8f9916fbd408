// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"testing"
)

// plain is Debian with iptables and nothing else.
func plain(t *testing.T) string {
	t.Helper()
	return build(t, "test-plain", dockerfile(t, "FROM "+base(t, "debian:trixie"),
		"RUN apt-get update && apt-get install --yes --no-install-recommends iptables"))
}

var bothModes = []string{"legacy", "nft"}
