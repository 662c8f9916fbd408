// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The manual page is one that mandoc has nothing to say about, and has what a manual page has.
func TestManualPage(t *testing.T) {
	t.Parallel()
	host.Needs(t, "mandoc")
	binary, err := host.Wrapper()
	host.Check(t, err)
	page := output(t, exec.Command("../../release/man.sh", binary, newest(t)))
	file := filepath.Join(t.TempDir(), "iptables-wrapper.8")
	host.Check(t, os.WriteFile(file, []byte(page+"\n"), 0o644))
	complaints, err := exec.Command("mandoc", "-Tlint", "-Wstyle", file).CombinedOutput()
	if err != nil || len(complaints) > 0 {
		t.Errorf("mandoc -Tlint: %v\n%s", err, complaints)
	}
	text := output(t, exec.Command("mandoc", "-Tascii", "-O", "width=200", file))
	for _, heading := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "EXIT STATUS", "FILES",
		"EXAMPLES", "SEE ALSO"} {
		var printed strings.Builder // each letter is struck twice
		for _, letter := range heading {
			if letter == ' ' {
				printed.WriteRune(letter)
				continue
			}
			printed.WriteString(string(letter) + "\b" + string(letter))
		}
		if !strings.Contains("\n"+text, "\n"+printed.String()+"\n") {
			t.Errorf("the manual page has no section %s", heading)
		}
	}
}
