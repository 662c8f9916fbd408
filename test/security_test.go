// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// What docs/security.md refers to is there, and the modules that go.mod requires are those that it gives a reason for.
func TestSecurityPage(t *testing.T) {
	content, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	tests := string(bytes.Join(readFiles(t, "*_test.go"), nil))
	referred := 0
	// A test, or a script, is what stands alone between backquotes and is no option, path or variable.
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+|[a-z][a-z-]+)`").FindAllStringSubmatch(page, -1) {
		_, err := os.Stat("script/" + name[1] + ".txtar")
		isTest := strings.Contains(tests, "func "+name[1]+"(t *testing.T)")
		isCommand := strings.Contains(" detect doctor install select reset xtables-nft-multi ", " "+name[1]+" ")
		if err != nil && !isTest && !isCommand {
			t.Errorf("there is no test %s", name[1])
		}
		referred++
	}
	if referred < 10 {
		t.Errorf("it refers to %d tests", referred)
	}
	var modules struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(host.Run(t, "go", "mod", "edit", "-json", "../go.mod")), &modules); err != nil {
		t.Fatal(err)
	}
	for _, module := range modules.Require {
		if !module.Indirect && !strings.Contains(page, "| "+module.Path+" |") {
			t.Errorf("it does not say why %s is required", module.Path)
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z.]+/\S+) \| (tests only)?`).FindAllStringSubmatch(page, -1) {
		if linked := isLinked(t, row[1]); linked != (row[2] == "") {
			t.Errorf("%s is in the binary: %v", row[1], linked)
		}
	}
}

func isLinked(t *testing.T, module string) bool {
	t.Helper()
	info, err := buildinfo.ReadFile(os.Getenv(wrapperVariable))
	if err != nil {
		t.Fatal(err)
	}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return true
		}
	}
	return false
}

// The list of what is in the binary has what is in it, each with its version.
func TestSBOM(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "iptables-wrapper")
	host.Run(t, "make", "-C", "..", "sbom", "BINARY="+binary)
	content, err := os.ReadFile(binary + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(content, &list); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if list.BOMFormat != "CycloneDX" || len(list.Components) != len(info.Deps) {
		t.Fatalf("got %+v, and in the binary are %d modules", list, len(info.Deps))
	}
	for i, dependency := range info.Deps {
		if c := list.Components[i]; c.Name != dependency.Path || c.Version != dependency.Version {
			t.Errorf("got %+v, want %s %s", c, dependency.Path, dependency.Version)
		}
	}
}
