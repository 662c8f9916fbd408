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

// plain is Debian with iptables and nothing else.
func plain(t *testing.T) string {
	t.Helper()
	return build(t, "test-plain", dockerfile(t, "FROM "+base(t, "debian:trixie"),
		"RUN apt-get update && apt-get install --yes --no-install-recommends iptables"))
}

var bothModes = []string{"legacy", "nft"}

// The wrapper copied over /usr/sbin/iptables by somebody who never ran install serves that one name. Copying follows no
// link: it replaces it.
func TestCopiedToIptables(t *testing.T) {
	wantAll(t)
	i := built{image{dir: "/usr/sbin"}, build(t, "test-copied", dockerfile(t, "FROM "+base(t, "iptables-wrapper")+" AS wrapper",
		"FROM "+plain(t), "COPY --from=wrapper /iptables-wrapper /usr/sbin/iptables"))}
	for _, mode := range bothModes {
		got := i.run(t, rule1, "iptables --version >/dev/null; iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; "+
			"for n in iptables ip6tables; do /busybox readlink -f /usr/sbin/$n; done; /usr/sbin/iptables-wrapper detect 2>/dev/null; version", rights(newNode(t, mode))...)
		lines := strings.Fields(got.stdout)
		// The other names are still Debian's own, so iptables-restore is nft's.
		rules := map[string]string{"legacy": "0", "nft": "1"}[mode]
		if want := []string{rules, i.program(mode), i.program("nft"), mode, version(mode)}; strings.Join(lines, " ") != strings.Join(want, " ") ||
			got.stderr != "" {
			t.Errorf("%s: got %+v, want %q", mode, got, want)
		}
	}
}

// A root file system that was installed into from outside keeps the wrapper when its package is reinstalled, and it works.
func TestRootReinstalled(t *testing.T) {
	wantAll(t)
	id := podman(t, "create", plain(t), "-")
	t.Cleanup(func() { podman(t, "rm", "--force", id) })
	root := podman(t, "mount", id)
	wrapper := t.TempDir() + "/iptables-wrapper"
	host.Check(t, os.WriteFile(wrapper, contents(t, base(t, "iptables-wrapper"))["iptables-wrapper"], 0o755))
	got := output(t, exec.Command(wrapper, "install", "--root", root))
	if want := "/etc/alternatives/iptables -> /usr/sbin/iptables-current\n"; !strings.Contains(got+"\n", want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	podman(t, "unmount", id)
	ref := podman(t, "commit", "--quiet", id)
	i := built{image{dir: "/usr/sbin"}, build(t, "test-root-reinstalled", dockerfile(t, "FROM "+ref,
		"COPY --from="+base(t, "debs:trixie")+" /debs /debs", "RUN "+dpkgReinstall))}
	for _, mode := range bothModes {
		got := i.run(t, rule1, "leads; iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version",
			rights(newNode(t, mode))...)
		if word := i.right(t, got, mode, i.wrapper(), "1"); word != direct {
			t.Errorf("%s: %q", mode, word)
		}
	}
}
