// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Conformance calls any iptables wrapper, this project's or another, in situations that need nothing but the six
// commands of iptables, each in a container of its own, and prints what was expected and what was seen. It needs root,
// and iptables with both backends.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// A situation is what a host and a container are like and what is called. Its result is one line.
type situation struct {
	group, name string
	want        string
	script      string                  // what it does, for sh; prelude.sh has the functions
	run         func(*container) string // or in Go
}

// ID is how -run and the process in the container name a situation.
func (s situation) ID() string { return s.group + ": " + s.name }

type result struct {
	situation
	got     string
	besides string // what else was seen: text on standard error, a difference that the situation is not about
}

func (r result) passed() bool { return r.got == r.want }

// limit ends a situation that hangs. Most take a third of a second.
var limit = flag.Duration("limit", 2*time.Minute, "how long a situation may `last`")

func main() {
	var w wrapper
	flag.StringVar(&w.file, "wrapper", "", "the `program` to examine")
	flag.StringVar(&w.names, "names", "links",
		"how the six commands are pointed at it: links, alternatives, or a shell `script`,\nwhich is given the "+
			"program in $WRAPPER and may be run more than once")
	without := flag.Bool("without-nftables", false,
		"(for the suite itself) run the arguments where the kernel has no nf_tables")
	inside := flag.String("inside", "", "(for the suite itself) be this situation's container")
	run := flag.String("run", "", "only the situations that match this `expression`")
	all := flag.Bool("all", false, "print the situations that pass too")
	flag.Parse()
	if *without {
		fail(becomeWithoutNFTables(flag.Args()))
	}
	if w.file == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *inside != "" {
		if err := host.Enter(); err != nil {
			fail(err)
		}
		w.be(*inside)
		return
	}
	matching, err := regexp.Compile(*run)
	if err != nil {
		fail(err)
	}
	results, err := w.examine(matching)
	passed := printTables(os.Stdout, results, *all)
	if err != nil {
		fail(err)
	}
	if passed < len(results) {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "conformance:", err)
	os.Exit(2)
}

// examine plays every situation whose ID matches, as many at once as there are processors.
func (w wrapper) examine(matching *regexp.Regexp) ([]result, error) {
	var err error
	w.file, err = filepath.Abs(w.file)
	if err != nil {
		return nil, err
	}
	w.file, err = filepath.EvalSymlinks(w.file)
	if err != nil {
		return nil, err
	}
	if w.names != "links" && w.names != "alternatives" {
		w.names, err = filepath.Abs(w.names)
		if err != nil {
			return nil, err
		}
	}
	for _, file := range []string{w.file, w.names} {
		if _, err := os.Stat(file); filepath.IsAbs(file) && err != nil {
			return nil, err
		}
	}
	if !isIPTables(w.file) { // a container may hide it, and it may be replaced while the suite runs
		dir, err := os.MkdirTemp("", "conformance-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		program := filepath.Join(dir, filepath.Base(w.file))
		if err := copyFile(w.file, program); err != nil {
			return nil, err
		}
		w.file = program
	}
	var results []result
	for _, s := range situations() {
		if matching.MatchString(s.ID()) {
			results = append(results, result{situation: s})
		}
	}
	if len(results) == 0 {
		return nil, errors.New("no situation matches")
	}
	errs := make([]error, len(results))
	free := make(chan struct{}, runtime.NumCPU())
	var wait sync.WaitGroup
	for i := range results {
		free <- struct{}{}
		wait.Go(func() {
			printed, err := w.contain(results[i].situation)
			got, besides, _ := strings.Cut(printed, "\x00")
			results[i].got, results[i].besides = oneLine(got), besides
			errs[i] = err
			<-free
		})
	}
	wait.Wait()
	if matching.MatchString(throughout.ID()) {
		results = append(results, result{situation: throughout, got: inAll(results)})
	}
	return results, errors.Join(errs...)
}

// throughout is one property of all situations that are played, which would otherwise fail each of them.
var throughout = situation{
	group: "throughout",
	name:  "nothing is said, and nothing differs that a situation is not about",
	want:  "nothing",
}

func inAll(results []result) string {
	seen := map[string]int{}
	for _, r := range results {
		for line := range strings.SplitSeq(strings.TrimSpace(r.besides), "\n") {
			seen[line]++
		}
	}
	delete(seen, "")
	if len(seen) == 0 {
		return throughout.want
	}
	// The most frequent one, which is usually the only cause.
	first := slices.MaxFunc(slices.Sorted(maps.Keys(seen)), func(a, b string) int { return seen[a] - seen[b] })
	return fmt.Sprintf("%s (%d times), %d others", first, seen[first], len(seen)-1)
}

// contain plays one situation in a new container. An error is a fault of the suite or of the machine, not of the
// wrapper.
func (w wrapper) contain(s situation) (string, error) {
	runtime.LockOSThread() // Pdeathsig is about the thread
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	cmd := host.Contained(dir, "/proc/self/exe", "-wrapper", w.file, "-names", w.names, "-inside", s.ID())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("make a container: %w", err)
	}
	late := time.AfterFunc(*limit, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	switch inTime := late.Stop(); {
	case !inTime:
		return fmt.Sprintf("no end within %v", *limit), nil
	case err != nil:
		return "", fmt.Errorf("%s: %w: after %q: %s", s.ID(), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// printTables prints Markdown, and returns how many results are as expected.
func printTables(out io.Writer, results []result, all bool) (passed int) {
	fmt.Fprint(out, "| situation | expected | got |\n| --- | --- | --- |\n")
	var groups []string
	good, total := map[string]int{}, map[string]int{}
	for _, r := range results {
		if !slices.Contains(groups, r.group) {
			groups = append(groups, r.group)
		}
		total[r.group]++
		if r.passed() {
			good[r.group]++
			passed++
		}
		if !r.passed() || all {
			fmt.Fprintf(out, "| %s | %s | %s |\n", cell(r.ID()), cell(r.want), cell(r.got))
		}
	}
	fmt.Fprint(out, "\n| group | as expected |\n| --- | --- |\n")
	for _, group := range groups {
		fmt.Fprintf(out, "| %s | %d of %d |\n", group, good[group], total[group])
	}
	fmt.Fprintf(out, "\n%d of %d situations as expected\n", passed, len(results))
	return passed
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
