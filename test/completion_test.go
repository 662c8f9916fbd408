// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// Each shell completes what the program's help says.
func TestCompletion(t *testing.T) {
	wrapper := os.Getenv(wrapperVariable)
	commands := listed(host.Run(t, wrapper, "--help"), `(?m)^   ([a-z]+)  +\S`)
	flags := listed(host.Run(t, wrapper, "detect", "--help"), `(?m)^   (--[a-z]+)`)
	if !slices.Contains(commands, "detect") || !slices.Contains(commands, "completion") || !slices.Contains(flags, "--netns") {
		t.Fatalf("commands %q, flags %q", commands, flags)
	}
	dirs := t.TempDir()
	host.Check(t, os.Mkdir(filepath.Join(dirs, "directory"), 0o755))
	host.Check(t, os.WriteFile(filepath.Join(dirs, "file"), nil, 0o644))
	formats := []string{"text", "table", "json", "env", "nfd"}
	tests := []struct {
		line string
		want []string
	}{
		{"", commands},
		{"de", []string{"detect"}},
		{"--v", []string{"--version"}},
		{"detect --", flags},
		{"detect -o ", formats},
		{"detect --output ", formats},
		{"detect --strict -o t", []string{"table", "text"}},
		{"detect --output=n", []string{"nfd"}},
		{"detect --wait ", nil},
		{"detect --netns f", []string{"file"}},
		{"install --skip", []string{"--skip-checks"}},
		{"install --alternatives ", []string{"auto", "never"}},
		{"install --root ", []string{"directory"}},
		{"select --mode ", []string{"auto", "nft", "legacy"}},
		{"reset --dir ", []string{"directory"}},
		{"reset --o", nil},
		{"completion ", []string{"bash", "zsh", "fish"}},
	}
	var lines []string
	for _, test := range tests {
		lines = append(lines, "iptables-wrapper "+test.line)
	}
	for shell, complete := range map[string]func(t *testing.T, dir, script string, lines []string) [][]string{
		"bash": bash, "zsh": zsh, "fish": fish,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			completed := complete(t, dirs, host.Run(t, wrapper, "completion", shell), lines)
			if len(completed) != len(tests) {
				t.Fatalf("of %d lines, %d were completed: %q", len(tests), len(completed), completed)
			}
			for i, test := range tests {
				var got []string
				for _, word := range completed[i] {
					if name, value, ok := strings.Cut(word, "="); ok && value != "" {
						word = value
					} else {
						word = name
					}
					got = append(got, strings.TrimSuffix(word, "/"))
				}
				want := slices.Sorted(slices.Values(test.want))
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%q: got %q, want %q", test.line, got, want)
				}
			}
		})
	}
}

func listed(help, pattern string) []string {
	var words []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(help, -1) {
		words = append(words, match[1])
	}
	return words
}

// typed types lines into an interactive shell, in a directory, and after each a key that puts in all completions at once.
// There, the program's name is that of a function that writes its arguments to a file. One shell takes all the lines: zsh
// needs most of a second to start.
func typed(t *testing.T, dir string, lines []string, shell ...string) (completed [][]string) {
	t.Helper()
	result := filepath.Join(t.TempDir(), "result")
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RESULT="+result, "TERM=dumb")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\x18a\n") + "\x18a\nexit\n")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	called, err := os.ReadFile(result)
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	for line := range strings.Lines(string(called)) {
		if len(completed) == len(lines) {
			t.Fatalf("%s: more calls than lines:\n%s\n%s", cmd, called, output)
		}
		// The last word, if it was begun, is put in again by each completion, and stays as it is if there is none.
		typed := lines[len(completed)]
		end := strings.LastIndexByte(typed, ' ') + 1
		before, begun := strings.Fields(typed[:end])[1:], typed[end:]
		after := strings.Fields(line)
		if len(after) < len(before) || !slices.Equal(after[:len(before)], before) {
			t.Fatalf("%s: typed %q, got %q\n%s", cmd, typed, after, output)
		}
		if after = after[len(before):]; slices.Equal(after, []string{begun}) {
			after = nil
		}
		completed = append(completed, after)
	}
	return completed
}

const recorder = `iptables-wrapper() { { printf '%s ' "$@"; echo; } >>"$RESULT"; }`

func bash(t *testing.T, dir, script string, lines []string) [][]string {
	rc := write(t, t.TempDir(), "bashrc", recorder, script, `bind '"\C-xa": insert-completions'`)
	return typed(t, dir, lines, "bash", "--noprofile", "--rcfile", rc, "-i")
}

// zsh finds the script in a directory of its own. It edits lines on a terminal only.
func zsh(t *testing.T, dir, script string, lines []string) [][]string {
	needs(t, "zsh")
	functions := t.TempDir()
	write(t, functions, "_iptables-wrapper", script)
	rc := write(t, t.TempDir(), ".zshrc", "fpath=("+functions+" $fpath); autoload -Uz compinit; compinit -D -u", recorder, `
zle -C all-matches complete-word _generic
bindkey '^Xa' all-matches
zstyle ':completion:all-matches:*' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert true
`)
	return typed(t, dir, lines, "env", "ZDOTDIR="+filepath.Dir(rc), "script", "-qec", "zsh -i", "/dev/null")
}

// fish says itself what it would complete. An empty line ends what it says about each line.
func fish(t *testing.T, dir, script string, lines []string) (completed [][]string) {
	needs(t, "fish")
	config := t.TempDir()
	write(t, filepath.Join(config, "fish/completions"), "iptables-wrapper.fish", script)
	cmd := exec.Command("fish", append([]string{"--command",
		"function iptables-wrapper; end; for line in $argv; complete --do-complete=$line; echo; end"}, lines...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+config, "XDG_DATA_HOME="+config)
	output, err := cmd.Output()
	host.Check(t, err)
	var words []string
	for line := range strings.Lines(string(output)) {
		if line == "\n" {
			completed, words = append(completed, words), nil
			continue
		}
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words = append(words, word)
	}
	return completed
}

func needs(t *testing.T, program string) {
	if _, err := exec.LookPath(program); err != nil {
		host.Cannot(t, "run %s: it is not installed; make test installs it", program)
	}
}

func write(t *testing.T, dir, name string, parts ...string) string {
	host.Check(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, name)
	host.Check(t, os.WriteFile(path, []byte(strings.Join(parts, "\n")), 0o644))
	return path
}
