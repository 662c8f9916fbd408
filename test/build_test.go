// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"debug/elf"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Whoever imports a package of this module gets what go.mod requires: the three that its users named. Every call pays for what
// is linked in.
func TestDependencies(t *testing.T) {
	required := host.Run(t, "go", "list", "-m", "-f", "{{if not (or .Indirect .Main)}}{{.Path}}{{end}}", "all")
	got := slices.Sorted(strings.FieldsSeq(required))
	want := []string{"github.com/coreos/go-iptables", "github.com/urfave/cli/v2", "golang.org/x/sys"}
	if !slices.Equal(got, want) {
		t.Errorf("go.mod requires %q, want %q", got, want)
	}
	symbols := string(host.Read(t, os.Getenv(host.WrapperVariable)))
	for _, unwanted := range []string{"go-iptables/iptables.", "net/http.", "crypto/tls.", "testing.Main"} {
		if strings.Contains(symbols, unwanted) {
			t.Errorf("%s is linked in", unwanted)
		}
	}
	program, err := elf.Open(os.Getenv(host.WrapperVariable))
	host.Check(t, err)
	defer program.Close()
	if program.Section(".interp") != nil || program.Section(".dynamic") != nil {
		t.Error("it is not static")
	}
}
