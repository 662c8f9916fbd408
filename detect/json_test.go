// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// An error is its text in JSON, and a number of rules says what is known of it.
func TestJSON(t *testing.T) {
	e := detect.Evidence{Rules: detect.Count{Min: 2, Max: detect.Unbounded}}
	text, err := json.Marshal(e)
	if want := `"rules":{"min":2}`; err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "error") {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	host.Netns(t)
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capset(&header, &data[0]); err != nil { // of this thread, which is not used again
		t.Fatal(err)
	}
	text, err = json.Marshal(detect.Host())
	if want := `"error":"ask nf_tables for chain \"KUBE-IPTABLES-HINT\": operation not permitted"`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}
