// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Completion scripts hold every word that the command line knows, taken from the cli.App, so that a shell needs no call
// of this program to complete one.

// choice is a flag that takes one of some words, or its default.
type choice struct {
	*cli.StringFlag
	words []string
}

func (f *choice) check(c *cli.Context) error {
	if value := c.String(f.Name); value != f.Value && !slices.Contains(f.words, value) {
		return usageError{fmt.Errorf("%s: %s %q is none of %s", c.Command.Name, f.Name, value, strings.Join(f.words, ", "))}
	}
	return nil
}

// command is what a shell needs to know of one. The first is the program itself; its arguments are the others.
type command struct {
	name, usage string
	arguments   []string
	flags       []flagWords
}

type flagWords struct {
	names   []string // with their dashes
	usage   string
	operand string // what it takes, "" if nothing
	values  []string
	path    path
}

// path is what an operand may be the path of.
type path int

const (
	noPath path = iota
	file
	directory
)

func printCompletion(c *cli.Context, stdout io.Writer) error {
	if !c.Args().Present() {
		return usageError{fmt.Errorf("completion: missing shell: %s", strings.Join(arguments(c.Command), ", "))}
	}
	commands := []command{{flags: allFlags(c.App.Flags)}}
	for _, c := range c.App.Commands {
		commands[0].arguments = append(commands[0].arguments, c.Name)
		commands = append(commands, command{c.Name, brief(c.Usage), arguments(c), allFlags(c.Flags)})
	}
	script := ""
	switch shell := c.Args().First(); shell {
	case "bash":
		script = bashScript(commands)
	case "zsh":
		script = zshScript(commands)
	case "fish":
		script = fishScript(commands)
	default:
		return usageError{fmt.Errorf("completion: shell %q is none of %s", shell, strings.Join(arguments(c.Command), ", "))}
	}
	_, err := io.WriteString(stdout, script)
	return err
}

// arguments are what a command may be given: its ArgsUsage is words with | between them.
func arguments(c *cli.Command) []string {
	if c.ArgsUsage == "" {
		return nil
	}
	return strings.Split(c.ArgsUsage, "|")
}

func allFlags(flags []cli.Flag) []flagWords {
	// The library adds it to a command when that runs.
	if !slices.Contains(flags, cli.HelpFlag) {
		flags = append(slices.Clip(flags), cli.HelpFlag)
	}
	var all []flagWords
	for _, f := range flags {
		var words flagWords
		for _, name := range f.Names() {
			if len(name) > 1 {
				name = "-" + name
			}
			words.names = append(words.names, "-"+name)
		}
		if f, ok := f.(cli.DocGenerationFlag); ok {
			words.usage = brief(f.GetUsage())
			if f.TakesValue() {
				words.operand = "value"
			}
			if parts := strings.Split(f.GetUsage(), "`"); len(parts) == 3 {
				words.operand = parts[1]
			}
		}
		switch f := f.(type) {
		case *choice:
			words.values = f.words
		case *cli.PathFlag: // here, always a directory
			words.path = directory
		case *cli.StringFlag:
			if f.TakesFile {
				words.path = file
			}
		}
		all = append(all, words)
	}
	return all
}

// brief is the part of a usage that a list has room for.
func brief(usage string) string {
	for _, end := range []string{"\n", " (", ": ", "; "} {
		usage, _, _ = strings.Cut(usage, end)
	}
	return strings.ReplaceAll(usage, "`", "")
}

func bashScript(commands []command) string {
	var b strings.Builder
	b.WriteString(`# Completion of iptables-wrapper for bash, as "iptables-wrapper completion bash" writes it.
_iptables_wrapper() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= flags= words=
	COMPREPLY=()
	# The = of --flag=value is a word to bash.
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	((COMP_CWORD == 1)) || command=${COMP_WORDS[1]}
	case $command in
`)
	for _, c := range commands {
		fmt.Fprintf(&b, "\t%s)\n\t\tcase $prev in\n", quote(c.name))
		var names []string
		for _, f := range c.flags {
			names = append(names, f.names...)
			if f.operand == "" {
				continue
			}
			complete := ""
			switch {
			case f.values != nil:
				complete = "COMPREPLY=($(compgen -W " + quote(strings.Join(f.values, " ")) + " -- \"$cur\")); "
			case f.path == file:
				complete = "compopt -o default; "
			case f.path == directory:
				complete = "compopt -o dirnames; "
			}
			fmt.Fprintf(&b, "\t\t%s) %sreturn ;;\n", strings.Join(f.names, " | "), complete)
		}
		fmt.Fprintf(&b, "\t\tesac\n\t\tflags=%s words=%s\n\t\t;;\n", quote(strings.Join(names, " ")), quote(strings.Join(c.arguments, " ")))
	}
	b.WriteString(`	esac
	[[ $cur != -* && $words ]] || words=$flags
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _iptables_wrapper iptables-wrapper
`)
	return b.String()
}

