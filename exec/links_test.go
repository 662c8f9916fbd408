// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keeping makes a directory with the six names, links to the running test, which is the wrapper here.
func keeping(tb testing.TB) (Wrapper, func()) {
	tb.Helper()
	d := tb.TempDir()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(in(d, "xtables-nft-multi"), nil, 0o755); err != nil {
		tb.Fatal(err)
	}
	w := Started()
	w.called = in(d, "iptables")
	return w, func() {
		for _, name := range names {
			if err := point(in(d, name), self); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func TestKeepAndUndo(t *testing.T) {
	w, reset := keeping(t)
	reset()
	want := func(target string) {
		t.Helper()
		for _, name := range names {
			if got, err := os.Readlink(in(dir(w.called), name)); err != nil || got != target {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, target)
			}
		}
	}
	kept, err := w.Keep("nft", in(dir(w.called), "xtables-nft-multi"))
	if len(kept) != len(names) || err != nil {
		t.Fatalf("got %v, %v", kept, err)
	}
	want("xtables-nft-multi")
	if again, err := w.Keep("nft", in(dir(w.called), "xtables-nft-multi")); len(again) != 0 || err != nil {
		t.Errorf("again: got %v, %v", again, err)
	}
	kept.Undo()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want(self)
	if left, _ := filepath.Glob(in(dir(w.called), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The marker is found wherever it stands, across the pieces in which a file is read too.
func TestIsWrapper(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	const piece = 64 << 10
	for _, before := range []int{0, 1, piece - len(marker) - 1, piece - len(marker), piece - len(marker) + 1, piece - 1, piece, piece + 1, 2*piece - 7, 3 * piece} {
		for _, text := range []string{marker, marker[:len(marker)-1], marker[1:]} {
			content := strings.Repeat(".", before) + text + strings.Repeat("x", 100)
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			if got := isWrapper(file); got != (text == marker) {
				t.Errorf("%d bytes before %q: got %v", before, text, got)
			}
		}
	}
	if isWrapper("/dev/zero") || isWrapper(t.TempDir()) || isWrapper("/not/there") {
		t.Error("what is no file is a wrapper")
	}
}

// BenchmarkKeep is what a first call pays for moving the six names.
func BenchmarkKeep(b *testing.B) {
	w, reset := keeping(b)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		reset()
		b.StartTimer()
		if kept, err := w.Keep("nft", in(dir(w.called), "xtables-nft-multi")); len(kept) != len(names) || err != nil {
			b.Fatalf("got %v, %v", kept, err)
		}
	}
}

func BenchmarkProgram(b *testing.B) {
	w, _ := keeping(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Program("nft", "iptables-restore"); err != nil {
			b.Fatal(err)
		}
	}
}
