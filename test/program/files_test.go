// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// files are those of the repository, as paths from here.
func files(t *testing.T) (all []string) {
	t.Helper()
	host.Check(t, filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, entry.Name()) {
			return cmp.Or(err, filepath.SkipDir)
		}
		if !entry.IsDir() {
			all = append(all, path)
		}
		return nil
	}))
	return all
}

// Each relative link on a page leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)|(?m:^\[[^\]]+\]: (\S+))`)
	code := regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	links := 0
	for _, path := range files(t) {
		if filepath.Ext(path) != ".md" {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, path), ""), -1) {
			target, anchor, hasAnchor := strings.Cut(found[1]+found[2], "#")
			if strings.Contains(target, ":") {
				continue // elsewhere
			}
			links++
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", path, err)
			} else if hasAnchor && filepath.Ext(file) == ".md" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", path, file, anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links", links)
	}
}

// anchors are those of a page's headings, as GitHub makes them, and its own.
func anchors(text string) (all []string) {
	for _, own := range regexp.MustCompile(`<a (?:id|name)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		all = append(all, own[1])
	}
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}

// Each file that a page or a comment names is there: seen from the top, or from beside the page or the comment. The
// name of a test may do without its ending: script/select. What another repository has stands on a line with its
// commit, with "in OWNER/REPOSITORY", or on the page of sources; NAME stands for any.
func TestNamesOfFiles(t *testing.T) {
	word := regexp.MustCompile("(?:^|[\\s`(\"])([\\w.-]+/[\\w./*-]*\\w)|`(\\w+(?:_test\\.go|\\.txtar))`")
	elsewhere := regexp.MustCompile(`[0-9a-f]{40}|://| in ([\w-]+)/[\w-]+`)
	all := files(t)
	named := 0
	for _, path := range all {
		if strings.Contains(path, "/testdata/") || strings.HasSuffix(path, "docs/evidence/sources.md") {
			continue
		}
		for line := range strings.Lines(prose(path, read(t, path))) {
			other := elsewhere.FindStringSubmatch(line)
			if other != nil && !isDir(other[1], path) {
				continue
			}
			for _, found := range word.FindAllStringSubmatch(line, -1) {
				beside := found[2] != "" && slices.ContainsFunc(all, func(file string) bool {
					return filepath.Base(file) == found[2]
				})
				first, _, _ := strings.Cut(found[1], "/")
				if found[2] == "" && (!isDir(first, path) || slices.Contains([]string{"bin", "dist"}, first)) {
					continue
				}
				named++
				if !beside && !exists(strings.ReplaceAll(found[1], "NAME", "*"), path) {
					t.Errorf("%s: there is no %s: %s", path, found[1]+found[2], strings.TrimSpace(line))
				}
			}
		}
	}
	if named < 150 {
		t.Errorf("only %d names of files", named)
	}
}

// prose is what people read in a file: a page, or comments.
func prose(path, text string) string {
	comment := `(?m)(?:^|\s)#.*`
	switch filepath.Ext(path) {
	case ".md":
		return regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(text, "]") // TestLinks looks at these
	case ".go":
		comment = `//.*`
	}
	return strings.Join(regexp.MustCompile(comment).FindAllString(text, -1), "\n")
}

// places are where a name in a file may be: at the top, and beside the file.
func places(name, file string) []string {
	return []string{filepath.Join("../..", name), filepath.Join(filepath.Dir(file), name)}
}

func isDir(name, file string) bool {
	return name != "" && slices.ContainsFunc(places(name, file), func(place string) bool {
		info, err := os.Stat(place)
		return err == nil && info.IsDir()
	})
}

func exists(name, file string) bool {
	return slices.ContainsFunc(places(name, file), func(place string) bool {
		found, _ := filepath.Glob(place)
		withEnding, _ := filepath.Glob(place + ".*")
		return name != "" && len(found)+len(withEnding) > 0
	})
}
