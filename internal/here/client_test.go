// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package here

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestPathOf(t *testing.T) {
	for environ, want := range map[string]string{
		"":                              "otherwise",
		"HOME=/\x00":                    "otherwise",
		"MYPATH=/a\x00PATH=/b:/c\x00X=": "/b:/c",
		"PATH=\x00":                     "",
		"PATH=/a\x00PATH=/b\x00":        "/b",
	} {
		if got := pathOf([]byte(environ), "otherwise"); got != want {
			t.Errorf("%q: got %q, want %q", environ, got, want)
		}
	}
}

// Process 1 is asked only if it is known to be this container's. What cannot be read says nothing.
func TestClientsPath(t *testing.T) {
	t.Setenv("PATH", "/ours")
	file := filepath.Join(t.TempDir(), "environ")
	host.Check(t, os.WriteFile(file, []byte("PATH=/theirs\x00"), 0o600))
	for ownRoot, want := range map[detect.Answer]string{
		detect.Yes: "/theirs", detect.No: "/ours", detect.Unknown: "/ours",
	} {
		if got := clientsPath(memory.Container{OwnRoot: ownRoot}, file); got != want {
			t.Errorf("%v: got %q, want %q", ownRoot, got, want)
		}
	}
	if got := clientsPath(memory.Container{OwnRoot: detect.Yes}, file+".gone"); got != "/ours" {
		t.Errorf("no such file: got %q", got)
	}
	many := strings.Repeat("/a:", maxDirs-1) + "/a"
	for doc, test := range map[string]struct{ environ, want string }{
		"as many directories as allowed": {"PATH=" + many, many},
		"too many directories":           {"PATH=" + many + ":/a", "/ours"},
		"as much as allowed":             {"PATH=/theirs\x00" + strings.Repeat("\x00", maxEnvironment-13), "/theirs"},
		"too much":                       {"PATH=/theirs\x00" + strings.Repeat("\x00", maxEnvironment-12), "/ours"},
	} {
		host.Check(t, os.WriteFile(file, []byte(test.environ), 0o600))
		if got := clientsPath(memory.Container{OwnRoot: detect.Yes}, file); got != test.want {
			t.Errorf("%s: got %q", doc, got)
		}
	}
}

// The client is the first file in PATH that can be executed; what is in the working directory is nobody's iptables.
func TestFirstIn(t *testing.T) {
	s := newScene(t)
	for _, dir := range []string{"/a/iptables", "/none", "/text", "/real", "/group", "/usr/bin"} {
		host.Check(t, os.MkdirAll(s.real(dir), 0o755))
	}
	s.write("/text/iptables", "", 0o644)
	s.write("/real/iptables", "", 0o711)
	s.write("/group/iptables", "", 0o610)
	for path, want := range map[string]string{
		"/none:/a:/text:/real:/usr/sbin": "/real/iptables",
		"/usr/sbin:/real":                "/usr/sbin/iptables",
		"usr/sbin:.::":                   "",
		"usr/bin::.:/real":               "/real/iptables",
		"/real/":                         "/real/iptables",
		"/group:/real":                   "/group/iptables",
		"":                               "",
	} {
		if got := firstIn(s.n.Tree, path, "iptables"); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// The client's directory is the one that counts, unless the client goes through the commands beside the wrapper.
func TestDir(t *testing.T) {
	s := newScene(t)
	s.n.Container.OwnRoot = detect.Unknown // so that our own PATH counts
	s.link("usr/sbin", "/sbin")
	for _, test := range []struct{ doc, path, link, want string }{
		{"no client", "/nowhere", "", sbin},
		{"the wrapper's", sbin, "", sbin},
		{"a link to the command", "/opt/bin", sbin + "/iptables", sbin},
		{"a link to the switch", "/opt/bin", sbin + "/" + layout.Switch, sbin},
		{"a link to another command", "/opt/bin", sbin + "/ip6tables", sbin},
		{"a link to the program", "/opt/bin", nftProgram, "/opt/bin"},
		{"a link to the wrapper", "/opt/bin", sbin + "/" + self.WrapperName, "/opt/bin"},
		{"broken", "/opt/bin", "/gone", sbin},
		{"a link to the command, by another path", "/opt/bin", "/sbin/iptables", sbin},
	} {
		t.Setenv("PATH", test.path)
		if test.link != "" {
			s.link(test.link, "/opt/bin/iptables")
		}
		got, err := Dir(s.n)
		if got != test.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", test.doc, got, err, test.want)
		}
	}
}
