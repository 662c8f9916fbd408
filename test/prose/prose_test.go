// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Package prose keeps phrases out of pages, comments and messages that a native technical writer would not use. It is a
// part of "make lint".
package prose

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// line is a line of prose and where it stands.
type line struct {
	file   string
	number int
	text   string
}

// extract returns the prose of a file: all text of a page except code, the comments and strings of a Go file, the comments
// of anything else.
func extract(name, content string) ([]line, error) {
	switch ext := filepath.Ext(name); {
	case ext == ".go":
		return fromGo(name, content)
	case ext == ".md":
		return fromPage(name, content), nil
	case ext == ".sh", ext == ".yml", ext == ".yaml", ext == ".txtar", ext == "" && strings.HasPrefix(content, "#"):
		return fromScript(name, content), nil
	}
	return nil, nil
}

func fromGo(name, content string) ([]line, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, content, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var found []line
	add := func(at token.Pos, text string) {
		first := files.Position(at).Line
		for i, l := range strings.Split(text, "\n") {
			found = append(found, line{name, first + i, l})
		}
	}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			add(c.Pos(), c.Text)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				add(literal.Pos(), text)
			}
		}
		return true
	})
	return found, nil
}

var code = regexp.MustCompile("`[^`]*`")

func fromPage(name, content string) []line {
	var found []line
	fenced := false
	for i, text := range strings.Split(content, "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			fenced = !fenced
			continue
		}
		if !fenced && !strings.HasPrefix(text, "    ") {
			found = append(found, line{name, i + 1, code.ReplaceAllString(text, "CODE")})
		}
	}
	return found
}

func fromScript(name, content string) []line {
	var found []line
	for i, text := range strings.Split(content, "\n") {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(text), "#"); ok {
			found = append(found, line{name, i + 1, comment})
		}
	}
	return found
}

// check returns what is wrong with each line. A phrase may run over the end of a line.
func check(lines []line) []string {
	var wrong []string
	for i, l := range lines {
		text := l.text
		if i+1 < len(lines) && lines[i+1].number == l.number+1 {
			text += " " + strings.TrimLeft(lines[i+1].text, "/#* \t")
		}
		for _, p := range phrases {
			if at := p.pattern.FindStringIndex(text); at != nil && at[0] < len(l.text) {
				wrong = append(wrong, fmt.Sprintf("%s:%d: %q: write %s", l.file, l.number, text[at[0]:at[1]], p.instead))
			}
		}
	}
	return wrong
}

func TestProse(t *testing.T) {
	const top = "../.."
	files := 0
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, path)
		switch {
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "dist" || entry.Name() == "testdata"),
			entry.IsDir() && (name == "test/prose" || name == "test/nodes"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || entry.Name() == "LICENSE":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines, err := extract(name, string(content))
		if err != nil {
			return err
		}
		if lines != nil {
			files++
		}
		for _, complaint := range check(lines) {
			t.Error(complaint)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}

// Every phrase is found in its example, wherever prose can stand, and not in what to write instead.
func TestPhrases(t *testing.T) {
	for _, p := range phrases {
		for name, content := range map[string]string{
			"a.md": p.example, "b.go": "package b // " + p.example, "c.go": "package c\nvar s = " + strconv.Quote(p.example),
			"d.sh": "# " + p.example, "e.txtar": "  # " + p.example,
			"f.md": strings.Replace(p.example, " ", "\n", 1), "g.sh": "# " + strings.ReplaceAll(p.example, " ", "\n# "),
		} {
			lines, err := extract(name, content)
			if err != nil {
				t.Fatal(err)
			}
			if name == "g.sh" && strings.Count(p.example, " ") > 1 {
				continue // runs over more than two lines
			}
			if len(check(lines)) == 0 {
				t.Errorf("%v is not found in %q as %s", p.pattern, content, name)
			}
		}
		if p.pattern.MatchString(p.instead) {
			t.Errorf("%v is found in what to write instead: %s", p.pattern, p.instead)
		}
	}
	for name, content := range map[string]string{
		"code.md":   "Run `twins`.\n\n    twins\n\n```\ntwins\n```\n",
		"script.sh": "twins",
		"code.go":   "package c; var twins = 1",
		"other.svg": "twins",
	} {
		lines, err := extract(name, content)
		if wrong := check(lines); err != nil || len(wrong) > 0 {
			t.Errorf("%s: %v, %v", name, wrong, err)
		}
	}
}
