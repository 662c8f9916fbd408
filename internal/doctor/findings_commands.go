// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// commands are about files: the six commands, the wrapper and iptables' programs.
func (r *Report) commands() []rule {
	noneFound, broken := r.brokenNames()
	wrongBackend, keepBackend := r.wrongBypasses(), r.fixedBypasses()
	brokenSeverity := Warning
	if r.Here.How == here.Missing {
		brokenSeverity = Problem
	}
	return []rule{
		{
			code:     "no-commands",
			severity: Problem,
			detail:   noneFound,
			text:     "none of the six iptables commands was found: {}",
			fixes: fixes{
				{r.covered != "", Pod, "remove the volume that is mounted over " + word(r.covered)},
				{r.unusable(), Image, buildBoth},
				{always, Image, buildWith},
			},
		},
		{
			code:     "broken-command",
			severity: brokenSeverity,
			detail:   broken,
			text:     "broken: {}",
			fixes: fixes{
				{
					r.isDirectory != "", Pod,
					"remove the volume that is mounted at " + word(r.isDirectory) + ", or the directory from the image",
				},
				{r.unusable(), Image, buildBoth + " --force"},
				{always, Image, buildWith + " --force"},
			},
		},
		{
			code:     "not-in-path",
			severity: Warning,
			detail:   r.outOfPath,
			text:     "the commands are in {}, which is not in the PATH of the container's process",
			fixes:    only(Pod, "add {} to PATH"),
		},
		{
			code:     "another-path",
			severity: Warning,
			detail:   when(r.Network.Process1 != detect.No, paths(wrongBackend)),
			text:     "these paths run {other} and bypass the wrapper, but the host uses {host}: {}",
			fixes:    r.putInFront(wrongBackend),
		},
		{
			code:     "bypass",
			severity: Warning,
			detail:   paths(keepBackend),
			text:     "these paths bypass the wrapper, so they keep their backend whatever the host uses: {}",
			fixes:    r.putInFront(keepBackend),
		},
		{
			code:     "open-directory",
			severity: Warning,
			detail:   r.replaceable(),
			text:     "users other than root could replace what runs here, so doctor did not start it: {}",
			fixes: fixes{
				{r.exposed, Pod, leaveOut},
				{r.onlyFiles(), Image, "add, as root:" + giveToRoot(r.exposures())},
				{always, Image, "keep iptables in a directory that only root can change"},
			},
		},
		{
			code:     "writable-wrapper",
			severity: Warning,
			detail:   quoted(r.rewritable),
			text:     "users other than root can rewrite the wrapper, which root runs: {}",
			fixes:    only(Image, buildWith),
		},
		{
			code:     "program-unusable",
			severity: Problem,
			detail:   r.programError(r.wanted()),
			text:     "no usable iptables in this image for {}",
			fixes:    r.replacePrograms(),
		},
		{
			code:     "other-program-unusable",
			severity: Warning,
			detail:   r.programError(otherMode(r.wanted())),
			text: "on a host that uses the other backend, iptables would not run here: " +
				"no usable iptables for {}",
			fixes: r.replacePrograms(),
		},
		{
			code:     "libraries-missing",
			severity: Warning,
			detail:   strings.Join(r.unloadable, ", "),
			text:     "this image's iptables cannot load the libraries of these matches and targets: {}",
			fixes: fixes{
				{r.hidingLibraries != "", Pod, "remove " + r.hidingLibraries},
				{
					always, Image,
					"if something here uses them, install iptables again, with all files of its directory xtables",
				},
			},
		},
		{
			code:     "old-iptables",
			severity: Warning,
			detail:   when(r.wanted() == detect.NFT, r.losesRules()),
			text: "{} loses parts of rules made by version 1.8.8 or newer when it writes their table: " +
				"a DROP with a condition can become a DROP without one",
			fixes: only(Image, "install iptables 1.8.8 or newer"),
		},
		{
			code:     "file-capabilities-differ",
			severity: Warning,
			detail:   when(r.has(netAdmin) || r.wrapperCaps, strings.Join(r.fileCaps, ", ")),
			text:     "file capabilities differ from those of the wrapper's file: {}",
			fixes:    only(Image, r.setCapabilities()),
		},
	}
}

// replacePrograms puts programs into the image that work, unless something else keeps the present ones from working.
func (r *Report) replacePrograms() fixes {
	return fixes{
		{r.libraries != "", Pod, "remove " + r.libraries},
		{r.noexec != "", Pod, "mount the file system of " + word(r.noexec) + " without the option noexec"},
		{always, Image, bothModes},
	}
}

// setCapabilities gives both programs and the wrapper the same file capabilities. setcap wants them for each file.
func (r *Report) setCapabilities() string {
	command := "setcap"
	for _, p := range r.Programs {
		command += " cap_net_admin,cap_net_raw+ep " + word(p.Path)
	}
	return "add, as root:\nRUN " + command + "\nRUN iptables-wrapper install{dir}"
}
