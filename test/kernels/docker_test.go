// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// dockerPrefix before a state's name: Debian's dockerd runs in a container in that state.
const dockerPrefix = "docker-"

var dockerTests = []struct {
	state   string
	backend string // in which the daemon's rules must be
	direct  bool   // the daemon starts without the wrapper, too, where the names resolve to iptables-nft
}{
	{"as-is", "nft", true},
	{"nft-chain-nat-removed", "legacy", false},
}

// TestDocker starts dockerd in a container with a network namespace of its own, as docker-in-docker does, with Debian's
// names of iptables and then with the wrapper.
func TestDocker(t *testing.T) {
	t.Parallel()
	asked := strings.HasPrefix(*onlyState, dockerPrefix)
	if !asked && (*onlyState != "" || !host.Nightly()) {
		t.Skip("only in make nightly, in make test-kernels, or by -case")
	}
	possible(t)
	f := fetch(t, all[2])
	trees := build(t)
	trees["usr/lib/modules"] = filepath.Join(f.modules, "lib/modules")
	dir := t.TempDir()
	m := machine{image: f.image, initramfs: filepath.Join(dir, "initramfs"), memory: "3072"}
	initramfs(t, m.initramfs, guestRoot(t, "docker.io"), trees)
	m.accel = m.accelerator(t)
	var names []string
	for _, test := range dockerTests {
		names = append(names, dockerPrefix+test.state)
	}
	report := m.tell(t, "run="+strings.Join(names, ","))
	if len(report) != len(names) {
		t.Fatalf("the guest reports of %d states, not of %q", len(report), names)
	}
	for i, test := range dockerTests {
		steps := map[string]step{}
		for _, s := range report[i].steps {
			steps[s.Name] = s
		}
		expect := func(ok bool, name, want string) {
			if !ok {
				t.Errorf("%s: %s: want %s; got %+v; dockerd's log: %s", test.state, name, want, steps[name], steps["log"].Stdout)
			}
		}
		expect((steps["direct"].Status == 0) == test.direct, "direct", fmt.Sprintf("it works: %t", test.direct))
		expect(steps["version"].Status == 0 && strings.Count(steps["version"].Stdout, ".") == 2, "version", "the server's version")
		expect(steps["network"].Status == 0, "network", "a network to be created")
		for _, backend := range backends {
			for _, rule := range []string{"-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE", "-A POSTROUTING -s 10.9.0.0/24", ":DOCKER-USER"} {
				name := "save " + backend
				expect(strings.Contains(steps[name].Stdout, rule) == (backend == test.backend), name, rule+" in "+test.backend+" only")
			}
		}
	}
}

// runDocker is what the container's first process does. What it leaves running ends with it.
func runDocker() error {
	for _, s := range []struct{ name, command string }{
		{"direct", "unshare --net --pid --fork --kill-child --mount-proc sh -c '" + startDocker + "'; status=$?; rm -rf /run/docker* /run/containerd* /var/lib/docker /var/lib/containerd; exit $status"},
		{"install", wrapper + " install"},
		{"start", startDocker},
		{"network", "docker network create --subnet 10.9.0.0/24 other"},
		{"save nft", "iptables-nft-save"},
		{"save legacy", "iptables-legacy-save"},
		{"log", "tail -c 3000 /run/dockerd.log"},
		{"version", "docker version --format {{.Server.Version}}"},
	} {
		if err := run(s.name, "", "sh", "-c", s.command); err != nil {
			return err
		}
	}
	return nil
}

// startDocker starts the daemon and waits until it answers, or has ended. By itself, dockerd would give containerd 15 seconds to
// start, which an emulated machine does not always have.
const startDocker = `ip link set lo up
containerd >/run/containerd.log 2>&1 & daemon=$!
until [ -S /run/containerd/containerd.sock ]; do kill -0 $daemon || exit 1; sleep 1; done
dockerd --containerd=/run/containerd/containerd.sock --storage-driver=vfs >/run/dockerd.log 2>&1 & daemon=$!
until [ -S /run/docker.sock ]; do kill -0 $daemon || exit 1; sleep 1; done
docker version`
