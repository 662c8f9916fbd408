// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/iptables"
	"github.com/iptables-wrappers/iptables-wrappers/internal/look"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// errNotInPath means that a shell does not find a command that is there.
var errNotInPath = errors.New("PATH does not have its directory")

// Command is one of the six: where it leads, and what a call runs.
type Command struct {
	look.Command
	Call plan.Plan `json:"call"`
}

// directory is that of the switch that the command leads through, otherwise its own: there, install lays the switch.
func (c Command) directory() string { return cmp.Or(c.Switch, filepath.Dir(c.Path)) }

// isAbsent reports whether nothing has the path, and isReadOnly whether the directory is on a read-only file system.
func (c Command) isReadOnly() bool { return unix.Access(c.directory(), unix.W_OK) == unix.EROFS }
func (c Command) isAbsent() bool   { return c.Missing && errors.Is(c.Err, os.ErrNotExist) }

// String says where a command leads: "/usr/sbin/iptables leads to /usr/sbin/xtables-nft-multi".
func (c Command) String() string {
	return strings.TrimSuffix(quoted(c.Path)+" leads to "+quoted(c.ResolvesTo), " leads to "+quoted(c.Path))
}

// commandAt looks at a command. notFound is why a shell does not find it.
func commandAt(path string, notFound error, seen plan.Seen) Command {
	c := Command{Command: look.At(path)}
	c.Call = c.Plan(seen)
	c.Call.Path = "" // that of the command
	if notFound != nil && c.Call.Err == nil {
		c.Call = plan.Fails(fmt.Errorf("%q: %w", path, errNotInPath))
	}
	return c
}

// commandsInPath are the six commands as a shell finds them, otherwise beside iptables.
func commandsInPath(seen plan.Seen) (all []Command) {
	for _, name := range exec.Commands() {
		path, notFound := run.InPath(name)
		if notFound != nil && len(all) > 0 {
			path = filepath.Join(filepath.Dir(all[0].Path), name)
		}
		all = append(all, commandAt(path, notFound, seen))
	}
	return all
}

// commandsElsewhere are those where distributions install iptables, and that PATH does not find: programs with another
// PATH, or a path of their own, run them. Of those in a directory that run the same, it has the first.
func commandsElsewhere(seen plan.Seen, inPath []Command) (all []Command) {
	known := each(inPath, func(c Command) string { return realPath(c.Path) })
	for _, dir := range iptables.Dirs() {
		for _, name := range exec.Commands() {
			path := realPath(filepath.Join(dir, name))
			c := commandAt(path, nil, seen)
			runs := filepath.Dir(path) + " " + c.Call.Program
			if !c.Missing && !slices.Contains(known, path) && !slices.Contains(known, runs) {
				all = append(all, c)
			}
			known = append(known, path, runs)
		}
	}
	return all
}

// realPath is the path without symlinks on the way to the last name.
func realPath(path string) string {
	dir, _ := filepath.EvalSymlinks(filepath.Dir(path)) // "" if there is none
	return filepath.Join(dir, filepath.Base(path))
}

// What may be true of a command.

// fails: a call of it fails. That one but iptables is not there is a fact: an image may well have no ip6tables.
func fails(s *state, c Command) bool {
	return c.Call.Err != nil && (c.Path == s.commands[0].Path || !c.isAbsent())
}

// differs: it runs another backend than the host's, which is known.
func differs(s *state, c Command) bool { return s.known() && c.Call.Backend == s.host.Backend.Other() }

// bypasses: it leads neither to the wrapper nor through its switch to a program. One that differs has its own finding.
func bypasses(s *state, c Command) bool { return c.Call.How == plan.NotWrapped && !differs(s, c) }

// which are the commands of which something is true, and named is one of the six.
func (s *state) named(name string) Command { return s.commands[slices.Index(exec.Commands(), name)] }
func (s *state) which(is func(*state, Command) bool) []Command {
	return filter(s.commands, func(c Command) bool { return is(s, c) })
}

// pathsOf are the paths of commands.
func pathsOf(commands []Command) []string {
	return each(commands, func(c Command) string { return quoted(c.Path) })
}

// way is a command's path, and those to which it leads by a symlink. They may lead in a circle.
func (c Command) way() []string {
	const most = 5
	hops := each(file.Hops(c.Path), quoted)
	return hops[:min(len(hops), most)]
}

const (
	netAdmin = "CAP_NET_ADMIN" // bit 0x1000 of CapEff. Both backends need it, to list rules, too
	netRaw   = "CAP_NET_RAW"   // bit 0x2000
)

