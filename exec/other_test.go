// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	osexec "os/exec"
	"strings"
	"testing"
)

// A program that imports the library can be built for any system, and finds out when it runs. Here it is only
// type-checked: that takes two seconds each, and a first build of Go's own packages for another system takes half a
// minute.
func TestOtherSystems(t *testing.T) {
	defer func(before build.Context) { build.Default = before }(build.Default)
	root, err := osexec.Command("go", "env", "GOROOT").Output() // a build with -trimpath does not know it
	if err != nil {
		t.Fatal(err)
	}
	build.Default.CgoEnabled = false
	build.Default.GOROOT = strings.TrimSpace(string(root))
	for _, system := range []string{"windows", "plan9"} { // the latter has no numbers of errors
		build.Default.GOOS = system
		source := importer.ForCompiler(token.NewFileSet(), "source", nil).(types.ImporterFrom)
		_, err := source.ImportFrom("github.com/iptables-wrappers/iptables-wrappers/exec", ".", 0)
		if err != nil {
			t.Errorf("%s: %v", system, err)
		}
	}
}
