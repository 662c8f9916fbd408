// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package evidence

type Mode string

const (
	NFT    Mode = "nft"
	Legacy Mode = "legacy"
)

func Modes() []Mode        { return []Mode{NFT, Legacy} }
func (m Mode) Valid() bool { return m == NFT || m == Legacy }

func (m Mode) Other() Mode {
	if m == NFT {
		return Legacy
	}
	return NFT
}

type Reason string

const (
	Override    Reason = "override"
	Remembered  Reason = "remembered"
	Selected    Reason = "selected"
	KubeletHint Reason = "kubelet-hint"
)

func (r Reason) Kubelet() bool { return r == "kubelet-hint" || r == "kubelet-canary" }

type Decision struct {
	Mode       Mode
	Reason     Reason
	Conclusive bool
	Because    string
}

func (d Decision) String() string { return string(d.Mode) + ": " + d.Because }

type Query struct {
	Override   Mode
	Remembered Decision
	Installed  Mode
	DryRun     bool
	NAT        bool
	Everything bool
}
type Result struct{ Decision }

func (q Query) Ask() Result {
	if q.Override != "" {
		return Result{Decision{Mode: q.Override, Reason: Override, Because: "set"}}
	}
	if q.Remembered.Mode != "" {
		d := q.Remembered
		d.Reason = Remembered
		return Result{d}
	}
	return Result{Decision{Mode: Legacy, Reason: KubeletHint, Conclusive: true, Because: "stub"}}
}
func (r Result) Momentary() bool { return false }
func (r Result) Denied() bool    { return false }
