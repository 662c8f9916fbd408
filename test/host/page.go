// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"strings"
	"testing"
)

// PageHolds checks that a part of a page is a text, and with update makes it that. A part is what tests write, and
// otherwise compare with their results. It stands between two comments, <!-- NAME --> and <!-- end of NAME -->.
func PageHolds(tb testing.TB, file, name, text string, update bool) {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	said := PagePart(tb, string(content), name)
	if said != text && !update {
		tb.Errorf("%s says of %s\n%s\nand it is\n%s\nIf that is right, run the test with -update.", file, name, said,
			text)
	} else if said != text {
		if err := os.WriteFile(file, []byte(ReplacePart(tb, string(content), name, text)), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

// PagePart returns what stands between a part's two marks.
func PagePart(tb testing.TB, text, name string) string {
	tb.Helper()
	begin, end, _ := strings.Cut(mark(name, "\x00"), "\x00")
	_, rest, begins := strings.Cut(text, begin)
	inside, _, ends := strings.Cut(rest, end)
	if !begins || !ends {
		tb.Fatalf("the page has no marks for %q", name)
	}
	return inside
}

// ReplacePart returns the text with something else between a part's two marks.
func ReplacePart(tb testing.TB, text, name, with string) string {
	tb.Helper()
	return strings.Replace(text, mark(name, PagePart(tb, text, name)), mark(name, with), 1)
}

func mark(name, inside string) string {
	return "<!-- " + name + " -->\n\n" + inside + "\n<!-- end of " + name + " -->"
}
