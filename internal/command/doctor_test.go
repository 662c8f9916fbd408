// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"runtime/debug"
	"testing"
)

func TestReference(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	built := []debug.BuildSetting{{Key: "vcs.revision", Value: commit}}
	for _, test := range []struct {
		linked, module string
		settings       []debug.BuildSetting
		want           string
	}{
		{linked: "v1.2.3", module: "(devel)", settings: built, want: "v1.2.3"},
		{linked: "v1.2.3-4-g0123456", module: "(devel)", settings: built, want: commit},
		{linked: "v1.2.3-dirty", settings: built, want: commit},
		{linked: "0123456", settings: built, want: commit},
		{module: "v1.2.3", want: "v1.2.3"},
		{module: "v1.2.4-0.20260102030405-0123456789ab", want: "0123456789ab"},
		{module: "v0.0.0-20260102030405-0123456789ab", want: "0123456789ab"},
		{module: "(devel)", settings: built, want: commit},
		{module: "(devel)", want: "main"},
		{want: "main"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: test.module}, Settings: test.settings}
		got := reference(test.linked, info)
		if got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}
