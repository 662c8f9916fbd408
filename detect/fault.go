// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

// Fault is something about one of nft's five tables because of which iptables-nft fails there, or what it does has no
// effect, although it lists the table as its own. Somebody who uses nft directly has made it so.
type Fault struct {
	Kind  FaultKind `json:"kind"`
	Table string    `json:"table"`
	Chain string    `json:"chain,omitempty"` // if it is about one chain
}

// FaultKind is a kind of fault.
type FaultKind string

// The kinds of faults.
const (
	FaultDormant   FaultKind = "dormant"    // a table that is switched off: iptables-nft can change it, to no effect
	FaultOwned     FaultKind = "owned"      // a table of a process that nobody else can change while it runs
	FaultNotHooked FaultKind = "not-hooked" // a chain such as INPUT that no packet enters and to which -A fails
)

// Explain returns a clause for people.
func (f Fault) Explain() string {
	switch f.Kind {
	case FaultDormant:
		return "table " + f.Table + " is dormant: iptables-nft can change it, but nothing in it has an effect"
	case FaultOwned:
		return "table " + f.Table + " belongs to a process: nobody else can change it while that process runs"
	case FaultNotHooked:
		return "chain " + f.Chain + " of table " + f.Table + " is not hooked into the kernel: no packet enters it, " +
			"and iptables-nft can add no rule to it"
	default:
		return string(f.Kind) + " in table " + f.Table
	}
}
