// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/page"
)

var update = flag.Bool("update", false, "write the results to docs/evidence/images.md")

const resultsPage = top + "/docs/evidence/images.md"

// measure returns the version of an image's iptables, its size in MB, and how much of it is the wrapper.
func measure(t *testing.T, i built) [3]string {
	t.Helper()
	size := podman(t, "image", "inspect", "--format", "{{.Size}}", i.ref)
	got := run(t, i.ref, "", i.program("nft")+` iptables --version
/busybox find / -xdev -name iptables-wrapper -type f -exec /busybox stat -c %s {} ';'`, "--network=none", "--user", "0", "--cap-add=NET_ADMIN,NET_RAW")
	fields := strings.Fields(got.stdout)
	if len(fields) < 4 || got.stderr != "" {
		t.Fatalf("got %+v", got)
	}
	megabytes := func(sizes ...string) (sum float64) {
		for _, s := range sizes {
			bytes, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += bytes / 1e6
		}
		return sum
	}
	return [3]string{strings.TrimPrefix(fields[1], "v"), fmt.Sprintf("%.0f", megabytes(size)), fmt.Sprintf("%.1f", megabytes(fields[3:]...))}
}

// compare checks the tables in docs/evidence/images.md. Sizes may be off by a quarter: packages change.
func compare(t *testing.T, words [][]string, sizes [][3]string) {
	t.Helper()
	text, err := os.ReadFile(resultsPage)
	if err != nil {
		t.Fatal(err)
	}
	results, sized := resultTable(words), sizeTable(sizes)
	if *update {
		s := page.Replace(t, string(text), "results", results)
		if err := os.WriteFile(resultsPage, []byte(page.Replace(t, s, "sizes", sized)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := page.Part(t, string(text), "results"); got != results {
		t.Errorf("%s says\n%s\nand the result is:\n%s\nIf that is right: go test ./test/images -update", resultsPage, got, results)
	}
	said, is := strings.Fields(page.Part(t, string(text), "sizes")), strings.Fields(sized)
	if len(said) != len(is) {
		t.Fatalf("%s says\n%s\nand it is\n%s", resultsPage, said, is)
	}
	for i := range said {
		a, errA := strconv.ParseFloat(said[i], 64)
		b, errB := strconv.ParseFloat(is[i], 64)
		if numbers := errA == nil && errB == nil; numbers && math.Abs(a-b) > a/4 {
			t.Errorf("%s says %v MB, and it is %v", resultsPage, a, b)
		}
	}
}

// label says of an image that is built on a stand-in that only the layout is that of the distribution.
func (i image) label() string {
	if strings.HasPrefix(i.base, "debian:") && i.recipe != "ubuntu" {
		return i.name
	}
	return i.name + " layout"
}

// resultTable has a row for each setting: the commonest result, and the images with another one.
func resultTable(words [][]string) string {
	var b strings.Builder
	b.WriteString("| setting | result | except |\n| --- | --- | --- |\n")
	for column, s := range settings {
		images := map[string][]string{}
		usual := ""
		for row, i := range all {
			word := words[row][column]
			images[word] = append(images[word], i.label())
			if len(images[word]) > len(images[usual]) {
				usual = word
			}
		}
		delete(images, usual)
		var except []string
		for _, word := range slices.Sorted(maps.Keys(images)) {
			except = append(except, word+": "+strings.Join(images[word], ", "))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.name, usual, strings.Join(except, "; "))
	}
	return b.String()
}

func sizeTable(sizes [][3]string) string {
	var b strings.Builder
	b.WriteString("| image | iptables | MB | of it the wrapper |\n| --- | --- | --- | --- |\n")
	for row, i := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.label(), sizes[row][0], sizes[row][1], sizes[row][2])
	}
	return b.String()
}
