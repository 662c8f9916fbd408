// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	memories "github.com/iptables-wrappers/iptables-wrappers/internal/memory"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
)

// docs/on-disk.md has each name and word that the code writes.
func TestOnDisk(t *testing.T) {
	text := pages(t)["docs/on-disk.md"]
	names := []string{
		"`DIR/" + self.WrapperName + "`",
		"`DIR/" + layout.Switch + "`",
		"`" + layout.AlternativesDir + "`",
	}
	for _, dir := range memories.Dirs(0) {
		names = append(names, "`"+dir+"`")
	}
	for _, priority := range group(t, "../internal/install", "priority") {
		names = append(names, "The priority is "+priority+";")
	}
	for _, name := range names {
		if !strings.Contains(text, name) {
			t.Errorf("it lacks %s", name)
		}
	}
	_, table, _ := strings.Cut(text, "\n| `STATE` | meaning |")
	table, _, _ = strings.Cut(table, "\n\n")
	var described []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)[`:]").FindAllStringSubmatch(table, -1) {
		described = append(described, row[1])
	}
	states := group(t, "../internal/memory", "Guess")
	for _, state := range states {
		if !slices.Contains(described, state) {
			t.Errorf("it lacks the state %q", state)
		}
	}
	for _, state := range described {
		if !slices.Contains(states, state) {
			t.Errorf("the code lacks the state %q", state)
		}
	}
}
