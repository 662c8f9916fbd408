// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/rules"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// The schema has the fields of the report, and requires those that are never left out. What doctor shares with detect
// is in the schema of detect.
func TestSchema(t *testing.T) {
	type object struct {
		Properties map[string]any
		Required   []string
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	host.Check(t, json.Unmarshal(host.Read(t, "../../docs/doctor.schema.json"), &schema))
	for _, test := range []struct {
		value any
		def   object
	}{
		{Report{}, schema.object},
		{Finding{}, schema.Defs["finding"]},
		{Program{}, schema.Defs["program"]},
		{rules.Table{}, schema.Defs["table"]},
		{rules.Hook{}, schema.Defs["hook"]},
		{Network{}, schema.Defs["network"]},
		{Process{}, schema.Defs["process"]},
	} {
		var all, required []string
		kind := reflect.TypeOf(test.value)
		for i := range kind.NumField() {
			name, options, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" {
				all = append(all, name)
			}
			if name != "" && name != "-" && options != "omitempty" {
				required = append(required, name)
			}
		}
		slices.Sort(all)
		got := slices.Sorted(maps.Keys(test.def.Properties))
		if !slices.Equal(got, all) {
			t.Errorf("%v: the schema has %q, and JSON %q", kind, got, all)
		}
		if !slices.Equal(test.def.Required, required) {
			t.Errorf("%v: the schema requires %q, and JSON always has %q", kind, test.def.Required, required)
		}
	}
	examples := schema.Defs["finding"].Properties["code"].(map[string]any)["examples"].([]any)
	for i, code := range codes() {
		if len(examples) != len(codes()) || examples[i] != code {
			t.Errorf("the codes of the schema are %q; one is %s", examples, code)
		}
	}
}

// codes are those of all findings, in their order.
func codes() (all []string) {
	for _, d := range diagnoses {
		all = append(all, d.code)
	}
	return slices.Compact(all)
}
