// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strconv"

	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
)

// backendRules are about iptables here not being what the host uses, the root cause first.
func (r *Report) backendRules() []rule {
	now := r.Here
	restored := r.restore(r.movable(), "run:\niptables-wrapper reset{dir}")
	mended := restored
	if r.neverWrapped() || r.notOurs != nil {
		mended = r.putBehind()
	}
	unless := ""
	if r.notOurs != nil {
		unless = ". Leave it if it runs the host's own iptables, as by nsenter or chroot"
	}
	variableSeverity := Warning // the wrapper does not run
	if now.How == here.EachCall || now.How == here.Remembered {
		variableSeverity = Problem
	}
	return []rule{
		{
			code:     "bad-variable",
			severity: variableSeverity,
			detail:   when(r.badVariable != "" && !r.distrusted, strconv.Quote(r.badVariable)),
			text:     "{variable} is {}, so each call that the wrapper runs fails",
			fixes:    only(Pod, "set {variable} to nft or legacy, or remove it"),
		},
		{
			code:     "misnamed",
			severity: Problem,
			detail:   when(r.misnamed, now.Program),
			text:     "{} runs the wrapper under a name that is none of the six commands, so calls fail",
			fixes:    only(Image, buildWith+" --force"),
		},
		{
			code:     "families-differ",
			severity: Problem,
			detail:   r.splitFamilies(),
			text:     "the host uses {}, but the commands of a container have one backend for both",
			fixes: only(Node, "have iptables and ip6tables use the same backend, and restart kubelet:\n"+
				"update-alternatives --set iptables /usr/sbin/iptables-{host}\n"+
				"update-alternatives --set ip6tables /usr/sbin/ip6tables-{host}"),
		},
		{
			code:     "two-backends",
			severity: Problem,
			detail:   r.mixed(),
			text:     "some iptables commands run nft and others legacy: {}",
			fixes:    mended,
		},
		{
			code:     "wrong-variable",
			severity: Problem,
			detail:   r.differsBy(here.Variable),
			text:     "{variable} is {here}, but the host uses {host} ({because})",
			fixes:    only(Pod, unset),
		},
		{
			code:     "wrong-backend-stored",
			severity: Problem,
			detail:   r.differsBy(here.Switch),
			text:     differs,
			fixes:    restored,
		},
		{
			code:     "wrong-backend-remembered",
			severity: Problem,
			detail:   r.differsBy(here.Remembered),
			text:     differs + " This container remembers {here} from an earlier call",
			fixes: fixes{
				{
					r.resettable(), Container,
					"run this, then restart the program that writes rules:\niptables-wrapper reset{dir}",
				},
				{always, podItself, renew},
			},
		},
		{
			code:     "wrong-backend-not-wrapped",
			severity: Problem,
			detail:   r.differsBy(here.NotWrapped),
			text:     differs + " {program} was never put behind the wrapper",
			fixes:    r.putBehind(),
		},
		{
			code:     "not-wrapped",
			severity: Warning,
			detail:   when(now.How == here.NotWrapped, now.Program),
			text: "iptables here is always {}, whatever the host uses: it was never put behind the wrapper" +
				unless,
			fixes: r.putBehind(),
		},
		{
			code:     "idle-variable",
			severity: Warning,
			detail:   when(r.idleVariable(), r.Variable),
			text:     "{variable}={} has no effect: iptables already resolves to {program}",
			fixes: fixes{
				{r.Host.Conclusive && now.Backend == r.Host.Mode, Pod, unset},
				{r.unusable() || !r.movable(), Pod, unset},
				{always, Container, runSelect + "{}"},
			},
		},
	}
}

// restore has the switch changed where it was made, or in this container by a command, if that is possible.
func (r *Report) restore(possible bool, inContainer string) fixes {
	build := "reset{dir}"
	if r.notOurs != nil {
		build = "install{dir} --force"
	}
	refillPlace := podItself
	refill := "delete the Pod, so that this volume is filled again"
	if r.Variable != "" && r.Variable == r.Here.Backend {
		refillPlace = Pod
		refill = "remove {variable}, and " + refill
	}
	return fixes{
		{r.inImage, Image, "add, as root:\nRUN iptables-wrapper " + build},
		{possible, Container, inContainer},
		{r.inVolume, refillPlace, refill},
		{always, podItself, renew},
	}
}

// putBehind puts the wrapper in front of the iptables here. To replace somebody's own program, or a broken one, needs
// force.
func (r *Report) putBehind() fixes {
	force := ""
	if r.Names[0].Mode == "" || r.Here.How == here.Missing || r.notOurs != nil {
		force = " --force"
	}
	return fixes{
		{r.exposed, Pod, leaveOut},
		{r.unusable(), Image, buildBoth + force},
		{always, Image, buildWith + force},
	}
}
