// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"testing"
)

func TestList(t *testing.T) {
	names := slices.Repeat([]string{"x"}, 3001)
	for n, want := range map[int]string{
		0:    "",
		2:    "x, x",
		8:    "x, x, x, x, x, x, x, x",
		9:    "x, x, x, x, x, x, x, x and 1 more",
		3001: "x, x, x, x, x, x, x, x and 2993 more",
	} {
		got := list(names[:n])
		if got != want {
			t.Errorf("%d: got %q", n, got)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	for chain, want := range map[string]string{
		"KUBE-SVC-ABC": kubeProxy, "KUBE-FIREWALL": kubelet, "KUBE-ROUTER-INPUT": "kube-router",
		"cali-INPUT": "Calico", "f2b-sshd": "fail2ban", "DOCKER-USER": "Docker", "ts-input": "Tailscale",
		"netbird-acl-input-rules": "NetBird", "MAILCOW": "mailcow",
		"ufw6-user-input": "ufw", "ACCEPT": "", "INPUT": "", "INPUT_ZONES": "firewalld",
		"IN_WAN": "", "PRE_X": "", "POST_X": "",
		"DOCKER_OUTPUT": dockerDNS, "POSTROUTING": "", "PREROUTING": "",
	} {
		got := ownerOf(chain)
		if got != want {
			t.Errorf("%s: got %q", chain, got)
		}
	}
}

// A path is one word for a shell, whatever is in it.
func TestQuoted(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/sbin/iptables": "/usr/sbin/iptables", "/a b": "'/a b'", "/a'b": `'/a'\''b'`, "/$(x)": "'/$(x)'",
	} {
		if got := quoted(path); got != want {
			t.Errorf("%s: got %s", path, got)
		}
	}
}
