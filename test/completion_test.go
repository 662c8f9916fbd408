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

// Each shell completes what the program's help says, with the script where the shell looks for it, or sourced.
func TestCompletion(t *testing.T) {
	wrapper := os.Getenv(wrapperVariable)
	commands := listed(host.Run(t, wrapper, "--help"), `(?m)^   ([a-z]+)  +\S`)
	flags := listed(host.Run(t, wrapper, "detect", "--help"), `(?m)^   (--[a-z]+)`)
	if !slices.Contains(commands, "detect") || !slices.Contains(commands, "completion") || !slices.Contains(flags, "--netns") {
		t.Fatalf("commands %q, flags %q", commands, flags)
	}
	dirs := t.TempDir()
	if err := os.Mkdir(filepath.Join(dirs, "directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	formats := []string{"text", "table", "json", "env", "nfd"}
	for shell, complete := range map[string]func(t *testing.T, dir, script, line string) []string{
		"bash": bash, "zsh": zsh, "zsh, sourced": zshSourced, "fish": fish, "fish, sourced": fishSourced,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(shell, ",")
			script := host.Run(t, wrapper, "completion", name)
			for _, test := range []struct {
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
			} {
				got := complete(t, dirs, script, "iptables-wrapper "+test.line)
				want := slices.Sorted(slices.Values(test.want))
				for i, word := range got {
					if name, value, ok := strings.Cut(word, "="); ok && value != "" {
						word = value
					} else {
						word = name
					}
					got[i] = strings.TrimSuffix(word, "/")
				}
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

// typed types a line into an interactive shell, in a directory, and then a key that puts in all completions at once. There,
// the program's name is that of a function that writes its arguments to a file.
func typed(t *testing.T, dir, line string, shell ...string) []string {
	t.Helper()
	result := filepath.Join(t.TempDir(), "result")
	cmd := exec.Command(shell[0], shell[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RESULT="+result, "TERM=dumb")
	cmd.Stdin = strings.NewReader(line + "\x18a\nexit\n")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	words, err := os.ReadFile(result)
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	// The last word, if it was begun, is put in again by each completion, and stays as it is if there is none.
	end := strings.LastIndexByte(line, ' ') + 1
	before, begun := strings.Fields(line[:end])[1:], line[end:]
	after := strings.Fields(string(words))
	if len(after) < len(before) || !slices.Equal(after[:len(before)], before) {
		t.Fatalf("%s: typed %q, got %q\n%s", cmd, line, after, output)
	}
	if after = after[len(before):]; slices.Equal(after, []string{begun}) {
		return nil
	}
	return after
}

const recorder = `iptables-wrapper() { printf '%s\n' "$@" >"$RESULT"; }`

func bash(t *testing.T, dir, script, line string) []string {
	rc := write(t, t.TempDir(), "bashrc", recorder, script, `bind '"\C-xa": insert-completions'`)
	return typed(t, dir, line, "bash", "--noprofile", "--rcfile", rc, "-i")
}

func zsh(t *testing.T, dir, script, line string) []string {
	functions := t.TempDir()
	write(t, functions, "_iptables-wrapper", script)
	return typedZsh(t, dir, line, "fpath=("+functions+" $fpath); autoload -Uz compinit; compinit -D -u")
}

func zshSourced(t *testing.T, dir, script, line string) []string {
	return typedZsh(t, dir, line, "autoload -Uz compinit; compinit -D -u", script)
}

func typedZsh(t *testing.T, dir, line string, setup ...string) []string {
	needs(t, "zsh")
	rc := write(t, t.TempDir(), ".zshrc", append(setup, recorder, `
zle -C all-matches complete-word _generic
bindkey '^Xa' all-matches
zstyle ':completion:all-matches:*' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert true
`)...)
	// It edits lines on a terminal only.
	return typed(t, dir, line, "env", "ZDOTDIR="+filepath.Dir(rc), "script", "-qec", "zsh -i", "/dev/null")
}

func fish(t *testing.T, dir, script, line string) []string {
	config := t.TempDir()
	write(t, filepath.Join(config, "fish/completions"), "iptables-wrapper.fish", script)
	return askedFish(t, dir, config, line)
}

func fishSourced(t *testing.T, dir, script, line string) []string {
	config := t.TempDir()
	write(t, filepath.Join(config, "fish"), "config.fish", script)
	return askedFish(t, dir, config, line)
}

// askedFish has fish itself say what it would complete.
func askedFish(t *testing.T, dir, config, line string) []string {
	needs(t, "fish")
	cmd := exec.Command("fish", "--command", "function iptables-wrapper; end; complete --do-complete=$LINE")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+config, "XDG_DATA_HOME="+config, "LINE="+line)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	var words []string
	for line := range strings.Lines(string(output)) {
		word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		words = append(words, word)
	}
	return words
}

func needs(t *testing.T, program string) {
	if _, err := exec.LookPath(program); err != nil {
		host.Cannot(t, "run %s: it is not installed; make test installs it", program)
	}
}

func write(t *testing.T, dir, name string, parts ...string) string {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(strings.Join(parts, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
