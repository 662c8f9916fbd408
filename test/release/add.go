// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
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

// checkAdded builds images with the lines of docs/install.md from the release in dist/. GitHub is a server here; the
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
	one, several := addLines(t, dir, server.URL)
	for name, lines := range map[string]string{
		"one":     "FROM scratch\n" + one,
		"several": several + "FROM scratch\nCOPY --from=wrapper /iptables-wrapper /usr/sbin/\n",
		"other":   "FROM scratch\n" + regexp.MustCompile(`sha256:....`).ReplaceAllString(one, "sha256:0000"),
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

// addLines returns the lines of docs/install.md for one platform and for several, with another server.
func addLines(t *testing.T, dir, url string) (one, several string) {
	t.Helper()
	page := string(host.Read(t, filepath.Join(dir, "docs/install.md")))
	page = strings.ReplaceAll(page, "https://"+module+"/releases/download", url)
	blocks := regexp.MustCompile("(?s)```dockerfile\n(.*?)```").FindAllStringSubmatch(page, 2)
	if len(blocks) < 2 || strings.Count(page, "ADD --checksum=sha256:") != 3 || strings.Contains(page, "sha256:...") {
		t.Fatalf("docs/install.md has other lines: %q", blocks)
	}
	one, _, _ = strings.Cut(blocks[0][1], "RUN iptables-wrapper install")
	if !strings.Contains(string(host.Read(t, filepath.Join(dir, "README.md"))), firstSum(one)) {
		t.Errorf("the README has another sum than %s", firstSum(one))
	}
	return one, fmt.Sprint(blocks[1][1])
}

func firstSum(lines string) string {
	return regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(lines)
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
