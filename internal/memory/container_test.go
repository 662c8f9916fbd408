// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What is stored is about the container as a whole, so everything must be known. Away is who has left its network
// namespace alone.
func TestOwn(t *testing.T) {
	answers := []detect.Answer{detect.NotAsked, detect.Unknown, detect.No, detect.Yes}
	for _, netns := range answers {
		for _, root := range answers {
			for _, life := range []Life{{}, thisLife} {
				c := Container{OwnNetns: netns, OwnRoot: root, Life: life}
				own := netns == detect.Yes && root == detect.Yes && life == thisLife
				if c.Own() != own {
					t.Errorf("%+v: own: %v", c, c.Own())
				}
				if away := netns == detect.No && root == detect.Yes; c.away() != away {
					t.Errorf("%+v: away: %v", c, c.away())
				}
			}
		}
	}
}

// A thread that enters another network namespace is in another life there, and the container's own stays known.
func TestThisContainer(t *testing.T) {
	needRoot(t)
	const inside = "TEST_PROCESS_1"
	if os.Getenv(inside) == "" { // the machine's process 1 may be nobody's to look at
		test := []string{os.Args[0], "-test.v", "-test.run", "^TestThisContainer$"}
		process1 := []string{"--pid", "--fork", "--mount-proc", "sh", "-c", `"$0" "$@"; exit $?`}
		cmd := exec.Command("unshare", append(process1, test...)...)
		cmd.Env = append(os.Environ(), inside+"=yes")
		output, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(output), "--- PASS") {
			t.Fatalf("%v: %s", err, output)
		}
		return
	}
	before := ThisContainer()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	_, start := stateAndStart("1")
	if before.OwnRoot != detect.Yes || before.Life.Start != start ||
		!strings.HasPrefix(string(boot), before.Life.Boot) {
		t.Fatalf("got %+v", before)
	}
	if before.OwnNetns != detect.Yes || before.Home != before.Life || len(before.Life.Boot) != bootLength {
		t.Fatalf("got %+v", before)
	}
	host.Netns(t)
	after := ThisContainer()
	if after.OwnRoot != detect.Yes || after.OwnNetns != detect.No || after.Home != before.Life {
		t.Errorf("got %+v, before: %+v", after, before)
	}
	if after.Life.Netns == before.Life.Netns || after.Life.Start != start || after.Life.Boot != before.Life.Boot {
		t.Errorf("got %+v, before: %+v", after, before)
	}
}

// Two files are one if they are the same file of the same file system, and if both can be looked at.
func TestSame(t *testing.T) {
	one, err := tree.Tree{}.Stat(t.TempDir())
	other, otherErr := tree.Tree{}.Stat("/proc")
	if err != nil || otherErr != nil {
		t.Fatal(err, otherErr)
	}
	if got := same(one, one, nil); got != detect.Yes {
		t.Errorf("the same: got %v", got)
	}
	if got := same(one, other, nil); got != detect.No {
		t.Errorf("another: got %v", got)
	}
	if got := same(one, one, os.ErrNotExist); got != detect.Unknown {
		t.Errorf("none: got %v", got)
	}
}

// What is remembered of process 1's namespace is read in another one, from there alone, and nothing is made for it.
func TestHome(t *testing.T) {
	pod := Life{Netns: "8", Start: thisLife.Start, Boot: thisLife.Boot}
	for doc, test := range map[string]struct {
		netns, root detect.Answer
		want        detect.Mode
	}{
		"away":            {detect.No, detect.Yes, detect.Legacy},
		"at home":         {detect.Yes, detect.Yes, ""},
		"another root":    {detect.No, detect.No, ""},
		"an unknown root": {detect.No, detect.Unknown, ""},
		"unknown":         {detect.Unknown, detect.Yes, ""},
	} {
		f := newFake(t)
		f.put("/dev/shm", f.p.UID, "legacy rule-count certain "+life)
		m := Read(f.t, f.p, Container{OwnNetns: test.netns, OwnRoot: test.root, Life: pod, Home: thisLife})
		if m.Home().Mode != test.want || m.Mode() != "" || m.Path() != "" {
			t.Errorf("%s: got %+v, and here %q", doc, m.Home(), m.Mode())
		}
		f.p.SetID = true
		m = Read(f.t, f.p, Container{OwnNetns: detect.No, OwnRoot: detect.Yes, Life: pod, Home: thisLife})
		if m.Home().Mode != "" {
			t.Errorf("%s, set-user-ID: got %+v", doc, m.Home())
		}
	}
}

// A user other than root believes root's memory of process 1's namespace, too.
func TestHomeOfAnotherUser(t *testing.T) {
	needRoot(t)
	f := newFake(t)
	f.p.UID = 1000
	f.put("/dev/shm", 0, "legacy rule-count certain "+life)
	f.put("/dev/shm", 1000, "nft default guess "+life)
	pod := Life{Netns: "8", Start: thisLife.Start, Boot: thisLife.Boot}
	m := Read(f.t, f.p, Container{OwnNetns: detect.No, OwnRoot: detect.Yes, Life: pod, Home: thisLife})
	if m.Home().Mode != detect.Legacy {
		t.Errorf("got %+v", m.Home())
	}
}
