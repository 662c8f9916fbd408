// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestMain(m *testing.M) {
	err := host.Enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Only for a guess that nothing else speaks for is the other backend's program a substitute.
func TestFind(t *testing.T) {
	if !host.Contain(t) {
		return
	}
	host.Run(t, "sh", "-c", "rm /usr/sbin/*-nft*")
	for _, test := range []struct {
		reason  detect.Reason
		certain bool
		want    detect.Backend // whose program is found; "" if none
	}{
		{reason: detect.Default, want: detect.Legacy},
		{reason: detect.RuleCount, want: detect.Legacy},
		{reason: detect.HostProgram, want: detect.Legacy},
		{reason: detect.KubeletHint, want: detect.Legacy},
		{reason: detect.HostProgram, certain: true},
		{reason: detect.KubeletHint, certain: true},
		{reason: detect.Held},
		{reason: detect.OnlySupported},
	} {
		r := detect.Result{Backend: detect.NFT, Reason: test.reason, Certain: test.certain}
		backend, program, err := Find(r, "ip6tables-save")
		switch {
		case test.want == "" && backend == detect.NFT && strings.HasPrefix(fmt.Sprint(err), exec.ErrMissing.Error()):
		case test.want != "" && backend == test.want && err == nil && strings.Contains(program.Path, string(test.want)):
		default:
			t.Errorf("%s, certain: %v: got %s, %+v, %v", test.reason, test.certain, backend, program, err)
		}
	}
	host.Run(t, "sh", "-c", "rm /usr/sbin/*-legacy*")
	backend, _, err := Find(detect.Result{Backend: detect.NFT, Reason: detect.Default}, "iptables")
	if backend != detect.NFT || err == nil || !strings.Contains(err.Error(), "xtables-nft-multi") {
		t.Errorf("neither is installed: got %s, %v", backend, err)
	}
}
