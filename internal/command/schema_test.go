// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/evidence"
)

// What is printed is what the schema says, field by field.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/detect.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	s, stdout, _ := newSession()
	if err := s.json(sample()); err != nil {
		t.Fatal(err)
	}
	_, here, _ := run(program, "detect", "-o", "json") // whatever this machine is like
	for name, printed := range map[string]string{"sample": stdout(), "here": here} {
		var value any
		if err := json.Unmarshal([]byte(printed), &value); err != nil {
			t.Fatal(name, err)
		}
		if err := check(schema, schema, value, true); err != nil {
			t.Errorf("%s: %v\n%s", name, err, printed)
		}
	}
	// The check fails where it should.
	for _, wrong := range []string{
		`{}`,
		strings.Replace(stdout(), `"version": 1`, `"version": 2`, 1),
		strings.Replace(stdout(), `"because"`, `"why"`, 1),
		strings.Replace(stdout(), `"works": "yes"`, `"works": "maybe"`, 1),
		strings.Replace(stdout(), `"count": 12`, `"count": "12"`, 1),
	} {
		var value any
		if err := json.Unmarshal([]byte(wrong), &value); err != nil {
			t.Fatal(err)
		}
		if check(schema, schema, value, true) == nil {
			t.Errorf("the schema allows %s", wrong)
		}
	}
	var words []string
	for _, reason := range evidence.Reasons() {
		words = append(words, string(reason))
	}
	host := schema["$defs"].(object)["host"].(object)
	if got := stringsOf(host["properties"].(object)["reason"].(object)["examples"]); strings.Join(got, " ") !=
		strings.Join(words, " ") {
		t.Errorf("the schema's reasons are %q, want %q", got, words)
	}
}

type object = map[string]any

// check is as much of JSON Schema as docs/detect.schema.json needs. A field that the schema does not have is an error
// here: it would not be documented.
func check(root, schema object, value any, closed bool) error {
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		return check(root, root["$defs"].(object)[name].(object), value, closed)
	}
	if want, ok := schema["const"]; ok && want != value {
		return errors.New("not the constant")
	}
	if words, ok := schema["enum"]; ok {
		word, _ := value.(string)
		if !strings.Contains(" "+strings.Join(stringsOf(words), " ")+" ", " "+word+" ") || word == "" {
			return errors.New(word + " is not in the list")
		}
	}
	switch v := value.(type) {
	case object:
		return checkObject(root, schema, v, closed)
	case []any:
		items, ok := schema["items"].(object)
		if !ok {
			return errors.New("no array")
		}
		for _, item := range v {
			if err := check(root, items, item, true); err != nil {
				return err
			}
		}
	default:
		want := map[string]bool{"string": false, "integer": false, "boolean": false}
		kind, _ := schema["type"].(string)
		_, isString := v.(string)
		_, isNumber := v.(float64)
		_, isBool := v.(bool)
		want["string"], want["integer"], want["boolean"] = isString, isNumber, isBool
		if kind != "" && !want[kind] {
			return errors.New("not of type " + kind)
		}
	}
	return nil
}

func checkObject(root, schema object, value object, closed bool) error {
	properties, _ := schema["properties"].(object)
	known := map[string]bool{}
	for name := range properties {
		known[name] = true
	}
	parts, _ := schema["allOf"].([]any)
	for _, part := range parts {
		name := strings.TrimPrefix(part.(object)["$ref"].(string), "#/$defs/")
		base := root["$defs"].(object)[name].(object)
		for name := range base["properties"].(object) {
			known[name] = true
		}
		if err := check(root, base, value, false); err != nil {
			return err
		}
	}
	for _, name := range stringsOf(schema["required"]) {
		if _, ok := value[name]; !ok {
			return errors.New(name + " is missing")
		}
	}
	for name, field := range value {
		property, ok := properties[name].(object)
		if !ok {
			if closed && !known[name] {
				return errors.New(name + " is not in the schema")
			}
			continue
		}
		if err := check(root, property, field, true); err != nil {
			return errors.New(name + ": " + err.Error())
		}
	}
	return nil
}

func stringsOf(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		word, _ := item.(string)
		all = append(all, word)
	}
	return all
}
