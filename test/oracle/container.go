// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

// Container is what a container is like, and what it has kept.
type Container struct {
	Writable bool   // the directory of the wrapper
	OwnDev   bool   // its /dev is one in which a record can be made
	Missing  string // a backend whose programs the image lacks

	Switch string // the backend to which the switch points, "" for the wrapper
	Record string // the backend that is recorded for the container's network namespace
}

// Call is who calls iptables, and how.
type Call struct {
	Variable  string // the backend that the environment variable contains
	Root      bool
	Failed    bool // a question could not be asked
	Elsewhere bool // it is in another network namespace than process 1
	OwnMounts bool // its mounts are not those of process 1
	Locked    bool // somebody else has the lock of the directory
}

// Run is an undisturbed call in a container on a host. It returns the backend that runs, "" if none does, and what the
// container has kept then.
func (c Container) Run(h *Host, call Call) (string, Container) {
	switch {
	case c.Switch != "":
		return c.installed(c.Switch), c // the wrapper is not called
	case call.Variable != "":
		return c.installed(call.Variable), c
	}
	held := c.Record
	if call.Elsewhere {
		held = "" // that one is about another network namespace
	}
	d := c.substitute(Decide(h, held))
	if c.installed(d.Backend) == "" {
		return "", c
	}
	return d.Backend, c.keep(d, call)
}

// substitute returns an answer, or the other backend where it is a guess whose programs are missing. There is no
// substitute for what is held, nor for the only one that the kernel supports.
func (c Container) substitute(d Decision) Decision {
	guess := !d.Certain && d.Reason != "held" && d.Reason != "only-supported"
	if guess && d.Backend == c.Missing {
		d.Backend = Other(d.Backend)
	}
	return d
}

// keep returns the container after a call whose program was found.
func (c Container) keep(d Decision, call Call) Container {
	if !call.Root || call.Elsewhere || call.OwnMounts {
		return c
	}
	// A guess is recorded where nothing is; what is certain replaces it.
	if c.OwnDev && (d.Certain || c.Record == "" && !call.Failed) {
		c.Record = d.Backend
	}
	// The switch gets only what is certain.
	if d.Certain && c.Writable && !call.Locked {
		c.Switch = d.Backend
	}
	return c
}

// installed returns a backend, "" if the image lacks its programs.
func (c Container) installed(backend string) string {
	if backend == c.Missing {
		return ""
	}
	return backend
}

// Select is the command "select", with a backend or with "". ok says whether it succeeds.
func (c Container) Select(h *Host, backend string, strict bool) (ok bool, after Container) {
	d := Decision{Backend: backend, Certain: true}
	if backend == "" {
		d = c.substitute(Decide(h, ""))
	}
	if strict && !d.Certain || d.Backend == c.Missing || !c.Writable && c.Switch != d.Backend {
		return false, c
	}
	c.Switch = d.Backend
	if c.OwnDev {
		c.Record = d.Backend
	}
	return true, c
}

// Reset is the command "reset". ok says whether it succeeds.
func (c Container) Reset() (ok bool, after Container) {
	c.Record = ""
	if !c.Writable && c.Switch != "" {
		return false, c
	}
	c.Switch = ""
	return true, c
}

// Restart is what a restart leaves: the files, and not what is in /dev.
func (c Container) Restart() Container {
	c.Record = ""
	return c
}
