// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/test/oracle"
)

// A violation is a broken promise.
type violation struct {
	text string
	at   int // which event
}

func broken(format string, args ...any) *violation {
	return &violation{text: fmt.Sprintf(format, args...)}
}

// A player is a history on its way: what the oracle knows, and the container.
type player struct {
	world *world
	kept  oracle.Container
	life  *life
}

// play does one event and compares what is seen with what the oracle says.
func (p *player) play(e event) (*violation, error) {
	r, err := p.life.do(e.text())
	if err != nil {
		return nil, err
	}
	after, wrong := p.life.kept()
	switch {
	case wrong != "":
		return broken("%s", wrong), nil
	case e.class == onHost && r.status != 0:
		return nil, fmt.Errorf("%s: %+v", e.text(), r)
	case e.class == onHost:
		e.change(p.world, e)
		return nil, nil
	case e.class >= detects:
		return p.command(e, r, after), nil
	case e.class == disturbed:
		return p.disturbed(e, after)
	case e.class == meanwhile:
		return p.meanwhile(e, r, after)
	}
	return p.call(e, r, after)
}

// call is an undisturbed one: what runs and what is kept is what the oracle says.
func (p *player) call(e event, r result, after oracle.Container) (*violation, error) {
	caller := oracle.Call{
		Root:      !e.user,
		Failed:    e.user || e.class == powerless,
		OwnMounts: e.class == apart,
		Locked:    e.class == locked,
	}
	if e.class == overrides {
		caller.Variable = e.backend
	}
	h := p.world.seen(e.user)
	if e.class == powerless {
		h = &oracle.Host{NFT: oracle.Backend{InKernel: oracle.Unknown}, Legacy: oracle.Backend{InKernel: oracle.Yes},
			TakesRules: oracle.Unknown}
	}
	runs, next := p.kept.Run(h, caller)
	if after != next {
		return broken("%s: kept %+v, and it should be %+v", e.text(), after, next), nil
	}
	p.kept = after
	if runs == "" {
		if r.status != 127 || !strings.HasPrefix(r.said(), "iptables-wrapper: ") && p.kept.Switch == "" {
			return broken("%s: %+v, and its program is missing", e.text(), r), nil
		}
		return nil, nil
	}
	if own := r.said(); own != "" {
		return broken("on stderr: %s", own), nil
	}
	mayFail := e.class == refused || e.class == powerless
	switch {
	case mayFail && r.status == 0:
		return broken("%s: status 0", e.text()), nil
	case mayFail:
		return nil, nil
	case r.status != 0 && e.user && strings.HasSuffix(e.command, "-save"):
		return nil, nil // iptables-legacy-save may not list the tables
	case r.status != 0:
		return broken("%s: %+v", e.text(), r), nil
	}
	ran, err := p.ran(e, r, runs)
	if err != nil {
		return nil, err
	}
	if ran != runs {
		return broken("%s: %s ran, and it should be %s", e.text(), ran, runs), nil
	}
	e.backend = ran
	e.change(p.world, e)
	return nil, nil
}

// ran is the backend that a call ran, by its output or by where its rule is; where neither shows it, the one that is
// due, because the switch and the record are as they should be.
func (p *player) ran(e event, r result, due string) (string, error) {
	switch {
	case r.backend() != "":
		return r.backend(), nil
	case !strings.Contains(e.command, "INPUT -j ACCEPT -s") && !strings.HasPrefix(e.command, "together"):
		return due, nil
	}
	for _, backend := range []string{due, oracle.Other(due)} {
		found, err := p.rulesOf(e, backend)
		if err != nil || found > 0 {
			return backend, err
		}
	}
	return "neither backend", nil
}

// rulesOf returns how many of an event's rules are in a backend.
func (p *player) rulesOf(e event, backend string) (int, error) {
	saved, err := p.life.do(e.tables() + "-" + backend + "-save -t filter 2>/dev/null")
	return strings.Count(saved.stdout, "-s "+e.prefix()), err
}

// disturbed is a call of which much may become. But nothing is kept that it would not keep undisturbed.
func (p *player) disturbed(e event, after oracle.Container) (*violation, error) {
	before := p.kept
	_, whole := before.Run(p.world.seen(false), oracle.Call{Root: true})
	if after.Switch != before.Switch && after.Switch != whole.Switch ||
		after.Record != before.Record && after.Record != whole.Record {
		return broken("%s: kept %+v, was %+v, and would be %+v undisturbed", e.text(), after, before, whole), nil
	}
	p.kept = after
	for backend := range p.world.rules {
		found, err := p.rulesOf(e, backend)
		if err != nil {
			return nil, err
		}
		p.world.rules[backend][e.family] += found
	}
	return nil, nil
}

// meanwhile are calls at once, while a host's rules arrive. If anything can be kept, they are in one backend.
func (p *player) meanwhile(e event, r result, after oracle.Container) (*violation, error) {
	root := oracle.Call{Root: true}
	before, early := p.kept.Run(p.world.seen(false), root)
	p.world.rules[e.backend][oracle.IPv4] += 6
	later, late := p.kept.Run(p.world.seen(false), root)
	found := map[string]int{}
	for backend := range p.world.rules {
		number, err := p.rulesOf(e, backend)
		if err != nil {
			return nil, err
		}
		found[backend] = number
		p.world.rules[backend][e.family] += number
		if number > 0 && backend != before && backend != later {
			return broken("%s: %s ran, and it should be %q or %q", e.text(), backend, before, later), nil
		}
	}
	p.kept = after
	steady := after.Switch != "" || after.OwnDev
	switch {
	case r.status != 0 && before != "":
		return broken("%s: %+v", e.text(), r), nil
	case steady && found[oracle.NFT] > 0 && found[oracle.Legacy] > 0:
		return broken("%s: the rules are in both backends: %v", e.text(), found), nil
	case after != early && after != late:
		return broken("%s: kept %+v, and it should be %+v or %+v", e.text(), after, early, late), nil
	case after.Record != early.Record && after.Record != "" && found[after.Record] == 0:
		return broken("%s: %q is recorded, and the rules are %v", e.text(), after.Record, found), nil
	}
	return nil, nil
}

// command is one that somebody types.
func (p *player) command(e event, r result, after oracle.Container) *violation {
	h := p.world.seen(false)
	d := oracle.Decide(h, "")
	ok, want := true, p.kept
	switch e.class {
	case detects:
		ok = d.Certain
	case selects:
		ok, want = p.kept.Select(h, "", e.strict())
		d.Backend = want.Switch
	case selectsBackend:
		ok, want = p.kept.Select(h, e.backend, false)
		d.Backend = want.Switch
	case resets:
		ok, want = p.kept.Reset()
	}
	words := strings.Fields(r.stdout) // the backend is the only one, or the last
	switch {
	case after != want || ok != (r.status == 0):
		return broken("%s: %+v: kept %+v, and it should be %+v", e.text(), r, after, want)
	case (e.class == detects || ok && e.class != resets) && words[len(words)-1] != d.Backend:
		return broken("%s: prints %q, and the answer is %+v", e.text(), words, d)
	}
	p.kept = after
	return nil
}
