// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The files of iptables, by their names: those of each backend, and those of neither.
func TestModeOf(t *testing.T) {
	for _, test := range []struct {
		file      string
		mode      detect.Mode
		isProgram bool
	}{
		{file: "xtables-nft-multi", mode: detect.NFT, isProgram: true},
		{file: "iptables-nft", mode: detect.NFT, isProgram: true},
		{file: "iptables-nft-save", mode: detect.NFT, isProgram: true},
		{file: "iptables-nft-restore", mode: detect.NFT, isProgram: true},
		{file: "ip6tables-nft", mode: detect.NFT, isProgram: true},
		{file: "ip6tables-nft-save", mode: detect.NFT, isProgram: true},
		{file: "ip6tables-nft-restore", mode: detect.NFT, isProgram: true},
		{file: "xtables-legacy-multi", mode: detect.Legacy, isProgram: true},
		{file: "iptables-legacy", mode: detect.Legacy, isProgram: true},
		{file: "iptables-legacy-save", mode: detect.Legacy, isProgram: true},
		{file: "iptables-legacy-restore", mode: detect.Legacy, isProgram: true},
		{file: "ip6tables-legacy", mode: detect.Legacy, isProgram: true},
		{file: "ip6tables-legacy-save", mode: detect.Legacy, isProgram: true},
		{file: "ip6tables-legacy-restore", mode: detect.Legacy, isProgram: true},
		{file: "xtables-multi", isProgram: true}, // before 1.8
		{file: "iptables"},
		{file: "ip6tables-save"},
		{file: "iptables-wrapper"},
		{file: "iptables-nft-apply"},
		{file: "xtables-both-multi"},
		{file: ""},
	} {
		if mode := ModeOf(test.file); mode != test.mode {
			t.Errorf("ModeOf(%q) is %q, want %q", test.file, mode, test.mode)
		}
		if got := IsProgram(test.file); got != test.isProgram {
			t.Errorf("IsProgram(%q) is %v", test.file, got)
		}
	}
}

// others are the commands that a multi-call program of iptables serves besides the six. The wrapper does not stand in
// for them: they exist in one backend alone, or for other protocols.
var others = regexp.MustCompile(`^(arptables|ebtables)-|-translate$|^xtables-monitor$`)

// Each command that Debian's package has for a backend is known. A new one is added to Names, or to others above.
func TestKnowsEachCommand(t *testing.T) {
	entries, err := os.ReadDir("/usr/sbin")
	if err != nil {
		t.Fatal(err)
	}
	known := map[detect.Mode]int{}
	for _, entry := range entries {
		target, _ := os.Readlink("/usr/sbin/" + entry.Name())
		mode := ModeOf(target)
		if mode == "" || target != MultiCall(mode) || others.MatchString(entry.Name()) {
			continue
		}
		if got := ModeOf(entry.Name()); got != mode {
			t.Errorf("/usr/sbin/%s -> %s: its backend is %q, and the wrapper takes it for %q; "+
				"if the wrapper stands in for it, add it to programs.Names",
				entry.Name(), target, mode, got)
		}
		known[mode]++
	}
	if len(known) == 0 {
		host.Cannot(t, "look at Debian's iptables: make test installs it")
	}
	for _, mode := range Modes() {
		if known[mode] != len(Names()) {
			t.Errorf("%s has %d commands in /usr/sbin, and programs.Names has %d", mode, known[mode], len(Names()))
		}
	}
}

// Recipes of images, pages, scripts and tests list the six names, and cannot ask this package. Each list is complete.
func TestListsOfNames(t *testing.T) {
	const top = "../.."
	want := Names()
	if !slices.Equal(host.Names, want) {
		t.Errorf("test/host lists %q, and programs.Names %q", host.Names, want)
	}
	// In a shell, in Go, or in a table of a page.
	const between = "[\"`]?,?\\s+[\"`]?"
	list := regexp.MustCompile("iptables" + between + "iptables-save" + between + "iptables-restore" + between +
		"ip6tables\\b(?:" + between + "ip6?tables[a-z-]*)+")
	name := regexp.MustCompile(`ip6?tables[a-z-]*`)
	found := 0
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		made := path == top+"/.git" || path == top+"/bin" || path == top+"/dist"
		if entry.IsDir() && made {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		for _, match := range list.FindAll(content, -1) {
			found++
			if got := name.FindAllString(string(match), -1); !slices.Equal(got, want) {
				t.Errorf("%s lists %q, and programs.Names %q", path, got, want)
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("found %d lists: %v", found, err)
	}
}
