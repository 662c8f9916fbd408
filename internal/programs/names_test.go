// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
				"if the wrapper stands in for it, add it to programs.Names, otherwise to others",
				entry.Name(), target, mode, got)
		}
		known[mode]++
	}
	if len(known) == 0 {
		host.Cannot(t, "look at Debian's iptables: make test installs it")
	}
	for _, mode := range Modes() {
		if known[mode] != len(Names()) {
			t.Errorf("Debian's package has %d commands for %s in /usr/sbin, and programs.Names has %d: "+
				"the wrapper can stand in only for what both backends have", known[mode], mode, len(Names()))
		}
	}
}

// Recipes of images, pages, scripts and tests list the six names, and cannot ask this package. Each list is complete,
// or lacks only iptables, to which the others are links in some layouts.
func TestListsOfNames(t *testing.T) {
	want := Names()
	if !slices.Equal(host.Names, want) {
		t.Errorf("test/host lists %q, and programs.Names %q", host.Names, want)
	}
	// In a shell, in Go, or in a table of a page, in any order.
	const name = "ip6?tables(?:-[a-z]+)?"
	const between = "[\"`]?,?\\s+[\"`]?"
	list := regexp.MustCompile(`\b` + name + "(?:" + between + name + `\b){4,}`)
	names := regexp.MustCompile(name)
	beside := []string{"iptables-current", "iptables-wrapper", "iptables-nft", "iptables-legacy"}
	found := 0
	eachFile(t, func(path, content string) {
		for _, match := range list.FindAllString(content, -1) {
			got := slices.DeleteFunc(names.FindAllString(match, -1), func(name string) bool {
				return slices.Contains(beside, name)
			})
			if len(got) < 5 {
				continue
			}
			found++
			for _, name := range want {
				if name != "iptables" && !slices.Contains(got, name) {
					t.Errorf("%s lists %q, without %q, which is in programs.Names", path, got, name)
				}
			}
			for _, name := range got {
				if !slices.Contains(want, name) {
					t.Errorf("%s lists %q, and %q is not in programs.Names", path, got, name)
				}
			}
		}
	})
	if found < 30 {
		t.Errorf("found %d lists: they are written in another way than this test looks for", found)
	}
}

// Whoever writes how many commands there are is right.
func TestNumberOfNames(t *testing.T) {
	want := []string{6: "six", "seven", "eight"}[len(Names())]
	number := regexp.MustCompile(`(?i)\b(?:the|all|its|of) (six|seven|eight) (?:iptables )?(?:commands|names)\b`)
	found := 0
	eachFile(t, func(path, content string) {
		if path == "CHANGELOG.md" { // what was right then
			return
		}
		for _, match := range number.FindAllStringSubmatch(content, -1) {
			found++
			if strings.ToLower(match[1]) != want {
				t.Errorf("%s says %q, and programs.Names has %s", path, match[0], want)
			}
		}
	})
	if found == 0 {
		t.Error("found none")
	}
}

// eachFile hands over each file of the repository, its path and what is in it.
func eachFile(t *testing.T, look func(path, content string)) {
	t.Helper()
	const top = "../.."
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
		look(strings.TrimPrefix(path, top+"/"), string(content))
		return err
	})
	host.Check(t, err)
}
