// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func (s *session) completionCommand() *cli.Command {
	const name = "completion"
	return &cli.Command{
		Name:        name,
		Usage:       "print a completion script for a shell",
		Description: "Example:\n\n   source <(iptables-wrapper completion bash)",
		ArgsUsage:   strings.Join(enums[name], "|"),
		Action: func(c *cli.Context) error {
			var script string
			var err error
			switch shell := c.Args().First(); {
			case !c.Args().Present():
				return usagef(name, "missing shell: %s", strings.Join(enums[name], ", "))
			case shell == "bash":
				script = bashScript(c.App)
			case shell == "zsh": // its bashcompinit runs the same script
				script = "#compdef iptables-wrapper\nautoload -Uz bashcompinit && bashcompinit\n" + bashScript(c.App)
			case shell == "fish":
				script, err = fishScript(c.App)
			default:
				return usagef(name, "shell %q is not one of %s", shell, strings.Join(enums[name], ", "))
			}
			if err == nil {
				_, err = io.WriteString(s.stdout, script)
			}
			return err
		},
	}
}

// bashScript holds every word, so that a shell need not call the wrapper to complete one. $prev is the flag whose value
// is completed; to bash, the = of --flag=value is a word of its own.
func bashScript(app *cli.App) string {
	var flags, values strings.Builder
	var names []string
	fmt.Fprintf(&flags, "\t'') words='--help %s' ;;\n", strings.Join(dashed(app.Flags...), " "))
	for _, c := range app.Commands {
		names = append(names, c.Name)
		fmt.Fprintf(&flags, "\t%s) words='--help %s' ;;\n", c.Name, strings.Join(dashed(c.Flags...), " "))
		for _, f := range c.Flags {
			long := "--" + f.Names()[0]
			pattern := c.Name + " " + strings.Join(dashed(f), "\" | \""+c.Name+" ")
			switch words := enums[c.Name+" "+f.Names()[0]]; f.(type) {
			case *cli.BoolFlag:
			case *cli.PathFlag:
				fmt.Fprintf(&values, "\t%q) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", c.Name+" "+long)
			default:
				fmt.Fprintf(&values, "\t\"%s\") COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", pattern, strings.Join(words, " "))
			}
		}
	}
	return fmt.Sprintf(bashTemplate, values.String(), flags.String(), strings.Join(names, " "), strings.Join(enums["completion"], " "))
}

const bashTemplate = `_iptables_wrapper() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words=
	COMPREPLY=()
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	((COMP_CWORD == 1)) || command=${COMP_WORDS[1]}
	case "$command $prev" in
%s	esac
	case $command in
%s	esac
	[[ $cur == -* ]] || case $command in
	'' | help) words='%s' ;;
	completion) words='%s' ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _iptables_wrapper iptables-wrapper
`

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

// fishScript is the library's, which knows all commands and flags, with the values of flags added.
func fishScript(app *cli.App) (string, error) {
	script, err := app.ToFishCompletion()
	for _, c := range app.Commands {
		for _, f := range c.Flags {
			if words := enums[c.Name+" "+f.Names()[0]]; words != nil {
				script += fmt.Sprintf("complete -c %s -n '__fish_seen_subcommand_from %s' -l %s -x -a '%s'\n", app.Name, c.Name, f.Names()[0], strings.Join(words, " "))
			}
		}
		if words := enums[c.Name]; words != nil {
			script += fmt.Sprintf("complete -c %s -n '__fish_seen_subcommand_from %s' -x -a '%s'\n", app.Name, c.Name, strings.Join(words, " "))
		}
	}
	return script, err
}
