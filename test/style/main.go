// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Style finds Go code that is squeezed: lines of more than 120 columns, files of more than 300 lines, and what an "if"
// does beside asking. A part of "make lint".
//
// A tab counts as four columns. A table that is easier to read in long rows is marked with the line
//
//	//style:table
//
// above it. The mark holds up to the closing bracket that is indented as it is.
//
//	go run ./test/style [DIRECTORY or FILE ...]
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns = 120
	maxLines   = 300
	tab        = "    "
	tableMark  = "//style:table"
)

func main() {
	files, err := sources(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "style:", err)
		os.Exit(1)
	}
	status := 0
	for _, path := range files {
		source, err := os.ReadFile(path)
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "style:", err)
			os.Exit(1)
		}
		for _, problem := range check(path, string(source)) {
			fmt.Fprintln(os.Stderr, problem)
			status = 1
		}
	}
	os.Exit(status)
}

// sources are the repository's Go files at or below the paths, or all of them.
func sources(paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, paths...)
	output, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Fields(string(output))
	return slices.DeleteFunc(files, func(path string) bool { return !strings.HasSuffix(path, ".go") }), nil
}

// check returns the problems of a file, each with its place.
func check(path, source string) []string {
	problems := checkLines(path, source)
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return append(problems, err.Error())
	}
	for node := range ast.Preorder(file) {
		if message := checkNode(node); message != "" {
			place := files.Position(node.Pos())
			problems = append(problems, fmt.Sprintf("%s:%d: %s", path, place.Line, message))
		}
	}
	return problems
}

func checkLines(path, source string) []string {
	var problems []string
	var table tables
	number := 0
	for line := range strings.Lines(source) {
		line = strings.TrimSuffix(line, "\n")
		number++
		inTable := table.next(line)
		columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", tab))
		if columns > maxColumns && !inTable {
			problems = append(problems, fmt.Sprintf("%s:%d: %d columns; at most %d", path, number, columns, maxColumns))
		}
	}
	if number > maxLines {
		problems = append(problems, fmt.Sprintf("%s:%d: %d lines; at most %d", path, number, number, maxLines))
	}
	return problems
}

// tables follows the marks of tables through a file, line by line.
type tables struct {
	inside bool
	indent string
}

// next reports whether the line belongs to a marked table.
func (t *tables) next(line string) bool {
	if indent, marked := strings.CutSuffix(line, tableMark); marked {
		*t = tables{inside: true, indent: indent}
		return true
	}
	if !t.inside {
		return false
	}
	rest, sameIndent := strings.CutPrefix(line, t.indent)
	if sameIndent && strings.IndexAny(rest, "})") == 0 {
		t.inside = false
	}
	return true
}

// checkNode says what a statement does before or while it asks, "" if nothing.
func checkNode(node ast.Node) string {
	var first ast.Stmt
	var condition ast.Expr
	switch node := node.(type) {
	case *ast.IfStmt:
		first, condition = node.Init, node.Cond
	case *ast.SwitchStmt:
		first, condition = node.Init, node.Tag
	case *ast.ForStmt:
		condition = node.Cond // the loop's own variables may be outer ones
	}
	if first != nil && !declares(first) {
		return "changes something that is declared outside, before it asks: make that a statement of its own"
	}
	if condition != nil && acts(condition) {
		return "changes something in its condition: make that a statement of its own"
	}
	return ""
}

// declares reports whether a statement only gives a value to new variables.
func declares(s ast.Stmt) bool {
	assignment, ok := s.(*ast.AssignStmt)
	return ok && assignment.Tok == token.DEFINE
}

// acts reports whether an expression receives from a channel. What a function that it calls changes cannot be seen
// here.
func acts(e ast.Expr) bool {
	for node := range ast.Preorder(e) {
		unary, ok := node.(*ast.UnaryExpr)
		if ok && unary.Op == token.ARROW {
			return true
		}
	}
	return false
}
