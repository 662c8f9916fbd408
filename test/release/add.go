// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// inside runs a command in another root, which sees the directory $WORK and the machine's network.
const inside = `
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT" # buildah makes its / private
for dir in /proc /sys /dev "$WORK"; do
	mkdir -p "$ROOT$dir"
	mount --rbind "$dir" "$ROOT$dir"
done
exec chroot "$ROOT" "$@"
`

// checkAdded builds images with the line ADD of docs/install.md from the release in dist/. GitHub is a server here; the
// sums are the page's. The builder is Debian's newest stable buildah: the machine's podman may not know --checksum.
func checkAdded(t *testing.T, dir, version string) {
	t.Helper()
	host.NeedsRoot(t, "build an image")
	host.Needs(t, "mmdebstrap", "unshare")
	server := httptest.NewServer(http.StripPrefix("/"+version, http.FileServer(http.Dir(filepath.Join(dir, "dist")))))
	t.Cleanup(server.Close)
	checkCurl(t, dir, server.URL)
	root, work := t.TempDir(), t.TempDir()
	host.Run(t, "tar", "-C", root, "--exclude=./dev", "-xf",
		host.DebianTar(t, "trixie", "trixie-buildah", "--include=buildah,netavark,ca-certificates"))
	line := addLine(t, dir, server.URL)
	for name, lines := range map[string]string{
		"right": "FROM scratch\n" + line,
		"other": "FROM scratch\n" + regexp.MustCompile(`sha256:....`).ReplaceAllString(line, "sha256:0000"),
	} {
		context := filepath.Join(work, name)
		host.Check(t, os.Mkdir(context, 0o755))
		text := lines + `RUN ["/usr/sbin/iptables-wrapper", "version"]` + "\n"
		host.Check(t, os.WriteFile(filepath.Join(context, "Dockerfile"), []byte(text), 0o644))
		cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", inside, "-",
			"env", "TMPDIR="+work, "buildah", "--root", work+"/storage", "--runroot", work+"/run",
			"--storage-driver", "vfs", "build", "--isolation", "chroot", "--network", "host", "--tag", name)
		cmd.Args = append(append(cmd.Args, host.Ulimits...), context)
		cmd.Env = append(os.Environ(), "ROOT="+root, "WORK="+work)
		said, err := cmd.CombinedOutput()
		switch refused := strings.Contains(string(said), "unexpected response digest"); {
		case name == "other" && (err == nil || !refused):
			t.Errorf("a wrong sum: %v\n%s", err, said)
		case name != "other" && (err != nil || !strings.Contains(string(said), "version "+version+" (")):
			t.Errorf("%v\n%s\n%s", err, text, said)
		}
	}
}

// addLine returns the line ADD of docs/install.md, with another server.
func addLine(t *testing.T, dir, url string) string {
	t.Helper()
	page := string(host.Read(t, filepath.Join(dir, "docs/install.md")))
	lines := regexp.MustCompile(`(?m)^ADD --checksum=sha256:[0-9a-f]{64} .*\n`).FindAllString(page, -1)
	if len(lines) != 1 || strings.Contains(page, "sha256:...") {
		t.Fatalf("docs/install.md has other lines: %q", lines)
	}
	return strings.ReplaceAll(lines[0], "https://"+module+"/releases/download", url)
}

// checkCurl runs the line of docs/install.md that needs no ADD, as far as the binary is in place: with the page's sum,
// and with another one, which it refuses.
func checkCurl(t *testing.T, dir, url string) {
	t.Helper()
	host.Needs(t, "curl")
	line := regexp.MustCompile(`(?m)^RUN (curl .* && chmod 755 \S+) && iptables-wrapper install$`)
	found := line.FindSubmatch(host.Read(t, filepath.Join(dir, "docs/install.md")))
	if found == nil {
		t.Fatal("docs/install.md has no line with curl")
	}
	binary := filepath.Join(t.TempDir(), "iptables-wrapper")
	command := strings.NewReplacer("https://"+module+"/releases/download", url, "/usr/sbin/iptables-wrapper", binary).
		Replace(string(found[1]))
	host.Run(t, "sh", "-euc", command)
	host.Run(t, binary, "version")
	other := regexp.MustCompile(`echo '....`).ReplaceAllString(command, "echo '0000")
	out, err := exec.Command("sh", "-euc", other).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FAILED") {
		t.Errorf("a wrong sum: %v\n%s", err, out)
	}
}
