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
				script = "#compdef iptables-wrapper\nautoload -Uz bashcompinit && bashcompinit\n" + bashScript(c.App) +
					// Found in fpath, the script is the body of a function that has just been called.
					"[[ $funcstack[1] != _iptables-wrapper ]] || _bash_complete -F _iptables_wrapper\n"
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
// is completed: to bash, the = of --flag=value is a word of its own; to zsh, all of it is one word.
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
				fmt.Fprintf(&values, "\t\"%s\") generate %s; return ;;\n", pattern, map[bool]string{true: "-f", false: "-d"}[long == "--netns"])
			default:
				fmt.Fprintf(&values, "\t\"%s\") generate -W '%s'; return ;;\n", pattern, strings.Join(words, " "))
			}
		}
	}
	return fmt.Sprintf(bashTemplate, values.String(), flags.String(), strings.Join(names, " "), strings.Join(enums["completion"], " "))
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
	completion) words='%s' ;;
	esac
	generate -W "$words"
}
complete -F _iptables_wrapper iptables-wrapper
`

// dashed lists flags as they are typed, except --help, which the library adds to a command when it runs.
func dashed(flags ...cli.Flag) []string {
	var words []string
	for _, f := range flags {
		if f == cli.HelpFlag {
			continue
		}
		for _, name := range f.Names() {
			words = append(words, strings.Repeat("-", min(2, len(name)))+name)
		}
	}
	return words
}

// fishScript is the library's, which knows all commands and flags, with the values of flags added.
func fishScript(app *cli.App) (string, error) {
	script, err := app.ToFishCompletion()
	script += "complete -c iptables-wrapper -f\n"
	for _, c := range app.Commands {
		add := func(format string, args ...any) {
			script += fmt.Sprintf("complete -c iptables-wrapper -n '__fish_seen_subcommand_from "+c.Name+"' "+format+"\n", args...)
		}
		for _, f := range c.Flags {
			name := f.Names()[0]
			words := "-x -a '" + strings.Join(enums[c.Name+" "+name], " ") + "'"
			if _, ok := f.(*cli.PathFlag); ok {
				words = map[bool]string{true: "-r -F", false: "-x -a '(__fish_complete_directories)'"}[name == "netns"]
			} else if enums[c.Name+" "+name] == nil {
				continue
			}
			add("-l %s%s %s", name, strings.Repeat(" -s o", len(f.Names())-1), words)
		}
		if words := enums[c.Name]; words != nil {
			add("-a '%s'", strings.Join(words, " "))
		}
	}
	return script, err
}
