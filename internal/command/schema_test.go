// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

type object = map[string]any

// The schema has the fields that are printed, and no others. That types and words fit, test/script checks.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/detect.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if err := printJSON(&stdout, sample()); err != nil {
		t.Fatal(err)
	}
	var printed any
	if err := json.Unmarshal(stdout.Bytes(), &printed); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]bool{}, map[string]bool{}
	valueFields(got, "", printed)
	schemaFields(want, "", schema, schema)
	for _, field := range slices.Sorted(maps.Keys(want)) {
		if !got[field] {
			t.Errorf("%s is in the schema, and is not printed", field)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(got)) {
		if !want[field] {
			t.Errorf("%s is printed, and is not in the schema", field)
		}
	}
	reasons := schema["properties"].(object)["reason"].(object)["examples"].([]any)
	var words []any
	for _, reason := range [...]detect.Reason{
		detect.KubeletHint, detect.KubeletCanary, detect.HostProgram, detect.Held, detect.OnlySupported,
		detect.RuleCount, detect.Default,
	} {
		words = append(words, string(reason))
	}
	if !slices.Equal(reasons, words) {
		t.Errorf("the schema's reasons are %q, want %q", reasons, words)
	}
}

// valueFields adds the paths of a value's fields.
func valueFields(all map[string]bool, path string, value any) {
	switch value := value.(type) {
	case object:
		for name, field := range value {
			all[path+"/"+name] = true
			valueFields(all, path+"/"+name, field)
		}
	case []any:
		for _, item := range value {
			valueFields(all, path, item)
		}
	}
}

// schemaFields adds the paths of the fields that a schema describes.
func schemaFields(all map[string]bool, path string, root, schema object) {
	if reference, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(reference, "#/$defs/")
		schemaFields(all, path, root, root["$defs"].(object)[name].(object))
	}
	if items, ok := schema["items"].(object); ok {
		schemaFields(all, path, root, items)
	}
	if parts, ok := schema["allOf"].([]any); ok {
		for _, part := range parts {
			schemaFields(all, path, root, part.(object))
		}
	}
	if properties, ok := schema["properties"].(object); ok {
		for name, property := range properties {
			all[path+"/"+name] = true
			schemaFields(all, path+"/"+name, root, property.(object))
		}
	}
}
