// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The first question that failed is described, in each backend.
func TestFirstError(t *testing.T) {
	first, second := fmt.Errorf("a: %w", unix.EPERM), fmt.Errorf("b: %w", unix.ENOMEM)
	f := Findings{}.add(Marker{}, No, nil).add(Marker{}, Unknown, first).add(Marker{}, Unknown, second)
	if f.Err != first {
		t.Errorf("got %v", f.Err)
	}
}

// A marker that could not be asked for is unknown.
func TestMarkerRefused(t *testing.T) {
	host.Netns(t)
	a := &asker{}
	defer a.nft.Close()
	host.RefuseCall(t, unix.SYS_SENDTO, unix.ENOMEM)
	f := a.askMarkers(Evidence{NFT: Findings{Kernel: Yes}}, HostProgram).NFT
	if f.Program != [2]Answer{Unknown, Unknown} || !errors.Is(f.Err, unix.ENOMEM) {
		t.Errorf("got %+v", f)
	}
}

// Of several markers of a kind, one is a yes. One that is unknown makes the rest no more than unknown.
func TestAdd(t *testing.T) {
	for _, test := range []struct {
		answers []Answer
		want    Answer
		found   int
	}{
		{[]Answer{No, No}, No, 0},
		{[]Answer{No, Unknown, No}, Unknown, 0},
		{[]Answer{Unknown, Yes}, Yes, 1},
		{[]Answer{Yes, Unknown, Yes, No}, Yes, 2},
	} {
		var f Findings
		for _, a := range test.answers {
			f = f.add(Marker{Family: IPv6, Chain: "DOCKER-USER"}, a, nil)
		}
		if f.Program != [2]Answer{NotAsked, test.want} || len(f.Markers) != test.found {
			t.Errorf("%v: got %+v", test.answers, f)
		}
	}
}
