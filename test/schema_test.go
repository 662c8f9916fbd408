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
	families := group(t, "../detect", "IPv4")
	tables := []string{"filter", "mangle", "nat", "raw", "security"} // the kernel's
	evidence := "properties evidence items properties "
	for schema, words := range map[string]map[string][]string{
		"detect": {
			"properties reason":                         group(t, "../detect", "Override"),
			"properties conflicts items":                group(t, "../detect", "HintInBoth"),
			"$defs backend":                             group(t, "../detect", "NFT"),
			"$defs answer":                              answers,
			evidence + "family":                         families,
			evidence + "tables items properties name":   tables,
			evidence + "foreign items properties table": tables,
			evidence + "features items properties name": group(t, "../detect", "FeatureTable"),
			evidence + "faults items properties kind":   group(t, "../detect", "FaultDormant"),
			evidence + "faults items properties table":  tables,
			"properties here properties how":            group(t, "../internal/here", "Switch"),
		},
		"doctor": {
			"properties findings items properties severity": group(t, "../internal/doctor", "Problem"),
			"properties findings items properties where":    group(t, "../internal/doctor", "Container"),
			"properties capabilities items":                 group(t, "../internal/doctor", "netAdmin"),
			"properties names items properties name":        host.Names[:],
			"properties extensions items properties family": families,
			"properties extensions items properties has":    {"yes", "no", "unknown"}, // each is asked for
		},
	} {
		lists := map[string][]string{}
		collectLists(schemaOf(t, schema), "", lists)
		for path, want := range words {
			got := lists[path]
			delete(lists, path)
			if len(want) == 0 {
				t.Errorf("%s, %s: the code has no words", schema, path)
			}
			for _, word := range want {
				if !slices.Contains(got, word) {
					t.Errorf("%s: %q is missing in the enum of %s", schemaFile(schema), word, path)
				}
			}
			for _, word := range got {
				if !slices.Contains(want, word) {
					t.Errorf("%s: %q, in the enum of %s, is not in the code", schemaFile(schema), word, path)
				}
				if strings.ContainsAny(word, " \t") {
					t.Errorf("%s, %s: a space in %q", schema, path, word)
				}
			}
		}
		for path, got := range lists {
			t.Errorf("%s, %s: this test does not know where the code has %q", schema, path, got)
		}
	}
}

// collectLists finds the lists of words in a schema, by their paths.
func collectLists(schema any, path string, lists map[string][]string) {
	switch value := schema.(type) {
	case []any: // of anyOf
		for _, alternative := range value {
			collectLists(alternative, path, lists)
		}
	case map[string]any:
		words, _ := value["enum"].([]any)
		for _, word := range words {
			lists[path] = append(lists[path], word.(string))
		}
		for name, member := range value {
			switch name {
			case "enum", "required", "type":
			case "anyOf":
				collectLists(member, path, lists)
			default:
				collectLists(member, strings.TrimSpace(path+" "+name), lists)
			}
		}
	}
}

// A schema's name, its address and what it says are of one version, which is the code's. It promises no number of
// elements.
func TestVersionsOfSchemas(t *testing.T) {
	for name, version := range versions {
		schema := schemaOf(t, name)
		file := schemaFile(name)
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

// versions are those of the code.
var versions = map[string]int{"detect": detect.JSONVersion, "doctor": doctor.Version}

// schemaFile is the name of the schema of a command. That of an earlier version may be beside it.
func schemaFile(command string) string {
	return command + ".v" + strconv.Itoa(versions[command]) + ".schema.json"
}

func schemaOf(t *testing.T, command string) (schema map[string]any) {
	t.Helper()
	host.Check(t, json.Unmarshal(host.Read(t, "../docs/"+schemaFile(command)), &schema))
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
