// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/page"
)

var update = flag.Bool("update", false, "write what the tests expect into docs/evidence/images.md")

// The page says what the tests expect.
func TestPage(t *testing.T) {
	table := "| setting | result | except |\n| --- | --- | --- |\n"
	for _, s := range settings {
		others := map[string][]string{}
		for _, i := range all {
			if word := s.except[i.name]; word != "" {
				others[word] = append(others[word], i.label())
			}
		}
		var except []string
		for _, word := range slices.Sorted(maps.Keys(others)) {
			except = append(except, word+": "+strings.Join(others[word], ", "))
		}
		table += fmt.Sprintf("| %s | %s | %s |\n", s.name, s.result, strings.Join(except, "; "))
	}
	page.Holds(t, top+"/docs/evidence/images.md", "results", table, *update)
}

// want is the result of an image in a setting on a host of a mode.
func (s setting) want(i image, mode string) string {
	word := s.result
	if other := s.except[i.name]; other != "" {
		word = other
	}
	for part := range strings.SplitSeq(word, ", ") {
		if of, found := strings.CutPrefix(part, mode+": "); found {
			return of
		}
	}
	return word
}

// label says of an image that is built on a stand-in that only the layout is that of the distribution.
func (i image) label() string {
	if strings.HasPrefix(i.base, "debian:") && i.recipe != "ubuntu" {
		return i.name
	}
	return i.name + " layout"
}
