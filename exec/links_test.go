// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"os"
	"path/filepath"
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
