// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"slices"
	"strings"
)

// A violation is a broken promise.
type violation struct {
	text string
	at   int // which event
}

func broken(format string, args ...any) *violation {
	return &violation{text: fmt.Sprintf(format, args...)}
}

// A player is a history on its way: the model, and the container.
type player struct {
	place
	host   host
	stored stored
	life   *life
}

// play does one event and compares what is seen with what the model says.
func (p *player) play(e event) (*violation, error) {
	r, err := p.life.do(e.text())
	if err != nil {
		return nil, err
	}
	after, wrong := p.life.stored()
	switch {
	case wrong != "":
		return broken("%s", wrong), nil
	case e.class == onHost && r.status != 0:
		return nil, fmt.Errorf("%s: %+v", e.text(), r)
	case e.class == onHost:
		e.change(p.host, e)
		return nil, nil
	case e.class >= detects:
		return p.command(e, r, after), nil
	case e.class == meanwhile || e.class == disturbed:
		return p.disturbed(e, r, after)
	}
	return p.call(e, r, after)
}

// call is an undisturbed one: what runs and what is stored is what the model says.
func (p *player) call(e event, r result, after stored) (*violation, error) {
	adding := e.class >= adds
	runs, next := p.keep(p.host, p.stored, adding, adding || e.class == changes, e.class == held)
	may := []string{runs}
	switch {
	case e.class == overrides:
		runs, next = e.mode, p.stored
		may = []string{runs}
		if p.stored.sw != "" {
			may = []string{p.stored.sw}
		}
	case e.user:
		next = p.stored
		may = p.seenByUser()
	}
	if after != next {
		return broken("%s: stored %+v, and it should be %+v", e.text(), after, next), nil
	}
	p.stored = after
	if own := p.said(r); own != "" {
		return broken("on stderr: %s", own), nil
	}
	if e.class == refused {
		if r.status == 0 {
			return broken("%s: status 0", e.text()), nil
		}
		return nil, nil
	}
	if r.status != 0 && e.user && e.class == reads {
		return nil, nil // iptables-legacy-save may not list the tables
	}
	if r.status != 0 {
		return broken("%s: %+v", e.text(), r), nil
	}
	ran, err := p.ran(e, r, may)
	if err != nil || ran == "" {
		return nil, err
	}
	if !slices.Contains(may, ran) {
		return broken("%s: %s ran, and it should be one of %q", e.text(), ran, may), nil
	}
	if e.change != nil {
		e.mode = ran
		e.change(p.host, e)
	}
	return nil, nil
}

// seenByUser is what another user's call may run: it cannot list legacy's tables, and reads root's memory.
func (p *player) seenByUser() []string {
	nft := *p.host["nft"]
	switch {
	case p.stored.sw != "":
		return []string{p.stored.sw}
	case nft.has(nft.hint):
		return []string{"nft"}
	case p.stored.memory.mode != "":
		return []string{p.stored.memory.mode, "nft"}[:1+btoi(nft.has(nft.canary))]
	}
	return []string{"nft"}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// said is what the wrapper has printed on standard error, or what iptables has where all is well.
func (p *player) said(r result) string {
	for line := range strings.Lines(r.stderr) {
		if strings.HasPrefix(line, "iptables-wrapper: ") || r.status == 0 && !strings.HasPrefix(line, "# Warning: ip") {
			return line
		}
	}
	return ""
}

// ran is the backend that a call ran, by its output or by where its rule is; "" if that cannot be known.
func (p *player) ran(e event, r result, may []string) (string, error) {
	if r.backend() != "" || e.class == reads {
		return r.backend(), nil
	}
	if !strings.Contains(e.command, "INPUT") {
		return may[0], nil // the switch and the memory were as the model says
	}
	for _, mode := range append(slices.Clone(may), other[may[0]]) {
		saved, err := p.life.do(e.tables() + "-" + mode + "-save -t filter")
		if err != nil {
			return "", err
		}
		if strings.Contains(saved.stdout, "-s "+e.prefix()+"1/") {
			return mode, nil
		}
	}
	return "neither backend", nil
}

// disturbed is a call of which much may become, but not everything.
func (p *player) disturbed(e event, r result, after stored) (*violation, error) {
	before := p.stored
	d, _ := p.host.decide(before.memory)
	p.stored = after
	struck := e.class == disturbed
	if struck {
		switch {
		case after.sw != before.sw && (after.sw != d.mode || !d.certain):
			return broken("%s: the switch is at %q, and the answer is %+v", e.text(), after.sw, d), nil
		case after.memory != before.memory && before.memory.certain && after.memory != d:
			return broken("%s: the memory is %+v, and was %+v", e.text(), after.memory, before.memory), nil
		case after.memory.certain && after.memory != before.memory && (after.memory.mode != d.mode || !d.certain):
			return broken("%s: the memory is %+v, and the answer %+v", e.text(), after.memory, d), nil
		}
	} else {
		p.host[e.mode].rules[0] += 6
		if r.status != 0 {
			return broken("%s: %+v", e.text(), r), nil
		}
	}
	// Where the rules are now.
	found := map[string]int{}
	for mode := range other {
		saved, err := p.life.do(e.tables() + "-" + mode + "-save -t filter 2>/dev/null")
		if err != nil {
			return nil, err
		}
		found[mode] = strings.Count(saved.stdout, "-s "+e.prefix())
		p.host[mode].rules[e.family] += found[mode]
	}
	if !struck && p.remembers() && found["nft"] > 0 && found["legacy"] > 0 {
		return broken("%s: the rules are in both backends: %v", e.text(), found), nil
	}
	return nil, nil
}

// command is one that somebody types.
func (p *player) command(e event, r result, after stored) *violation {
	before := p.stored
	p.stored = after
	now, _ := p.host.decide(decision{})
	memory := before.memory
	switch e.class {
	case detects:
		if after != before {
			return broken("detect changes %+v to %+v", before, after)
		}
		contradicted := now.certain && memory.mode != "" && memory.mode != now.mode && !now.kubelet
		certain := (now.certain || memory.certain) && !contradicted
		if r.status == 0 && !certain || r.status != 0 && now.certain && !contradicted && memory.mode == "" {
			return broken("detect --strict: %+v; certain is %+v, remembered %+v", r, now, memory)
		}
	case selects:
		want := before
		if r.status == 0 {
			return p.selected(e, r, after, []decision{now, memory})
		}
		if after != want {
			return broken("select fails, and %+v becomes %+v", want, after)
		}
	case selectsMode:
		kubelet := p.host.kubelet()
		outranked := p.root == "ro" && kubelet.certain && kubelet.mode != e.mode
		if r.status != 0 && (!p.remembers() || outranked) {
			return nil
		}
		return p.selected(e, r, after, []decision{{mode: e.mode, certain: true}})
	case resets:
		if p.remembers() && (r.status != 0 || after != stored{}) {
			return broken("reset: %+v: %+v", r, after)
		}
	}
	return nil
}

// selected checks what a select stored that says that it did: one of the certain answers.
func (p *player) selected(e event, r result, after stored, answers []decision) *violation {
	for _, d := range answers {
		if r.status == 0 && d.certain && (!p.remembers() || after.memory.mode == d.mode) &&
			(p.root == "ro" || after.sw == d.mode) {
			return nil
		}
	}
	return broken("%s: %+v: stored %+v", e.text(), r, after)
}
