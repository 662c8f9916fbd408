// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

const adopt = top + "/images/adopt/"

type adoption struct {
	stage, entry, variable, backend string
	inTest                          bool // in "make test"
}

// adopted are the images of other projects on docs/adopting.md. One that has an entry point is started through it; with
// a variable it runs the backend that this asks for, and without one the host's.
var adopted = []adoption{
	{stage: "aws-vpc-cni", inTest: true},
	{stage: "distroless-iptables"},
	{stage: "flannel"},
	{stage: "kube-router"},
	{stage: "linuxserver-wireguard"},
	{stage: "tailscale"},
	{stage: "klipper-lb"},
	{stage: "wg-easy"},
	{stage: "chaos-mesh"},
	{stage: "devcontainers"},
	{stage: "dind", entry: "entry"},
	{stage: "dind", entry: "entry", variable: "DOCKER_IPTABLES_LEGACY=1", backend: "legacy"},
	{stage: "dind", entry: "entry", variable: "DOCKER_IPTABLES_LEGACY=", backend: "nft"},
	{stage: "fail2ban", entry: "entry"},
	{stage: "fail2ban", entry: "entry", variable: "IPTABLES_MODE=legacy", backend: "legacy"},
	{stage: "fail2ban", entry: "entry", variable: "IPTABLES_MODE=nft", backend: "nft"},
	{stage: "kind", entry: "entry"},
}

// Each image loads a client's rules into the right backend, beginning with its first call, which is a restore.
func TestAdopted(t *testing.T) {
	t.Parallel()
	for _, a := range adopted {
		t.Run(strings.TrimSpace(a.stage+" "+a.variable), func(t *testing.T) {
			if !a.inTest && !host.All() {
				t.Skip("one image stands for the others; make test-all runs this")
			}
			args := []string{"--file", adopt + "Dockerfile", "--target", a.stage,
				"--build-arg", "DEBIAN=" + base(t, "debian:trixie"),
				"--build-arg", "WRAPPER=" + base(t, "iptables-wrapper")}
			if host.All() {
				args = append(args, "--build-arg", "ALPINE="+base(t, "busybox:alpine"))
			}
			i := built{image{dir: "/usr/sbin"}, build(t, "adopted-"+a.stage, top+"/images", args...)}
			for _, mode := range bothModes {
				want := mode
				if a.backend != "" {
					want = a.backend
				}
				n := newNode(t, mode)
				options := append(rights(n), "--env", a.variable)
				if a.variable == "" {
					options = options[:len(options)-2]
				}
				script := "iptables-restore --noflush; iptables -S INPUT | /busybox grep -c 192.0.2.1; leads; version"
				run := runArgs(t, i, script, options...)
				if a.entry != "" {
					run[slices.Index(run, "--entrypoint")+1] = a.entry
					run = slices.Insert(run, slices.Index(run, i.ref)+1, "/busybox")
				}
				i.right(t, start(t, rule1, command(t, run...)), want, "1")
				n.feed(t, "", "iptables-"+want, "-C", "INPUT", "-s", "192.0.2.1", "-j", "DROP")
			}
		})
	}
}

// Docker's rules for its DNS server are all that a node of kind shows.
func TestAdoptedKind(t *testing.T) {
	wantAll(t)
	ref := build(t, "adopted-kind", top+"/images", "--file", adopt+"Dockerfile", "--target", "kind",
		"--build-arg", "DEBIAN="+base(t, "debian:trixie"), "--build-arg", "WRAPPER="+base(t, "iptables-wrapper"))
	for _, mode := range bothModes {
		n := bareNode(t)
		n.feed(t, "*nat\n:DOCKER_OUTPUT - [0:0]\n-A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT\nCOMMIT\n",
			"iptables-"+mode+"-restore")
		args := append(append([]string{"run", "--rm"}, rights(n)...), host.Ulimits...)
		got := podman(t, append(args, ref, "readlink", "-f", "/usr/sbin/iptables")...)
		if got != "/usr/sbin/xtables-"+mode+"-multi" {
			t.Errorf("%s: got %s", mode, got)
		}
	}
}

// What docs/adopting.md shows is what these tests build, and no stage is without a test.
func TestAdoptingPage(t *testing.T) {
	page := host.Read(t, top+"/docs/adopting.md")
	files, err := filepath.Glob(adopt + "*")
	host.Check(t, err)
	var lines []string
	for _, file := range files {
		text := host.Read(t, file)
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	shown := 0
	for n, block := range strings.Split(string(page), "```") {
		if n%2 == 0 {
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(block), "\n")[1:] {
			shown++
			if !slices.Contains(lines, line) {
				t.Errorf("images/adopt has no line %q", line)
			}
		}
	}
	if shown < 10 {
		t.Errorf("the page shows %d lines", shown)
	}
	parts := []string{"alpine-base", "debian-base", "wrapper", "staged", "debian"} // of other stages
	for _, line := range lines {
		_, stage, found := strings.Cut(line, " AS ")
		tested := slices.ContainsFunc(adopted, func(a adoption) bool { return a.stage == stage })
		if found && !tested && !slices.Contains(parts, stage) {
			t.Errorf("no test builds %s", stage)
		}
	}
}

// The Dockerfile in the README, and the call below it, work on hosts of both backends. Only what comes from a registry
// is replaced, and the host's network.
func TestReadme(t *testing.T) {
	wantAll(t)
	readme := host.Read(t, top+"/README.md")
	example := regexp.MustCompile("(?s)```dockerfile\n(.*?)```.*?\n" +
		"    docker run --rm --network host (.*?) my-image (.*?)\n")
	found := example.FindStringSubmatch(string(readme))
	if found == nil {
		t.Fatal("the README has no Dockerfile with a call below it")
	}
	text := strings.NewReplacer("debian:trixie-slim", base(t, "debian:trixie")).Replace(found[1])
	text = strings.ReplaceAll(text, "--from=iptables-wrapper ", "--from="+base(t, "iptables-wrapper")+" ")
	ref := build(t, "readme", dockerfile(t, strings.Split(strings.TrimSpace(text), "\n")...))
	for _, mode := range bothModes {
		options := append(slices.Clone(host.Ulimits), strings.Fields(found[2])...)
		arguments := strings.Fields(found[3])
		args := slices.Concat([]string{"run", "--rm", newNode(t, mode).network()}, options, []string{ref}, arguments)
		if got := podman(t, args...); !strings.HasSuffix(got, version(mode)) {
			t.Errorf("%s: got %s", mode, got)
		}
	}
}
