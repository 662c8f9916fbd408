// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

const description = `Called as iptables, iptables-save, iptables-restore, or one of their ip6tables counterparts, it
detects which backend the host uses, legacy or nft, and replaces itself with that program.`

// appHelp is the library's template with three sections more.
const appHelp = `NAME:
   {{.Name}} - {{.Usage}}

USAGE:
   {{.Name}} COMMAND [options]

DESCRIPTION:
   {{wrap .Description 3}}

COMMANDS:{{range .VisibleCommands}}
   {{printf "%-11s" .Name}} {{.Usage}}{{end}}

OPTIONS:{{range .VisibleFlags}}
   {{.}}{{end}}

ENVIRONMENT:
   IPTABLES_WRAPPER_MODE     nft or legacy: use that backend, whatever the host uses; auto: detect it
   IPTABLES_WRAPPER_DEBUG    1: for each iptables call, print the mode and the reason to stderr
   XTABLES_LOCKFILE          iptables-legacy's lock, /run/xtables.lock by default; doctor checks it
   NO_COLOR, TERM=dumb       detect and doctor print no colours

EXIT STATUS:
   0    success
   1    failure; doctor: a problem was found
   2    wrong usage
   3    select, detect --strict: the answer is not conclusive
   127  an iptables call: no program for the host's backend is installed

EXAMPLES:
   COPY iptables-wrapper /usr/sbin/      in an image, after iptables was installed
   RUN iptables-wrapper install

   iptables-wrapper doctor               in a container whose rules have no effect
`
