// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A console that does not tell how it went to the end is an error that says what is wrong.
func TestConsole(t *testing.T) {
	const good = "SeaBIOS\r\n\r\n" + beginMark + "\r\n" + stateMark + "as-is\r\n" + stepMark +
		`{"Name":"detect","Status":3,"Stdout":"nft\n"}` + "\r\n"
	report, err := parse(good+stateMark+"locked\r\n"+endMark+"\r\n[ 8.1] reboot: Restarting system\r\n", nil)
	want := []section{{"as-is", []step{{Name: "detect", Status: 3, Stdout: "nft\n"}}}, {"locked", nil}}
	if err != nil || !reflect.DeepEqual(report, want) {
		t.Errorf("got %+v, %v", report, err)
	}
	for _, test := range []struct {
		doc, console string
		ended        error
		want         string
	}{
		{"nothing", "", nil, "the console is cut off"},
		{"a step of no state", stepMark + `{"Name":"detect"}` + "\r\n" + endMark + "\r\n", nil, "belongs to no state"},
		{"no end", good, nil, "the console is cut off"},
		{"cut in a line", good + stepMark + `{"Name":"re`, nil, "a line of the console is damaged"},
		{"cut in the end", good + endMark[:5], nil, "the console is cut off"},
		{"panic", good + "[    1.7] Kernel panic - not syncing: No working init found.\r\n", nil,
			"the kernel panics: [    1.7] Kernel panic - not"},
		{"panic after the end", good + endMark + "\r\n[ 9.0] Kernel panic - not syncing: x\r\n", nil,
			"the kernel panics"},
		{"the guest gives up", good + errorMark + "mount /proc: no such device\r\n" + endMark + "\r\n", nil,
			"the guest cannot mount /proc"},
		{"hangs", good, errors.New("it hangs: x"), "it hangs"},
		{"hangs after the end", good + endMark + "\r\n", errors.New("it hangs: x"), "it hangs"},
	} {
		report, err := parse(test.console, test.ended)
		if err == nil || !strings.Contains(err.Error(), test.want) || report != nil {
			t.Errorf("%s: got %+v, %v, want %q", test.doc, report, err, test.want)
		}
	}
	got := tail(strings.Repeat("line\r\n", 100) + strings.Repeat("x", 5000) + "\r\n")
	if strings.Count(got, "\n") != 29 || len(got) > 2000 {
		t.Errorf("got %q", got)
	}
}

// A guest that ends before our code runs is booted again, twice at most, and so is one in which a program had the trap
// flag set. One that ends later is not, nor one in which a program ran into a breakpoint.
func TestPersist(t *testing.T) {
	const early = "[ 1.7] Kernel panic - not syncing: IO-APIC\r\n"
	const late = beginMark + "\r\n[ 7.1] Kernel panic - not syncing: x\r\n"
	death := func(signal int, flags string) string {
		registers := "<4>[    3.780656] RIP: 0023:0x8090a0b\n" +
			"<4>[    3.783072] RSP: 002b:00000000ffba4ca0 EFLAGS: " + flags + "\n"
		return fmt.Sprintf("%s\r\n%s%d.\n%s%s\r\n", beginMark, deathMark, signal, registers, endMark)
	}
	flag, breakpoint, fault := death(5, "00000342"), death(5, "00000246"), death(11, "00010346")
	for _, test := range []struct {
		consoles []string
		boots    int
	}{
		{[]string{flag, late}, 2},
		{[]string{early, breakpoint + flag, late}, 3},
		{[]string{flag, flag, flag}, 3},
		{[]string{breakpoint}, 1},
		{[]string{fault}, 1},
		{[]string{late}, 1},
		{[]string{early, late}, 2},
		{[]string{"", early, late}, 3},
		{[]string{early, early, early}, 3},
	} {
		i := 0
		text, boots, ended := persist(func() (string, error) {
			i++
			return test.consoles[i-1], errors.New(test.consoles[i-1])
		})
		if last := test.consoles[test.boots-1]; boots != test.boots || text != last || ended.Error() != last {
			t.Errorf("%q: %d boots, %q, %v", test.consoles, boots, text, ended)
		}
	}
}