// Process is what this process may do.
type Process struct {
	User          int           `json:"user"`              // the effective one
	Missing       []string      `json:"missing,omitempty"` // of the capabilities that iptables needs
	UserNamespace detect.Answer `json:"user_namespace"`    // it is in one that does not map every user to itself

	mayLoad bool // it can load modules as iptables-legacy does
}

// String is a clause such as "user 0, without CAP_NET_RAW".
func (p Process) String() string {
	text := fmt.Sprintf("user %d", p.User)
	if len(p.Missing) > 0 {
		text += ", without " + list(p.Missing)
	}
	return text + map[detect.Answer]string{
		detect.Yes: ", in a user namespace", detect.Unknown: "; not known whether in a user namespace",
	}[p.UserNamespace]
}

// thisProcess asks for what counts. uid_map has the first ID inside, the first one outside, and how many there are.
func thisProcess() Process {
	p := Process{User: os.Geteuid(), UserNamespace: detect.Yes}
	ids, err := os.ReadFile("/proc/self/uid_map")
	switch {
	case err != nil:
		p.UserNamespace = detect.Unknown
	case strings.Join(strings.Fields(string(ids)), " ") == "0 0 4294967295":
		p.UserNamespace = detect.No
	}
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only
	has := func(capability int) bool { return data[0].Effective&(1<<capability) != 0 }
	p.mayLoad = has(unix.CAP_SYS_MODULE) && setting("modules_disabled") != "1" &&
		unix.Access(cmp.Or(setting("modprobe"), "/sbin/modprobe"), unix.X_OK) == nil
	if !has(unix.CAP_NET_ADMIN) {
		p.Missing = append(p.Missing, netAdmin)
	}
	if !has(unix.CAP_NET_RAW) {
		p.Missing = append(p.Missing, netRaw)
	}
	return p
}

// setting is one of the kernel's, "" if it cannot be read.
func setting(name string) string {
	content, _ := os.ReadFile("/proc/sys/kernel/" + name)
	return strings.TrimSpace(string(content))
}

// isRefusal reports whether the kernel, or what guards it, refuses to answer.
func isRefusal(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EAFNOSUPPORT)
}

// Network is the network namespace of the calling thread.
type Network struct {
	Namespace  string        `json:"namespace"` // "net:[4026531840]", as in /proc/PID/ns/net
	Interfaces []string      `json:"interfaces"`
	Process1   detect.Answer `json:"process_1"` // process 1 is in it too
	Own        detect.Answer `json:"own"`       // it looks like a Pod's own, not the node's
}

// String is a clause such as "net:[4026532281], shared with process 1: lo, eth0".
func (n Network) String() string {
	shared := map[detect.Answer]string{detect.Yes: ", shared with process 1", detect.No: ", not shared with process 1"}
	own := map[detect.Answer]string{detect.Yes: ", looks like a Pod's own"}
	return n.Namespace + shared[n.Process1] + own[n.Own] + about(": %s", each(n.Interfaces, plain))
}

// everywhere are the interfaces that a Pod's own network can have besides eth0: those that modules make everywhere.
var everywhere = []string{"lo", "eth0", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0",
	"ip6gre0"}

// thisNetwork looks at the namespace of the calling thread. Where kubelet's chains are, it is the node's.
func thisNetwork(host detect.Result) Network {
	name, _ := os.Readlink("/proc/thread-self/ns/net")
	n := Network{Namespace: cmp.Or(name, "not known"), Interfaces: []string{}}
	n.Process1, n.Own = detect.Unknown, detect.Unknown
	devices, _ := os.ReadFile("/proc/thread-self/net/dev") // two lines of headings, then "  eth0: ..."
	for line := range strings.Lines(string(devices)) {
		name, _, isDevice := strings.Cut(strings.TrimSpace(line), ":")
		if isDevice {
			n.Interfaces = append(n.Interfaces, name)
		}
	}
	isNodes := func(name string) bool { return !slices.Contains(everywhere, name) }
	isKubelets := host.Reason == detect.KubeletHint || host.Reason == detect.KubeletCanary
	switch {
	case isKubelets, slices.ContainsFunc(n.Interfaces, isNodes):
		n.Own = detect.No
	case len(n.Interfaces) > 0:
		n.Own = detect.Yes
	}
	// These files, unlike /proc/PID/ns, need no permission to trace process 1.
	ours, err := os.Stat("/proc/thread-self/net/dev")
	theirs, errTheirs := os.Stat("/proc/1/net/dev")
	if err == nil && errTheirs == nil {
		n.Process1 = detect.No
		if os.SameFile(ours, theirs) {
			n.Process1 = detect.Yes
		}
	}
	return n
}
