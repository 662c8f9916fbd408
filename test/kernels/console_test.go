// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A console that does not tell how it went to the end is an error that says what is wrong.
func TestConsole(t *testing.T) {
	const good = "SeaBIOS\r\n\r\n" + stepMark + `{"Name":"detect","Status":3,"Stdout":"nft\n"}` + "\r\n"
	steps, err := parse(good+endMark+"\r\n[ 8.1] reboot: Restarting system\r\n", nil)
	if err != nil || len(steps) != 1 || steps[0].Name != "detect" || steps[0].Status != 3 || steps[0].Stdout != "nft\n" {
		t.Errorf("got %+v, %v", steps, err)
	}
	for _, test := range []struct {
		doc, console string
		ended        error
		want         string
	}{
		{"nothing", "", nil, "the console is cut off"},
		{"no end", good, nil, "the console is cut off"},
		{"cut in a line", good + stepMark + `{"Name":"re`, nil, "a line of the console is damaged"},
		{"cut in the end", good + endMark[:5], nil, "the console is cut off"},
		{"panic", good + "[    1.7] Kernel panic - not syncing: No working init found.\r\n", nil, "the kernel panics: [    1.7] Kernel panic - not"},
		{"panic after the end", good + endMark + "\r\n[ 9.0] Kernel panic - not syncing: x\r\n", nil, "the kernel panics"},
		{"the guest gives up", good + errorMark + "mount /proc: no such device\r\n" + endMark + "\r\n", nil, "the guest cannot mount /proc"},
		{"hangs", good, errors.New("it hangs: x"), "it hangs"},
		{"hangs after the end", good + endMark + "\r\n", errors.New("it hangs: x"), "it hangs"},
	} {
		if steps, err := parse(test.console, test.ended); err == nil || !strings.Contains(err.Error(), test.want) || steps != nil {
			t.Errorf("%s: got %+v, %v, want %q", test.doc, steps, err, test.want)
		}
	}
	if got := tail(strings.Repeat("line\r\n", 100) + strings.Repeat("x", 5000) + "\r\n"); strings.Count(got, "\n") != 29 || len(got) > 2000 {
		t.Errorf("got %q", got)
	}
}

// A kernel without a first process panics, and one that is given no time hangs.
func TestBadBoots(t *testing.T) {
	if *onlyKernel != "" || *onlyState != "" {
		t.Skip("-kernel and -case ask for something else")
	}
	possible(t)
	nothing := filepath.Join(t.TempDir(), "initramfs")
	if err := os.WriteFile(nothing, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	m := machine{image: fetch(t, all[1]).image, initramfs: nothing}
	if _, err := parse(m.boot(t, "tcg", 10*time.Minute, "")); err == nil || !strings.Contains(err.Error(), "the kernel panics") {
		t.Errorf("without an initramfs: got %v", err)
	}
	if _, err := parse(m.boot(t, "tcg", time.Millisecond, "")); err == nil || !strings.Contains(err.Error(), "it hangs") {
		t.Errorf("without time: got %v", err)
	}
}
