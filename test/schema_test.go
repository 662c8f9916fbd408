// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/doctor"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The lists of words in the schemas are those of the code, and none has a space in it: who adds a word to one adds it
// to the other.
func TestWordsOfSchemas(t *testing.T) {
	answers := []string{}
	for a := detect.NotAsked; a <= detect.Yes; a++ {
		answers = append(answers, a.String())
	}
	for _, test := range []struct {
		schema string
		path   string
		want   []string
	}{
		{"detect", "properties reason", group(t, "../detect", "Override")},
		{"detect", "properties conflicts items", group(t, "../detect", "HintInBoth")},
		{"detect", "$defs backend", group(t, "../detect", "NFT")},
		{"detect", "$defs answer", answers},
		{"detect", "properties evidence items properties family", group(t, "../detect", "IPv4")},
		{"detect", "properties evidence items properties features items properties name",
			group(t, "../detect", "FeatureTable")},
		{"detect", "properties evidence items properties faults items properties kind",
			group(t, "../detect", "FaultDormant")},
		{"detect", "properties here properties how", group(t, "../internal/here", "Switch")},
		{"doctor", "properties findings items properties severity", group(t, "../internal/doctor", "Problem")},
		{"doctor", "properties findings items properties where", group(t, "../internal/doctor", "Container")},
		{"doctor", "properties names items properties name", host.Names[:]},
	} {
		got := wordsAt(t, schemaOf(t, test.schema), test.path)
		want := slices.Clone(test.want)
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s, %s: the schema has %q, and the code %q", test.schema, test.path, got, want)
		}
		if text := strings.Join(got, ""); strings.ContainsAny(text, " \t") {
			t.Errorf("%s, %s: a space in %q", test.schema, test.path, got)
		}
	}
}

// A schema's name, its address and what it says are of one version, which is the code's. It promises no number of
// elements.
func TestVersionsOfSchemas(t *testing.T) {
	for name, version := range map[string]int{"detect": detect.JSONVersion, "doctor": doctor.Version} {
		schema := schemaOf(t, name)
		file := name + ".v" + strconv.Itoa(version) + ".schema.json"
		const base = "https://raw.githubusercontent.com/iptables-wrappers/iptables-wrappers/main/docs/"
		if schema["$id"] != base+file {
			t.Errorf("%s: $id is %v, want %s", name, schema["$id"], base+file)
		}
		if got := valueAt(t, schema, "properties version const"); got != float64(version) {
			t.Errorf("%s: the version is %v, want %d", name, got, version)
		}
		if text := string(host.Read(t, "../docs/"+file)); strings.Contains(text, "Items\"") {
			t.Errorf("%s: minItems or maxItems promises what may grow", name)
		}
	}
}

// schemaOf reads the schema of a command, of which there is one.
func schemaOf(t *testing.T, command string) (schema map[string]any) {
	t.Helper()
	files, err := filepath.Glob("../docs/" + command + ".v*.schema.json")
	host.Check(t, err)
	if len(files) == 0 {
		t.Fatalf("no schema of %s", command)
	}
	host.Check(t, json.Unmarshal(host.Read(t, files[len(files)-1]), &schema))
	return schema
}

// valueAt follows a path of names in a schema.
func valueAt(t *testing.T, schema map[string]any, path string) any {
	t.Helper()
	var value any = schema
	for _, name := range strings.Fields(path) {
		object, isObject := value.(map[string]any)
		if !isObject || object[name] == nil {
			t.Fatalf("no %s in %s", name, path)
		}
		value = object[name]
	}
	return value
}

func wordsAt(t *testing.T, schema map[string]any, path string) (words []string) {
	t.Helper()
	list, isList := valueAt(t, schema, path+" enum").([]any)
	if !isList {
		t.Fatalf("no list at %s", path)
	}
	for _, word := range list {
		words = append(words, word.(string))
	}
	return words
}

// group returns the words of the group of constants of a package that has a constant of this name.
func group(t *testing.T, dir, name string) (words []string) {
	t.Helper()
	return slices.Collect(maps.Values(constants(t, dir, name)))
}

// constants returns that group by the names of its constants.
func constants(t *testing.T, dir, name string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	host.Check(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		host.Check(t, err)
		for _, declaration := range parsed.Decls {
			general, isGeneral := declaration.(*ast.GenDecl)
			if !isGeneral || general.Tok != token.CONST {
				continue
			}
			constants := map[string]string{}
			for _, spec := range general.Specs {
				value := spec.(*ast.ValueSpec)
				if len(value.Values) != 1 {
					continue
				}
				literal, isLiteral := value.Values[0].(*ast.BasicLit)
				if isLiteral && literal.Kind == token.STRING {
					constants[value.Names[0].Name], err = strconv.Unquote(literal.Value)
					host.Check(t, err)
				}
			}
			if _, is := constants[name]; is {
				return constants
			}
		}
	}
	t.Fatalf("%s has no constant %s", dir, name)
	return nil
}
