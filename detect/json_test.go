// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// An error is its text in JSON, and a number of rules says what is known of it.
func TestJSON(t *testing.T) {
	e := detect.Evidence{Rules: detect.Count{Min: 2, Max: detect.Unbounded}}
	text, err := json.Marshal(e)
	if want := `"rules":{"min":2}`; err != nil || !strings.Contains(string(text), want) ||
		strings.Contains(string(text), "error") {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	host.Netns(t)
	dropCapabilities(t)
	text, err = json.Marshal(detect.Host())
	if want := `"error":"ask nf_tables for chain \"KUBE-IPTABLES-HINT\": operation not permitted"`; err != nil ||
		!strings.Contains(string(text), want) {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

// What a query has found can be read back from its JSON form, and is then the same in JSON and in words.
func TestReadBack(t *testing.T) {
	host.Netns(t)
	remembered := detect.Memory{Mode: detect.Legacy, Conclusive: true, Because: "x", Since: time.Unix(1, 0)}
	for _, situation := range []string{
		":",
		"nft add table ip nat; nft add chain ip nat mine '{ type nat hook prerouting priority 0; }'; " +
			"nft add rule ip nat mine accept",
		"nft add table inet firewalld; iptables-nft -N DOCKER-USER",
		"iptables-legacy -A INPUT -j ACCEPT",
		"ip6tables-legacy -t mangle -N KUBE-KUBELET-CANARY",
	} {
		host.Run(t, "sh", "-ec", situation)
		for _, q := range []detect.Query{
			{},
			{Override: detect.NFT},
			{Everything: true, DryRun: true, NAT: true},
			{Remembered: remembered},
			{Home: remembered},
		} {
			r := q.Run()
			text, err := json.Marshal(r)
			host.Check(t, err)
			var back detect.Result
			err = json.Unmarshal(text, &back)
			host.Check(t, err)
			again, err := json.Marshal(back)
			host.Check(t, err)
			if string(again) != string(text) {
				t.Errorf("%s, %+v: got\n%s, want\n%s", situation, q, again, text)
			}
			if back.String() != r.String() || back.Uncertainty() != r.Uncertainty() ||
				(back.Memorable() == nil) != (r.Memorable() == nil) {
				t.Errorf("%s, %+v: got %v, %s, %v, want %v, %s, %v", situation, q,
					back, back.Uncertainty(), back.Memorable(), r, r.Uncertainty(), r.Memorable())
			}
		}
	}
}

// A later version may have other reasons. What it found is not explained by a reason of this version.
func TestReadBackLaterReason(t *testing.T) {
	var back detect.Result
	host.Check(t, json.Unmarshal([]byte(`{"version":3,"mode":"legacy","reason":"moon-phase"}`), &back))
	if got := back.String(); got != `legacy: for a reason that this version does not know, "moon-phase"` {
		t.Errorf("got %s", got)
	}
	if got := back.Uncertainty(); got != `this version does not know the reason "moon-phase"` {
		t.Errorf("got %s", got)
	}
}

// What Doubt was told is read back. Without it, Uncertainty would say that there are no rules.
func TestReadBackDoubt(t *testing.T) {
	host.Netns(t)
	host.Run(t, "iptables-nft", "-A", "INPUT", "-j", "ACCEPT")
	const why = "somebody guessed"
	var back detect.Result
	host.Check(t, json.Unmarshal(inJSON(t, detect.Host().Doubt(why)), &back))
	if back.Reason != detect.RuleCount || back.Conclusive || back.Uncertainty() != why {
		t.Errorf("got %v, %s", back, back.Uncertainty())
	}
}

// An error that was read back may have been one of the moment, or the lack of a capability: it is no guess to remember.
func TestReadBackMemorable(t *testing.T) {
	host.Netns(t)
	dropCapabilities(t)
	r := detect.Host()
	var back detect.Result
	host.Check(t, json.Unmarshal(inJSON(t, r), &back))
	if r.Memorable() == nil || back.Memorable() == nil {
		t.Errorf("got %v, %v", r.Memorable(), back.Memorable())
	}
	back = detect.Result{Evidence: []detect.Evidence{{Features: []detect.Feature{{Error: "too many open files"}}}}}
	if err := back.Memorable(); err == nil || err.Error() != "too many open files" {
		t.Errorf("got %v", err)
	}
}

func inJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	host.Check(t, err)
	return text
}

// dropCapabilities leaves the thread without any. It is not used again.
func dropCapabilities(t *testing.T) {
	t.Helper()
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	host.Check(t, unix.Capset(&header, &data[0]))
}

// An error is read back as its words.
func TestReadBackError(t *testing.T) {
	var e detect.Evidence
	err := json.Unmarshal([]byte(`{
		"backend": "nft", "rules": {"min": 1}, "error": "no", "features": [{"name": "rule", "has": "no", "error": "x"}]
	}`), &e)
	if err != nil || e.Error != "no" || e.Err != nil || e.Features[0].Error != "x" || e.Features[0].Has != detect.No {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestReadCount(t *testing.T) {
	for _, test := range []struct {
		text string
		want detect.Count
	}{
		{`{"min":0,"max":0}`, detect.Count{}},
		{`{"min":2}`, detect.Count{Min: 2, Max: detect.Unbounded}},
		{` { "max" : 7 , "min" :	3 } `, detect.Count{Min: 3, Max: 7}},
		{`{"more":{"min":1,"max":[2]},"x":"\"min\":4","min":5,"max":6}`, detect.Count{Min: 5, Max: 6}},
		{`{"min":1,"max":2,"min":3,"max":4}`, detect.Count{Min: 3, Max: 4}}, // as encoding/json has it
		{`{"m\u0069n":1,"ma\u0078":2}`, detect.Count{Min: 1, Max: 2}},
		{`{"x":"min","min":5,"y":["max",{"max":1}]}`, detect.Count{Min: 5, Max: detect.Unbounded}},
	} {
		var got detect.Count
		err := json.Unmarshal([]byte(test.text), &got)
		if err != nil || got != test.want {
			t.Errorf("%s: got %+v, %v, want %+v", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{`{}`, `{"max":1}`, `{"min":"1"}`, `{"min":-1}`, `{"min":1.5}`, `{"min":{}}`, `7`,
		`[1,2]`, `"min"`, `null`, `{"min":3,"max":2}`} {
		got := detect.Count{Min: 8, Max: 9}
		if err := json.Unmarshal([]byte(text), &got); err == nil || got != (detect.Count{Min: 8, Max: 9}) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}

// FuzzReadCount compares the reading of a number of rules with that of encoding/json.
func FuzzReadCount(f *testing.F) {
	f.Add(`{"min":2}`)
	f.Add(`{"x":"\\\"","min":1,"max":3}`)
	f.Add(`{"min":1,"more":[{"max":2}],"max":3}`)
	f.Fuzz(func(t *testing.T, text string) {
		var want map[string]any
		var got detect.Count
		err := got.UnmarshalJSON([]byte(text))
		if json.Unmarshal([]byte(text), &want) != nil || err != nil {
			return
		}
		lowest, isNumber := want["min"].(float64)
		if !isNumber || int(lowest) != got.Min {
			t.Errorf("%s: got %+v", text, got)
		}
		if highest, isNumber := want["max"].(float64); isNumber && int(highest) != got.Max {
			t.Errorf("%s: got %+v", text, got)
		}
	})
}

func TestReadAnswer(t *testing.T) {
	for _, a := range []detect.Answer{detect.NotAsked, detect.Unknown, detect.No, detect.Yes} {
		text, err := a.MarshalText()
		host.Check(t, err)
		var got detect.Answer
		if err := got.UnmarshalText(text); err != nil || got != a {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	got := detect.Yes
	if err := got.UnmarshalText([]byte("perhaps")); err == nil || got != detect.Yes {
		t.Errorf("got %v, %v", got, err)
	}
}
