// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// What the table's rules ask. Each returns "" where its rule does not apply.

func (r *Report) has(capability string) bool {
	return slices.ContainsFunc(r.Capabilities, func(c Capability) bool { return c.Name == capability && c.Present })
}

func (r *Report) withoutFileCaps() string {
	if r.has("CAP_NET_ADMIN") || r.wrapperCaps {
		return ""
	}
	return strings.Join(r.fileCaps, ", ")
}

func (r *Report) withoutNetAdmin() string {
	switch {
	case r.has("CAP_NET_ADMIN"):
		return ""
	case r.has("CAP_NET_RAW"):
		return "CAP_NET_ADMIN is missing"
	}
	return "CAP_NET_ADMIN and CAP_NET_RAW are missing"
}

func (r *Report) withoutNetRaw() string {
	if r.blind() || r.has("CAP_NET_RAW") || r.wanted() != detect.Legacy {
		return ""
	}
	return "CAP_NET_RAW"
}

func (r *Report) foreignUserNamespace() string {
	if r.has("CAP_NET_ADMIN") && r.failedWith(unix.EPERM) {
		return "EPERM"
	}
	return ""
}

// failedWith says whether a question to the kernel failed with an error.
func (r *Report) failedWith(err error) bool {
	return slices.ContainsFunc(r.Host.Evidence, func(e detect.Evidence) bool { return errors.Is(e.Err, err) })
}

// blind says whether nothing could be asked: what else does not work is a consequence.
func (r *Report) blind() bool { return !r.has("CAP_NET_ADMIN") || r.failedWith(unix.EPERM) }

// doubt is why the host's backend is not certain, unless somebody has decided: by the variable, or by select.
func (r *Report) doubt() string {
	if r.Host.Conclusive || r.Here.How == Variable || r.Here.How == Switch && r.Host.Reason == detect.Remembered {
		return ""
	}
	return r.Host.Uncertainty()
}

// failure is the first error of a question, if it is the one wanted and leaves the host's backend uncertain.
func (r *Report) failure(wanted ...error) string {
	for _, e := range r.Host.Evidence {
		if e.Err != nil && r.doubt() != "" && (len(wanted) == 0 || errors.Is(e.Err, wanted[0])) {
			return fmt.Sprintf("%s %s: %v", e.Backend, e.Family, e.Err)
		}
	}
	return ""
}

func (r *Report) denied() string      { return r.failure(unix.EACCES) }
func (r *Report) withoutProc() string { return r.failure(unix.ENOENT) }
func (r *Report) failed() string      { return r.failure() }
func (r *Report) uncertain() string   { return r.doubt() }

func (r *Report) nativeTables() string {
	if !slices.ContainsFunc(r.Host.Evidence, func(e detect.Evidence) bool { return len(e.Foreign) > 0 }) {
		return ""
	}
	return r.doubt()
}

func (r *Report) remembers() string {
	if r.Host.Reason != detect.Remembered || r.doubt() == "" {
		return ""
	}
	return string(r.Remembered)
}

func (r *Report) ownRules() string {
	if !r.Network.Own {
		return ""
	}
	return r.remembers()
}

func (r *Report) ownNetwork() string {
	if !r.Network.Own || r.Host.Reason != detect.Default {
		return ""
	}
	return r.doubt()
}

// modes are the modes of the programs that the names resolve to.
func (r *Report) modes() map[detect.Mode][]string {
	modes := map[detect.Mode][]string{}
	for _, n := range r.Names {
		if n.Mode != "" {
			modes[n.Mode] = append(modes[n.Mode], n.Name)
		}
	}
	return modes
}

func (r *Report) mixed() string {
	m := r.modes()
	if len(m) < 2 {
		return ""
	}
	return fmt.Sprintf("%s is nft, %s is legacy", strings.Join(m[detect.NFT], " "), strings.Join(m[detect.Legacy], " "))
}

// differsBy says whether iptables here is known to be wrong, and why it is what it is. In the namespace of another
// container, the stored mode says nothing.
func (r *Report) differsBy(how How) string {
	if r.Here.Differs && r.Here.How == how && (r.Network.Process1 != detect.No || how == Variable) {
		return string(r.Here.Backend)
	}
	return ""
}

func (r *Report) variableWrong() string   { return r.differsBy(Variable) }
func (r *Report) storedWrong() string     { return r.differsBy(Switch) }
func (r *Report) rememberedWrong() string { return r.differsBy(Remembered) }
func (r *Report) neverInstalled() string  { return r.differsBy(NotWrapped) }

func (r *Report) unwrapped() string {
	if r.Here.How == NotWrapped {
		return string(r.Here.Backend)
	}
	return ""
}

// variableIdle is the variable's mode where iptables here runs the other one nevertheless.
func (r *Report) variableIdle() string {
	if r.Variable == "" || r.distrusted || r.Here.How == Variable || r.Here.Backend == r.Variable {
		return ""
	}
	return string(r.Variable)
}

func (r *Report) variableRedundant() string {
	if r.Host.Conclusive && r.Here.Backend == r.Host.Mode {
		return r.variableIdle()
	}
	return ""
}

func (r *Report) variableLate() string { return r.variableIdle() }

func (r *Report) variableDistrusted() string {
	if !r.distrusted || r.Here.Backend == r.Variable {
		return ""
	}
	return string(r.Variable)
}

// cleanEnvironment: the variable decides here, and where it is not passed on the answer is another.
func (r *Report) cleanEnvironment() string {
	if r.Here.How != Variable || r.Variable == r.Host.Mode {
		return ""
	}
	return string(r.Variable)
}

// namesWith lists the names for which say returns something.
func (r *Report) namesWith(say func(Name) string) []string {
	var all []string
	for _, n := range r.Names {
		if text := say(n); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func nameError(n Name) string { return n.Error }

func (r *Report) noneFound() string {
	if all := r.namesWith(nameError); len(all) < len(r.Names) || len(all) == 0 {
		return ""
	}
	return r.Names[0].Error
}

func (r *Report) broken() string {
	if r.noneFound() != "" {
		return ""
	}
	return strings.Join(r.namesWith(func(n Name) string {
		if n.Error == "" {
			return ""
		}
		return fmt.Sprintf("%s (%s)", n.Name, n.Error)
	}), ", ")
}

func (r *Report) foreign() string {
	return strings.Join(r.namesWith(func(n Name) string {
		if n.Error != "" || n.Mode != "" || n.Wrapper {
			return ""
		}
		return fmt.Sprintf("%s is %q", n.Name, n.ResolvesTo)
	}), ", ")
}
