// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What a page shows of a recipe is a part of the recipe: what is between a comment that begins with "in" and a file,
// and the end of the block.
func TestRecipesOnPages(t *testing.T) {
	mark := regexp.MustCompile("(?s)<!-- in (\\S+) -->\n\n```\\w+\n(.*?)```")
	pages, err := filepath.Glob("../../docs/*.md")
	host.Check(t, err)
	shown := 0
	for _, page := range pages {
		for _, found := range mark.FindAllStringSubmatch(read(t, page), -1) {
			shown++
			if !strings.Contains(read(t, filepath.Join("../..", found[1])), found[2]) {
				t.Errorf("%s does not contain what %s shows:\n%s", found[1], page, found[2])
			}
		}
	}
	if shown == 0 {
		t.Error("no page shows a recipe")
	}
}
