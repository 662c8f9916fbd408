// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A recipe is built for another architecture, as docker buildx does it: every RUN is emulated, the installation too. What
// comes out works there. qemu-user passes no netlink message of netfilter on, so iptables-nft cannot start and the kernel
// seems to have no nf_tables.
func TestOtherArchitecture(t *testing.T) {
	wantAll(t)
	possible(t)
	storage := host.Storage(t)
	run := filepath.Join(filepath.Dir(storage), "run")
	arm64 := func(args ...string) result {
		t.Helper()
		return start(t, "", host.Emulated(t, podmanCommand(storage, run, args...)))
	}
	must := func(got result) string {
		t.Helper()
		if got.status != 0 {
			t.Fatalf("got %+v", got)
		}
		return strings.TrimSpace(got.stdout)
	}
	build := func(dir string, args ...string) string {
		t.Helper()
		args = append([]string{"build", "--quiet", "--pull=never", "--network", "host", "--platform", "linux/arm64"}, args...)
		return must(arm64(append(append(args, ulimits...), dir)...))
	}
	id := must(arm64("import", "--quiet", "--os", "linux", "--arch", "arm64", arm64Root(t)))
	base := build("bases/arm64", "--build-arg", "ROOTFS="+id)
	wrapper := build(wrapperContext(t, "GOARCH=arm64"))
	ref := build(top+"/images/alpine", "--build-arg", "BASE="+base, "--build-arg", "WRAPPER="+wrapper)

	for _, test := range []struct{ script, want string }{
		{"uname -m; iptables --version", `aarch64 iptables v1\S+ \(legacy\)`},
		{"iptables-wrapper install --skip-checks", `nothing to do: .*`},
		{"iptables-wrapper select --mode legacy; readlink -f /usr/sbin/ip6tables-save", `legacy /usr/sbin/xtables-legacy-multi`},
		{"iptables-wrapper select --mode nft; iptables-wrapper reset; readlink -f /usr/sbin/ip6tables-save", `nft .* /usr/sbin/iptables-wrapper`},
		{"iptables-wrapper detect -o json", `.*"conclusive": false.*`},
	} {
		got := arm64(slices.Concat([]string{"run", "--rm", "--network", "none"}, ulimits, []string{ref, "sh", "-c", test.script})...)
		if got.status != 0 || !regexp.MustCompile("^("+test.want+")$").MatchString(strings.Join(strings.Fields(got.stdout), " ")) {
			t.Errorf("%s: got %+v", test.script, got)
		}
	}
}

// arm64Root returns the files of Debian's iptables and busybox for arm64, unpacked but not configured, which would run
// programs.
func arm64Root(t *testing.T) string {
	t.Helper()
	tar := filepath.Join(cache(t), "trixie-arm64.tar")
	if _, err := os.Stat(tar); err != nil {
		unfinished := filepath.Join(t.TempDir(), "trixie-arm64.tar")
		output(t, exec.Command("mmdebstrap", "--quiet", "--variant=extract", "--arch=arm64", "--format=tar",
			"--include=iptables,busybox-static,netbase", "--extract-hook=cd \"$1\" && ln -s usr/bin usr/sbin usr/lib .",
			`--aptopt=Acquire::Check-Valid-Until "false"`, "trixie", unfinished, "http://deb.debian.org/debian"))
		host.Run(t, "mv", unfinished, tar)
	}
	return tar
}
