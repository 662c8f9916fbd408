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

// withNewPodman makes a release with the podman of another root. Both see the directory $WORK, where the checkout is.
const withNewPodman = `
mount --make-rprivate /
for dir in /proc /sys /dev "$WORK"; do
	mkdir -p "$ROOT$dir"
	mount --rbind "$dir" "$ROOT$dir"
done
cd "$WORK/source"
export TMPDIR=$WORK/tmp
export PODMAN="chroot $ROOT env --chdir=$WORK/source $PODMAN"
$PODMAN --version
release/build.sh "$VERSION"
`

// Debian's newest podman makes a release, too: podman 5.8 refused what 4.3 did.
func TestNewPodman(t *testing.T) {
	if !host.All() {
		t.Skip("installs a Debian with podman: make test-all runs it")
	}
	if os.Geteuid() != 0 {
		host.Cannot(t, "run containers: run it as root")
	}
	host.Needs(t, "mmdebstrap", "unshare")
	archive := host.DebianTar(t, "sid", "sid-podman", "--include=podman,runc,ca-certificates")
	root, work := t.TempDir(), filepath.Dir(checkout(t, "source"))
	host.Run(t, "tar", "-C", root, "--exclude=./dev", "-xf", archive)
	host.Check(t, os.MkdirAll(filepath.Join(work, "tmp"), 0o755))
	cmd := exec.Command("unshare", "--mount", "sh", "-euc", withNewPodman)
	cmd.Env = append(os.Environ(), "ROOT="+root, "WORK="+work, "VERSION="+newest(t), "SOURCE_DATE_EPOCH=0",
		"PODMAN="+strings.Join(host.Podman(work+"/storage", work+"/run").Args, " ")+" --storage-driver vfs",
		"PLATFORMS=linux/amd64 linux/arm64", "DISTROLESS=")
	t.Log(output(t, cmd))
	got := platformsOf(t, filepath.Join(work, "source/dist"), "iptables-wrapper")
	if strings.Join(got, " ") != "linux/amd64 linux/arm64" {
		t.Errorf("the image is for %q", got)
	}
}
