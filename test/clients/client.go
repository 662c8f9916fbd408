// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// client is a program that calls iptables.
type client struct {
	name   string
	script string
	pkg    string   // the package of Debian that it comes from, "" if it is built from Go modules
	module string   // or the Go module
	env    []string // for the script

	unordered bool // it adds rules in random order
}

// volatile matches what differs between any two runs: link-local addresses, times, and chain names in go-iptables'
// tests.
var volatile = regexp.MustCompile(`fe80::[0-9a-f:]+|\b1[789]\d{8}\b|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d|` +
	`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[.\d]*|TEST-\d+`)

var all = []client{
	{name: "fail2ban", pkg: "fail2ban"},
	{name: "dockerd", pkg: "docker.io"},
	{name: "firewalld", pkg: "firewalld"},
	{name: "netfilter-persistent", pkg: "netfilter-persistent"},
	{name: "arno-iptables-firewall", pkg: "arno-iptables-firewall"},
	{name: "ufw", pkg: "ufw"},
	{name: "wg-quick", pkg: "wireguard-tools"},
	{name: "openvpn", pkg: "openvpn"},
	{name: "cni", pkg: "containernetworking-plugins"},
	{name: "kubelet", script: "kubernetes/kubelet.sh", module: "k8s.io/kubernetes", unordered: true},
	{
		name:      "kube-proxy (iptables)",
		script:    "kubernetes/kube-proxy.sh",
		module:    "k8s.io/kubernetes",
		env:       []string{"KUBE_PROXY_MODE=iptables"},
		unordered: true,
	},
	{
		name:      "kube-proxy (nftables)",
		script:    "kubernetes/kube-proxy.sh",
		module:    "k8s.io/kubernetes",
		env:       []string{"KUBE_PROXY_MODE=nftables"},
		unordered: true,
	},
	{name: "linkerd2-proxy-init", script: "agents/linkerd.sh", module: "github.com/linkerd/linkerd2-proxy-init"},
	{
		name:   "linkerd2-proxy-init (not root)",
		script: "agents/linkerd-image.sh",
		module: "github.com/linkerd/linkerd2-proxy-init",
	},
	{name: "istio-iptables", script: "agents/istio-iptables.sh", module: "istio.io/istio"},
	{name: "flannel", script: "agents/flannel.sh", module: "github.com/flannel-io/flannel"},
	{name: "tailscale's linuxfw", script: "agents/tailscale.sh", module: "tailscale.com"},
	{name: "go-iptables' tests", script: "agents/go-iptables.sh", module: "github.com/coreos/go-iptables"},
	{name: "moby's tests", script: "agents/moby.sh", module: "github.com/moby/moby/v2"},
}

// suites are the tests of others that the module agents builds, by the names of their programs.
var suites = map[string]string{
	"go-iptables.test":   "github.com/coreos/go-iptables/iptables",
	"moby-iptables.test": "github.com/moby/moby/v2/daemon/libnetwork/iptables",
	"moby-iptabler.test": "github.com/moby/moby/v2/daemon/libnetwork/drivers/bridge/internal/iptabler",
}

// shared is used by all boxes, and made for the first one: of a cold cache, Kubernetes takes ten minutes to compile.
type shared struct {
	rootfs string
	bin    string // the programs for all containers: the wrapper, and clients built from Go modules
}

var prepared = sync.OnceValues(prepare)

var bin = filepath.Join(os.TempDir(), "clients-"+strconv.Itoa(os.Getpid()))

// prepare builds what all boxes share. If something cannot be built, that is a failure, not a skip.
func prepare() (shared, error) {
	if os.Geteuid() != 0 {
		return shared{}, errors.New("network namespaces are made by root: run these tests as root")
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		return shared{}, err
	}
	rootfs, err := rootfs()
	if err != nil {
		return shared{}, err
	}
	program, err := host.Wrapper()
	if err != nil {
		return shared{}, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return shared{}, err
	}
	if err := os.WriteFile(filepath.Join(bin, "iptables-wrapper"), content, 0o755); err != nil {
		return shared{}, err
	}
	return shared{rootfs: rootfs, bin: bin}, modules(bin)
}

// modules builds the clients that are Go programs: the packages and tools of each directory with a go.mod.
func modules(bin string) error {
	files, err := filepath.Glob("*/go.mod")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := build(filepath.Dir(file), "build", "-o", bin, "-ldflags", "-s -w", "tool", "./..."); err != nil {
			return err
		}
	}
	for name, pkg := range suites {
		if err := build("agents", "test", "-c", "-o", filepath.Join(bin, name), pkg); err != nil {
			return err
		}
	}
	return nil
}

func build(module string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w\n%s", cmd, module, err, output)
	}
	return nil
}
