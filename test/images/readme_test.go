// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The Dockerfile in the README, and the call below it, work on hosts of both modes. Only what comes from a registry is
// replaced, and the host's network.
func TestReadme(t *testing.T) {
	wantAll(t)
	readme := host.Read(t, top+"/README.md")
	found := regexp.MustCompile("(?s)```dockerfile\n(.*?)```.*?\n    docker run --rm --network host (.*?) my-image (.*?)\n").FindStringSubmatch(string(readme))
	if found == nil {
		t.Fatal("the README has no Dockerfile with a call below it")
	}
	text := strings.NewReplacer("debian:trixie-slim", base(t, "debian:trixie")).Replace(found[1])
	text = regexp.MustCompile(`ghcr\.io/iptables-wrappers/iptables-wrapper:v\S+`).ReplaceAllLiteralString(text, base(t, "iptables-wrapper"))
	ref := build(t, "readme", dockerfile(t, strings.Split(strings.TrimSpace(text), "\n")...))
	for _, mode := range bothModes {
		args := slices.Concat([]string{"run", "--rm", newNode(t, mode).network()}, ulimits, strings.Fields(found[2]), []string{ref}, strings.Fields(found[3]))
		if got := podman(t, args...); !strings.HasSuffix(got, version(mode)) {
			t.Errorf("%s: got %s", mode, got)
		}
	}
}
