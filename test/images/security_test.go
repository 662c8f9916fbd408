// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each example says which of what it asks for Pod Security's level baseline forbids.
func TestPodSecurity(t *testing.T) {
	files, err := filepath.Glob(top + "/examples/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text := host.Read(t, file)
		spec := parsePod(t, text)
		var forbidden []string
		if spec.HostNetwork {
			forbidden = append(forbidden, "hostNetwork")
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil {
				forbidden = append(forbidden, "hostPath")
			}
		}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			if slices.Contains(c.SecurityContext.Capabilities.Add, "NET_ADMIN") &&
				!slices.Contains(forbidden, "NET_ADMIN") {
				forbidden = append(forbidden, "NET_ADMIN")
			}
		}
		want := "# Pod Security: enforce=privileged, because baseline forbids " + strings.Join(forbidden, ", ") + ".\n"
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}
