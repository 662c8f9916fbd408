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

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// TestImages builds every image and runs it in every setting. In "make nightly", that is on hosts with both
// backends. Otherwise each setting has one backend, and another one with the next image.
func TestImages(t *testing.T) {
	for row, i := range all {
		if realBase == "registry" && !i.inRegistry(setting{}) {
			continue
		}
		t.Run(i.name, func(t *testing.T) { // -run may leave it out
			t.Parallel()
			b := buildImage(t, i)
			for column, s := range settings {
				for m, backend := range backends {
					if !host.Nightly() && m != (row+column)%2 || realBase == "registry" && !i.inRegistry(s) {
						continue
					}
					t.Run(s.name+"/"+backend, func(t *testing.T) {
						t.Parallel()
						if got, want := s.test(t, b, backend), s.want(i, backend); got != want {
							t.Errorf("got %q, want %q, which is what settings.go expects of this image", got, want)
						}
					})
				}
			}
		})
	}
}

var update = flag.Bool("update", false, "write what the tests expect into docs/evidence/compatibility.md")

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
	host.PageHolds(t, top+"/docs/evidence/compatibility.md", "results", table, *update)
}
