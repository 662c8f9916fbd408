// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func completionCommand() *cli.Command {
	scripts := map[string]func(*cli.App) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a completion script for a shell",
		Description: "Example:\n\n   source <(iptables-wrapper completion bash)",
		ArgsUsage:   "bash|zsh|fish",
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return usagef(c, "missing shell: one of bash, zsh, fish")
			}
			script := scripts[c.Args().First()]
			if script == nil {
				return usagef(c, "shell %q is not one of bash, zsh, fish", c.Args().First())
			}
			fmt.Fprint(c.App.Writer, script(c.App))
			return nil
		},
	}
}

// bashScript holds every word, so that a shell need not call the wrapper to complete one. $prev is the flag whose value
// is completed: to bash, the = of --flag=value is a word of its own; to zsh, all of it is one word.
func bashScript(app *cli.App) string {
	var options, flags strings.Builder
	fmt.Fprintf(&flags, "\t'') words='%s' ;;\n", strings.Join(dashed(app.Flags...), " "))
	for _, c := range app.Commands {
		fmt.Fprintf(&flags, "\t%s) words='%s' ;;\n", c.Name, strings.Join(dashed(c.Flags...), " "))
		for _, f := range c.Flags {
			if compgen, _ := values(f); compgen != "" {
				pattern := c.Name + " " + strings.Join(dashed(f), "\" | \""+c.Name+" ")
				fmt.Fprintf(&options, "\t\"%s\") generate %s; return ;;\n", pattern, compgen)
			}
		}
	}
	return fmt.Sprintf(bashTemplate, options.String(), flags.String(), strings.Join(commandNames(app), " "))
}

const bashTemplate = `_iptables_wrapper() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= before=
	generate() { COMPREPLY=($(compgen -P "$before" "$@" -- "$cur")); }
	COMPREPLY=()
	case $prev$cur in
	*--*=*) before=${cur%%%%=*}= prev=${cur%%%%=*} cur=${cur#*=} ;;
	*=) cur= ;;
	=*) prev=${COMP_WORDS[COMP_CWORD-2]} ;;
	esac
	((COMP_CWORD == 1)) || command=${COMP_WORDS[1]}
	case "$command $prev" in
%s	esac
	case $command in
%s	esac
	[[ $cur == -* ]] || case $command in
	'' | help) words='%s' ;;
	completion) words='bash zsh fish' ;;
	esac
	generate -W "$words"
}
complete -F _iptables_wrapper iptables-wrapper
`

// zshScript has zsh's bashcompinit run the same script.
func zshScript(app *cli.App) string {
	return "#compdef iptables-wrapper\nautoload -Uz bashcompinit && bashcompinit\n" + bashScript(app) +
		// Found in fpath, the script is the body of a function that has just been called.
		"[[ $funcstack[1] != _iptables-wrapper ]] || _bash_complete -F _iptables_wrapper\n"
}

// fishScript is the library's, which knows all commands and flags, with the values of flags added.
func fishScript(app *cli.App) string {
	script, _ := app.ToFishCompletion() // fails only if its own template is wrong
	script += "complete -c iptables-wrapper -f\n"
	for _, c := range app.Commands {
		for _, f := range c.Flags {
			if _, options := values(f); options != "" {
				script += fmt.Sprintf("complete -c iptables-wrapper -n '__fish_seen_subcommand_from %s' -l %s%s %s\n",
					c.Name, f.Names()[0], strings.Repeat(" -s o", len(f.Names())-1), options)
			}
		}
	}
	return script + "complete -c iptables-wrapper -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n"
}

// values says how bash's compgen and fish's complete find the values of a flag.
func values(f cli.Flag) (compgen, fish string) {
	switch f := f.(type) {
	case *cli.BoolFlag:
		return "", ""
	case *enum:
		words := "'" + strings.Join(f.words, " ") + "'"
		return "-W " + words, "-x -a " + words
	case *cli.PathFlag:
		if f.TakesFile {
			return "-f", "-r -F"
		}
		return "-d", "-x -a '(__fish_complete_directories)'"
	}
	return "-W ''", ""
}

// dashed lists flags as they are typed.
func dashed(flags ...cli.Flag) []string {
	var words []string
	for _, f := range flags {
		for _, name := range f.Names() {
			words = append(words, strings.Repeat("-", min(2, len(name)))+name)
		}
	}
	return words
}