func zshScript(commands []command) string {
	var b strings.Builder
	b.WriteString(`#compdef iptables-wrapper
# Completion of iptables-wrapper for zsh, as "iptables-wrapper completion zsh" writes it.
_iptables-wrapper() {
	local curcontext=$curcontext state line
	local -A opt_args
`)
	for _, c := range commands {
		if c.name == "" {
			fmt.Fprintf(&b, "\t_arguments -C%s \\\n\t\t'1: :->command' '*:: :->rest'\n", zshFlags(c, "\t\t"))
			b.WriteString("\tcase $state in\n\tcommand)\n\t\tlocal -a commands=(\n")
			for _, c := range commands[1:] {
				fmt.Fprintf(&b, "\t\t\t%s\n", quote(c.name+":"+escape(c.usage, `\:`)))
			}
			b.WriteString("\t\t)\n\t\t_describe -t commands command commands\n\t\t;;\n\trest)\n\t\tcase $words[1] in\n")
			continue
		}
		fmt.Fprintf(&b, "\t\t%s)\n\t\t\t_arguments%s", c.name, zshFlags(c, "\t\t\t\t"))
		if c.arguments != nil {
			fmt.Fprintf(&b, " \\\n\t\t\t\t%s", quote("1: :("+strings.Join(c.arguments, " ")+")"))
		}
		b.WriteString("\n\t\t\t;;\n")
	}
	// Found in fpath, this file is the function's body; read by source, it must say whose function it is.
	b.WriteString(`		esac
		;;
	esac
}
if [[ $funcstack[1] == _iptables-wrapper ]]; then
	_iptables-wrapper "$@"
else
	compdef _iptables-wrapper iptables-wrapper
fi
`)
	return b.String()
}

// zshFlags are the flags of a command as _arguments wants them, a line each.
func zshFlags(c command, indent string) string {
	var b strings.Builder
	for _, f := range c.flags {
		for _, name := range f.names {
			spec := "(" + strings.Join(f.names, " ") + ")" + name
			if f.operand != "" && strings.HasPrefix(name, "--") {
				spec += "="
			}
			spec += "[" + escape(f.usage, `\:[]`) + "]"
			if f.operand != "" {
				spec += ":" + f.operand + ":"
				switch {
				case f.values != nil:
					spec += "(" + strings.Join(f.values, " ") + ")"
				case f.path == file:
					spec += "_files"
				case f.path == directory:
					spec += "_files -/"
				default:
					spec += " "
				}
			}
			fmt.Fprintf(&b, " \\\n%s%s", indent, quote(spec))
		}
	}
	return b.String()
}

func fishScript(commands []command) string {
	var b strings.Builder
	b.WriteString(`# Completion of iptables-wrapper for fish, as "iptables-wrapper completion fish" writes it.
function __iptables_wrapper_command
	set -l words (commandline -opc)
	test "$words[2]" = "$argv[1]"
end
complete -c iptables-wrapper -f
`)
	usages := make(map[string]string)
	for _, c := range commands {
		usages[c.name] = c.usage
	}
	for _, c := range commands {
		line := func(format string, args ...any) {
			fmt.Fprintf(&b, "complete -c iptables-wrapper -n %s", quoteFish("__iptables_wrapper_command '"+c.name+"'"))
			fmt.Fprintf(&b, format+"\n", args...)
		}
		for _, argument := range c.arguments {
			usage := ""
			if c.name == "" {
				usage = " -d " + quoteFish(usages[argument])
			}
			line(" -a %s%s", argument, usage)
		}
		for _, f := range c.flags {
			words := ""
			for _, name := range f.names {
				if long, ok := strings.CutPrefix(name, "--"); ok {
					words += " -l " + long
				} else {
					words += " -s " + name[1:]
				}
			}
			switch {
			case f.values != nil:
				words += " -x -a " + quoteFish(strings.Join(f.values, " "))
			case f.path == file:
				words += " -r -F"
			case f.path == directory:
				words += " -x -a '(__fish_complete_directories)'"
			case f.operand != "":
				words += " -x"
			}
			line("%s -d %s", words, quoteFish(f.usage))
		}
	}
	return b.String()
}

// quote is for bash and zsh.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quoteFish(s string) string { return "'" + escape(s, `\'`) + "'" }

// escape puts a backslash before each of some characters.
func escape(s, special string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(special, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
