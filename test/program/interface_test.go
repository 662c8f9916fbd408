// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

var updateInterface = flag.Bool("update-interface", false, "write the public interface into testdata")

// The public interface of the library is what testdata says. A line that goes away or changes breaks somebody's
// program; a new one is a promise for years. After a change that is meant:
//
//	go test ./test/program -run TestPublicInterface -update-interface
func TestPublicInterface(t *testing.T) {
	for _, name := range []string{"detect", "exec"} {
		recorded := filepath.Join("testdata", "interface", name+".txt")
		got := publicInterface(t, filepath.Join("../..", name))
		if *updateInterface {
			host.Check(t, os.WriteFile(recorded, []byte(got), 0o644))
			continue
		}
		want := string(host.Read(t, recorded))
		for line := range strings.Lines(want) {
			if !strings.Contains(got, line) {
				t.Errorf("%s: gone or changed: %s", name, line)
			}
		}
		for line := range strings.Lines(got) {
			if !strings.Contains(want, line) {
				t.Errorf("%s: new: %s", name, line)
			}
		}
		if got != want {
			t.Errorf("%s: not what %s has. If that is meant:\n"+
				"go test ./test/program -run TestPublicInterface -update-interface", name, recorded)
		}
	}
}

// publicInterface prints the exported declarations of a package on Linux, without comments and bodies.
func publicInterface(t *testing.T, dir string) string {
	t.Helper()
	context := build.Default
	context.GOOS = "linux"
	found, err := context.ImportDir(dir, 0)
	host.Check(t, err)
	var declarations []string
	for _, name := range found.GoFiles {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		host.Check(t, err)
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			function, isFunction := declaration.(*ast.FuncDecl)
			if isFunction {
				function.Body = nil
			}
			general, isGeneral := declaration.(*ast.GenDecl)
			if isGeneral && (general.Tok == token.IMPORT || len(general.Specs) == 0) {
				continue
			}
			var text bytes.Buffer
			host.Check(t, printer.Fprint(&text, files, declaration))
			declarations = append(declarations, plain(text.String()))
		}
	}
	slices.Sort(declarations)
	return strings.Join(declarations, "\n\n") + "\n"
}

// plain has no empty line and no columns: both depend on the comments that were there.
func plain(declaration string) string {
	var lines []string
	for line := range strings.Lines(declaration) {
		words := strings.Fields(line)
		if len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "\n")
}
