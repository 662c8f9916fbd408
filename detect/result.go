// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// version of the JSON form. It goes up when something in the schema changes its meaning or goes away.
const version = 3

// Result is a decision with all that it rests on. Only a Query makes one: the zero Result has no Mode. Its JSON form is
// defined by docs/detect.v3.schema.json and can be read back, with the words of errors instead of the errors, and
// without what Doubt was told; Memorable is for a Result that has not been read back.
type Result struct {
	Version    int        `json:"version"`
	Mode       Mode       `json:"mode"`
	Reason     Reason     `json:"reason"`
	Conclusive bool       `json:"conclusive"`           // nothing that could not be read could overturn Mode
	Remembered *Memory    `json:"remembered,omitempty"` // if that is the Reason
	Evidence   []Evidence `json:"evidence"`             // find one with Of
	Conflicts  []Conflict `json:"conflicts"`            // as far as both backends were asked

	doubt        string // what Doubt was told
	doubted      bool   // it was conclusive before
	fromHome     bool   // Remembered is Query.Home
	unprivileged bool   // the kernel answered each question that needs CAP_NET_ADMIN with EPERM
}

// fail keeps the first error, which is nearest to the cause. One of the moment replaces one that is not.
func (e *Evidence) fail(err error) {
	if err == nil || e.Err != nil && (momentary(e.Err) || !momentary(err)) {
		return
	}
	e.Err = err
	e.Error = err.Error()
}

// unasked is the evidence before any question.
func unasked() [4]Evidence {
	unknown := Count{0, Unbounded}
	return [4]Evidence{
		{Backend: NFT, Family: IPv4, Rules: unknown},
		{Backend: NFT, Family: IPv6, Rules: unknown},
		{Backend: Legacy, Family: IPv4, Rules: unknown},
		{Backend: Legacy, Family: IPv6, Rules: unknown},
	}
}

var families = [...]Family{IPv4, IPv6}

// Of returns the evidence about a backend and family.
func (r Result) Of(backend Mode, family Family) Evidence {
	for _, e := range r.Evidence {
		if e.Backend == backend && e.Family == family {
			return e
		}
	}
	return Evidence{Backend: backend, Family: family, Rules: Count{0, Unbounded}}
}

func (r Result) likely(backend Mode) int {
	return r.Of(backend, IPv4).likely() + r.Of(backend, IPv6).likely()
}

func hint(e Evidence) bool   { return e.Hint == Yes }
func canary(e Evidence) bool { return e.Canary == Yes }

func hasHostChain(e Evidence) bool   { return e.HostChain == Yes }
func hasHostProgram(e Evidence) bool { return e.HostChain == Yes || e.HostTable == Yes }
