// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// JSONVersion is the version of a Result's JSON form. It goes up when something in the schema changes its meaning or
// goes away. A Result of another version that is read back may lack what this version needs.
const JSONVersion = 3

// Result is a decision with all that it rests on. Only a Query makes one: the zero Result has no Mode.
//
// Its JSON form is defined by docs/detect.v3.schema.json and can be read back, with the words of errors instead of the
// errors, and without Table.Chains. So Uncertainty then does not say what is missing, and Memorable takes each error
// for one of the moment.
type Result struct {
	Version    int        `json:"version"` // JSONVersion
	Mode       Mode       `json:"mode"`
	Reason     Reason     `json:"reason"`
	Conclusive bool       `json:"conclusive"`           // all that could have changed Mode was read
	Remembered *Memory    `json:"remembered,omitempty"` // if that is the Reason
	FromHome   bool       `json:"from_home,omitempty"`  // Remembered is Query.Home
	Caveat     string     `json:"caveat,omitempty"`     // what Doubt was told
	Evidence   []Evidence `json:"evidence"`             // find one with Of
	Conflicts  []Conflict `json:"conflicts"`            // as far as both backends were asked

	doubted      bool // it was conclusive before Doubt
	unprivileged bool // the kernel answered each question that needs CAP_NET_ADMIN with EPERM
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
