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

// cell is what the table says of an image in a setting: the result on hosts of each mode.
func cell(results map[string]string) string {
	if results["legacy"] == results["nft"] {
		return results["nft"]
	}
	var parts []string
	for _, mode := range bothModes {
		if results[mode] != "" {
			parts = append(parts, mode+": "+results[mode])
		}
	}
	return strings.Join(parts, ", ")
}

// agrees reports whether a cell that was got on hosts of one mode, or of both, agrees with the whole one.
func agrees(got, whole string) bool {
	if got == whole || slices.Contains(strings.Split(whole, ", "), got) {
		return true
	}
	mode, result, _ := strings.Cut(got, ": ")
	return slices.Contains(bothModes, mode) && result == whole
}

// compare checks the tables in docs/evidence/images.md. Sizes may be off by a quarter: packages change. Images that were not
// run have no words.
func compare(t *testing.T, words [][]string, sizes [][3]string) {
	t.Helper()
	text, err := os.ReadFile(resultsPage)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		s := page.Replace(t, string(text), "results", resultTable(words))
		if err := os.WriteFile(resultsPage, []byte(page.Replace(t, s, "sizes", sizeTable(sizes))), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	said := readTable(t, page.Part(t, string(text), "results"))
	lines := strings.Split(page.Part(t, string(text), "sizes"), "\n")
	for row, i := range all {
		for column, s := range settings {
			if words[row] != nil && !agrees(words[row][column], said[s.name][i.label()]) {
				t.Errorf("%s says of %s, %s: %q, and the result is: %q\nIf that is right: make test-images TESTFLAGS=-update",
					resultsPage, i.label(), s.name, said[s.name][i.label()], words[row][column])
			}
		}
		if words[row] == nil {
			continue
		}
		n := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| "+i.label()+" |") })
		if n < 0 {
			t.Errorf("%s does not say how large %s is", resultsPage, i.label())
			continue
		}
		for cell, is := range sizes[row][1:] {
			wrote := strings.TrimSpace(strings.Split(lines[n], "|")[3+cell])
			a, errA := strconv.ParseFloat(wrote, 64)
			b, errB := strconv.ParseFloat(is, 64)
			if errA != nil || errB != nil || math.Abs(a-b) > a/4 {
				t.Errorf("%s says %s MB of %s, and it is %s", resultsPage, wrote, i.label(), is)
			}
		}
	}
}

// readTable returns what the table of results says of each setting and image.
func readTable(t *testing.T, table string) map[string]map[string]string {
	t.Helper()
	said := map[string]map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		setting := strings.TrimSpace(cells[0])
		said[setting] = map[string]string{}
		for _, i := range all {
			said[setting][i.label()] = strings.TrimSpace(cells[1])
		}
		if len(cells) < 3 {
			continue
		}
		for except := range strings.SplitSeq(cells[2], "; ") {
			at := strings.LastIndex(except, ": ")
			if at < 0 {
				continue
			}
			for image := range strings.SplitSeq(except[at+2:], ", ") {
				said[setting][strings.TrimSpace(image)] = strings.TrimSpace(except[:at])
			}
		}
	}
	return said
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
	b.WriteString("| image | iptables | MB | of which the wrapper |\n| --- | --- | --- | --- |\n")
	for row, i := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.label(), sizes[row][0], sizes[row][1], sizes[row][2])
	}
	return b.String()
}

// What is read from the table is what was written, and a result on hosts of one mode is found in that.
func TestTable(t *testing.T) {
	words := make([][]string, len(all))
	for row := range all {
		for column := range settings {
			word := []string{direct, cell(map[string]string{"legacy": guess, "nft": eachCall}), newOne}[(row*column+column)%7%3]
			words[row] = append(words[row], word)
		}
	}
	said := readTable(t, resultTable(words))
	for row, i := range all {
		for column, s := range settings {
			if got := said[s.name][i.label()]; got != words[row][column] {
				t.Errorf("%s, %s: got %q, want %q", i.label(), s.name, got, words[row][column])
			}
		}
	}
	for _, test := range []struct {
		got    map[string]string
		whole  string
		agrees bool
	}{
		{map[string]string{"nft": direct}, direct, true},
		{map[string]string{"nft": direct}, eachCall, false},
		{map[string]string{"legacy": newOne}, newOne, true},
		{map[string]string{"nft": eachCall}, "legacy: guess, nft: each call", true},
		{map[string]string{"legacy": eachCall}, "legacy: guess, nft: each call", false},
		{map[string]string{"legacy": eachCall, "nft": eachCall}, "legacy: guess, nft: each call", false},
	} {
		if got := agrees(cell(test.got), test.whole); got != test.agrees {
			t.Errorf("%v agrees with %q: %t", test.got, test.whole, got)
		}
	}
}
