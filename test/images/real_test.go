// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// test/real/images.sh plays a setting on an image that was made from another base. There is no registry here.
func TestRealImages(t *testing.T) {
	if realBase != "" {
		t.Skip("this is its own test")
	}
	cmd := exec.Command(top+"/test/real/images.sh", "-v", "-run", "^TestImages$/^debian_\\(trixie\\)$/^first_call")
	cmd.Env = append(os.Environ(), "BASE="+base(t, "debian:bookworm"))
	got := host.Output(t, cmd)
	if !strings.Contains(got, "--- PASS: TestImages/debian_(trixie)/first_call_is_a_restore/") {
		t.Errorf("it says\n%s", got)
	}
}
