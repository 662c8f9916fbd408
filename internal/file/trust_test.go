// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Every directory and every link on the way counts, wherever it is.
func TestExposed(t *testing.T) {
	host.NeedsRoot(t, "give files to other users")
	top := t.TempDir() // below /tmp, which is sticky
	for _, directory := range []string{"safe/bin", "open/bin", "group/bin", "sticky/bin", "theirs/bin"} {
		host.Check(t, os.MkdirAll(top+"/"+directory, 0o755))
		host.Check(t, os.WriteFile(top+"/"+directory+"/program", nil, 0o755))
	}
	host.Check(t, os.Chmod(top+"/open", 0o777))
	host.Check(t, os.Chmod(top+"/group", 0o775))
	host.Check(t, os.Chmod(top+"/sticky", 0o777|os.ModeSticky))
	host.Check(t, os.WriteFile(top+"/safe/sticky-file", nil, 0o755))
	host.Check(t, os.Chmod(top+"/safe/sticky-file", 0o777|os.ModeSticky))
	host.Check(t, os.Chown(top+"/theirs", 65534, 65534))
	for path, content := range map[string]string{
		"safe/link": "bin", "open/link": "../safe/bin", "up": "safe/bin/../../open/bin", "sticky/link": "../safe/bin",
		"safe/link-to-theirs": "../theirs/bin/program", "loop": "loop", "their-link": "safe/bin",
		"far":      "open/bin",
		"absolute": top + "/open/bin",
	} {
		host.Check(t, os.Symlink(content, top+"/"+path))
	}
	host.Check(t, os.Lchown(top+"/their-link", 65534, 65534))
	for path, want := range map[string]string{
		"safe/bin/program":    "",
		"safe/link/program":   "",
		"sticky/bin/program":  "",
		"sticky/link/program": "",
		"safe/bin/missing":    "/safe/bin/missing",
		"loop":                "/loop",
		"far/../program":      "/open",
		"open/bin/program":    "/open",
		"open/link/program":   "/open",
		"up/program":          "/open",
		"absolute/program":    "/open",
		"group/bin/program":   "/group",
		"safe/sticky-file":    "/safe/sticky-file",
		"theirs/bin/program":  "/theirs",
		"safe/link-to-theirs": "/theirs",
		"their-link/program":  "/their-link",
	} {
		got := strings.TrimPrefix(Exposed(top+"/"+path), top)
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// The system's directories are taken as they are, by their paths, but not if they are sticky: there, others cannot
// replace what root has put, only add to it.
func TestSystemDir(t *testing.T) {
	var sbin unix.Stat_t
	host.Check(t, unix.Stat("/usr/sbin", &sbin))
	sbin.Uid, sbin.Mode = 1000, unix.S_IFDIR|0o777
	sticky := sbin
	sticky.Mode |= unix.S_ISVTX
	if !SystemDir("/usr/sbin", sbin) || !TrustedDir("/sbin", sbin) {
		t.Error("/usr/sbin is not taken as it is")
	}
	if SystemDir("/usr/sbin", sticky) || TrustedDir("/usr/sbin", sticky) {
		t.Error("a sticky directory is taken as it is")
	}
	if TrustedDir("/usr/local/sbin", sbin) || TrustedDir("/usr", sbin) {
		t.Error("another path, to the same inode, is taken as it is")
	}
}
