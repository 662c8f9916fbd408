// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each recipe in images/ is built by a row of the table, upon a base that the tests can make. It is on the page from
// which people choose one, and on the one that says what it was built upon.
func TestRecipes(t *testing.T) {
	recipes, err := filepath.Glob(top + "/images/*/Dockerfile")
	if err != nil || len(recipes) == 0 {
		t.Fatalf("no recipes: %v", err)
	}
	page := string(host.Read(t, top+"/docs/install.md"))
	evidence := string(host.Read(t, top+"/docs/evidence/images.md"))
	bases := string(host.Read(t, "bases_test.go"))
	for _, path := range recipes {
		name := filepath.Base(filepath.Dir(path))
		if name == "adopt" { // its stages are in adopt_test.go
			continue
		}
		if !slices.ContainsFunc(all, func(i image) bool { return i.recipe == name }) {
			t.Errorf("images/%s: no row in images_test.go builds it", name)
		}
		if !strings.Contains(page, "](../images/"+name+"/Dockerfile)") {
			t.Errorf("images/%s: docs/install.md does not offer it", name)
		}
		if !strings.Contains(evidence, "**"+name+"**") {
			t.Errorf("images/%s: docs/evidence/images.md does not say upon what the tests build **%s**", name, name)
		}
	}
	for _, i := range all {
		if !slices.Contains(recipes, filepath.Join(top, "images", i.recipe, "Dockerfile")) {
			t.Errorf("%s: there is no images/%s/Dockerfile", i.name, i.recipe)
		}
		distribution, _, _ := strings.Cut(i.base, ":")
		if !strings.Contains(bases, "\tcase \""+distribution+"\":\n") {
			t.Errorf("%s: makeBase, in bases_test.go, has no case %q for its base image", i.name, distribution)
		}
	}
}
