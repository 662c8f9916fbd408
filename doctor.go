// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// Doctor says what this container can and cannot do here. It writes no rule, but it runs iptables' programs for their
// versions and to see whether they can read the tables, and the kernel may load modules of what it is asked for.

// weight orders findings. Only a problem makes the container sick.
type weight string

const (
	problem weight = "problem"
	warning weight = "warning"
	note    weight = "note"
)

// finding is one thing that is not as it should be, and one sentence of what to do.
type finding struct {
	Weight  weight `json:"weight"`
	Finding string `json:"finding"`
	Advice  string `json:"advice"`
}

// right is a capability and what it is for.
type right struct {
	Name string `json:"name"`
	Has  bool   `json:"has"`
	For  string `json:"for"`
	bit  int
}

var rights = [...]right{
	{Name: "CAP_NET_ADMIN", bit: unix.CAP_NET_ADMIN, For: "everything: to look, and to make rules"},
	{Name: "CAP_NET_RAW", bit: unix.CAP_NET_RAW, For: "the programs of legacy"},
}

// extensions are those that kube-proxy, CNI plugins and service meshes use.
var extensions = [...]detect.Extension{
	{Name: "addrtype"}, {Name: "comment"}, {Name: "conntrack"}, {Name: "mark"}, {Name: "multiport"}, {Name: "owner"},
	{Name: "physdev"}, {Name: "recent"}, {Name: "rpfilter"}, {Name: "set"}, {Name: "socket"}, {Name: "statistic"},
	{Name: "CONNMARK", Target: true}, {Name: "CT", Target: true}, {Name: "DNAT", Target: true}, {Name: "LOG", Target: true},
	{Name: "MARK", Target: true}, {Name: "MASQUERADE", Target: true}, {Name: "NFLOG", Target: true},
	{Name: "REDIRECT", Target: true}, {Name: "REJECT", Target: true}, {Name: "SNAT", Target: true},
	{Name: "TCPMSS", Target: true}, {Name: "TPROXY", Target: true},
}

// owners are who makes chains with a prefix.
var owners = [...]struct{ prefix, owner string }{
	{"KUBE-", "Kubernetes"}, {"CNI-", "CNI plugins"}, {"cali-", "Calico"}, {"CILIUM_", "Cilium"}, {"OLD_CILIUM_", "Cilium"},
	{"FLANNEL", "Flannel"}, {"WEAVE", "Weave Net"}, {"ANTREA-", "Antrea"}, {"AWS-", "the Amazon VPC CNI"},
	{"ISTIO_", "Istio"}, {"PROXY_INIT_", "Linkerd"}, {"CONSUL_", "Consul"}, {"DOCKER", "Docker"}, {"NETAVARK", "Podman"},
	{"LIBVIRT_", "libvirt"}, {"ts-", "Tailscale"}, {"ufw", "ufw"}, {"f2b-", "fail2ban"},
}

// program is one of iptables' two multi-call programs, or what stands for it.
type program struct {
	Mode    detect.Mode `json:"mode"`
	Path    string      `json:"path,omitempty"`
	Version string      `json:"version,omitempty"`
	Error   string      `json:"error,omitempty"`
}

// examination is all that doctor looks at. findings does no I/O, so that it can be tested on any.
type examination struct {
	result     detect.Result // by the evidence alone
	override   detect.Mode   // what was asked for instead, "" if nothing
	own        bool          // this is the container's own network namespace, as far as can be told
	rights     []right
	programs   []program
	leads      []exec.Lead
	support    []detect.Support
	noLegacy   bool     // x_tables are not in the kernel, and legacy's own program could not load them
	unreadable []string // what iptables-nft says of tables that it cannot read
	lock       error    // why legacy's lock cannot be had
}

func examine(w exec.Wrapper, dir string, override detect.Mode) examination {
	q := query(w, "")
	q.Everything = true
	x := examination{
		result: q.Run(), override: override, own: detect.InOwnNetns() != detect.No,
		leads: exec.Leads(dir), lock: lock(w),
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_ = unix.Capget(&header, &data[0]) // fails for a wrong version only: then none is there
	for _, r := range rights {
		r.Has = data[r.bit/32].Effective&(1<<(r.bit%32)) != 0
		x.rights = append(x.rights, r)
	}
	for _, mode := range []detect.Mode{detect.NFT, detect.Legacy} {
		p := program{Mode: mode}
		var err error
		if p.Path, p.Version, err = w.Programs(dir, string(mode)); err == nil {
			// Without its libraries a program knows no match and no target.
			if _, stderr, loadErr := exec.Output(p.Path, "iptables", "-m", "comment", "-h"); loadErr != nil {
				err = fmt.Errorf("%q cannot load its extensions: %w: %s", p.Path, loadErr, stderr)
			}
		}
		if err != nil {
			p.Error = err.Error()
		} else if mode == detect.NFT {
			x.unreadable = unreadable(p.Path, x.result)
		}
		x.programs = append(x.programs, p)
	}
	// Only now: legacy's program loads x_tables by itself where it can, and extensions can be asked for then.
	x.support = detect.Extensions(extensions[:])
	if absent(x.result) {
		x.noLegacy = absent(q.Run())
	}
	return x
}

// absent says that x_tables are not in the kernel now, and perhaps not at all.
func absent(r detect.Result) bool {
	return slices.ContainsFunc(r.Evidence, func(e detect.Evidence) bool {
		return e.Backend == detect.Legacy && e.Family == detect.IPv4 && e.Supported == detect.Unknown && e.Err == nil
	})
}

// mode is the one that calls go by here.
func (x examination) mode() detect.Mode {
	if x.override != "" {
		return x.override
	}
	return x.result.Mode
}

// unreadable asks iptables-nft to print its tables, where there are any. What it cannot print it mentions in a comment,
// and ends well.
func unreadable(program string, r detect.Result) (said []string) {
	for _, e := range r.Evidence {
		if e.Backend != detect.NFT || len(e.Tables) == 0 {
			continue
		}
		name := "iptables-save"
		if e.Family == detect.IPv6 {
			name = "ip6tables-save"
		}
		stdout, stderr, err := exec.Output(program, name)
		if err != nil {
			said = append(said, fmt.Sprintf("%s: %v: %s", name, err, stderr))
		}
		for line := range strings.Lines(stdout + stderr) {
			if strings.HasPrefix(line, "#") && strings.Contains(line, "incompatible") {
				said = append(said, fmt.Sprintf("%s: %s", name, strings.TrimSpace(strings.TrimPrefix(line, "#"))))
			}
		}
	}
	return said
}

// lock says why iptables-legacy could not lock its tables: it opens a file for that, and makes it where there is none.
func lock(w exec.Wrapper) error {
	path := os.Getenv("XTABLES_LOCKFILE")
	if path == "" || w.Secure {
		path = "/run/xtables.lock"
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		defer unix.Close(fd)
		var stat unix.Stat_t
		if err = unix.Fstat(fd, &stat); err == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = unix.EISDIR
		}
	} else if errors.Is(err, unix.ENOENT) {
		// A link is followed to where the file would be made.
		made := path
		if target, linkErr := os.Readlink(path); linkErr == nil {
			made = target
			if !filepath.IsAbs(target) {
				made = filepath.Join(filepath.Dir(path), target)
			}
		}
		err = unix.Access(filepath.Dir(made), unix.W_OK)
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	return nil
}

// findings are what is not as it should be, the gravest first.
func (x examination) findings() []finding {
	var all []finding
	add := func(w weight, advice, format string, args ...any) {
		all = append(all, finding{w, clean(fmt.Sprintf(format, args...)), advice})
	}
	r, mode := x.result, x.mode()
	switch {
	case x.override != "" && r.Conclusive && x.override != r.Mode:
		add(problem, "unset "+modeVariable, "%s asks for %s, and the host uses %s: %s", modeVariable, x.override, r.Mode, because(r))
	case !r.Conclusive && x.override == "":
		add(warning, "wait for kubelet (select --wait), or set "+modeVariable, "which backend the host uses is not certain: %s", doubt(r))
	}
	for _, e := range r.Evidence {
		if e.Backend == mode && e.Family == detect.IPv4 && (e.Supported == detect.No || mode == detect.Legacy && x.noLegacy) {
			add(problem, "load its modules on the host, or set "+modeVariable+" if the mode is wrong",
				"this kernel has no %s, and that is the mode", e.Backend)
		}
	}
	for _, c := range x.rights {
		switch {
		case !c.Has && (c.Name == "CAP_NET_ADMIN" || mode == detect.Legacy):
			add(problem, "add it to the container's capabilities", "%s is missing, which is for %s", c.Name, c.For)
		case !c.Has:
			add(warning, "add it to the container's capabilities", "%s is missing, which is for %s", c.Name, c.For)
		case c.Name == "CAP_NET_ADMIN" && slices.ContainsFunc(r.Evidence, func(e detect.Evidence) bool { return errors.Is(e.Err, unix.EPERM) }):
			add(problem, "give the user namespace a network namespace of its own, or run without one",
				"%s is here, and does not hold for this network namespace: that belongs to another user namespace", c.Name)
		}
	}
	for _, p := range x.programs {
		if p.Error != "" {
			w := warning
			if p.Mode == mode {
				w = problem
			}
			add(w, "put iptables 1.8.4 or newer with both backends into the image", "the programs for %s cannot be used: %s", p.Mode, p.Error)
		}
	}
	if a, b := x.programs[0].release(), x.programs[1].release(); a != "" && b != "" && a != b {
		add(warning, "take both from one package", "the programs are of different versions: nft %s, legacy %s", a, b)
	}
	x.nameFindings(add)
	if x.lock != nil && mode == detect.Legacy {
		add(problem, "mount the host's /run/xtables.lock, with type FileOrCreate", "legacy's programs cannot lock their tables: %v", x.lock)
	}
	for i, e := range r.Evidence {
		if e.Backend != mode || e.Supported == detect.No || mode == detect.Legacy && x.noLegacy {
			continue
		}
		var missing []string
		for _, s := range x.support {
			if s.Backend == e.Backend && s.Family == r.Evidence[i].Family && s.Has == detect.No {
				missing = append(missing, s.Name)
			}
		}
		if len(missing) > 0 {
			add(warning, "load the modules on the host, if something here needs them",
				"the kernel has no %s for %s %s", strings.Join(missing, ", "), mode, e.Family)
		}
	}
	for _, said := range x.unreadable {
		add(problem, "look with nft list ruleset: another program has put something into iptables' own tables",
			"iptables-nft cannot read all of its tables: %s", said)
	}
	for _, c := range r.Conflicts {
		if c != detect.RulesInBoth { // which the next says in more words
			add(warning, "restart the host, or remove what the old mode has left", "%s", explain(c))
		}
	}
	if stray := strays(r); stray != "" {
		add(warning, "find out who makes them, and let it use "+string(r.Mode)+" too: they are in force, and iptables does not show them",
			"there are rules in the backend that is not used: %s", stray)
	}
	order := []weight{problem, warning, note}
	slices.SortStableFunc(all, func(a, b finding) int { return slices.Index(order, a.Weight) - slices.Index(order, b.Weight) })
	return all
}

// clean makes one line of a text, and none of what is in it a command to the terminal.
func clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), " ")
}

// nameFindings are about where the six names lead.
func (x examination) nameFindings(add func(w weight, advice, format string, args ...any)) {
	var modes []string
	var fixed error
	if !slices.ContainsFunc(x.leads, func(l exec.Lead) bool { return l.Err == nil }) {
		add(problem, "iptables-wrapper install makes the names", "none of the six names is there: %v", x.leads[0].Err)
		return
	}
	for _, l := range x.leads {
		switch {
		case l.Err != nil:
			add(warning, "iptables-wrapper install makes the names", "%s leads nowhere: %v", l.Name, l.Err)
		case l.Mode == "" && !l.Wrapper:
			add(warning, "iptables-wrapper install --force, if it should", "%s leads to %q, which is neither a wrapper nor iptables", l.Name, l.End)
		case l.Mode != "":
			if !slices.Contains(modes, l.Mode) {
				modes = append(modes, l.Mode)
			}
		case l.Fixed != nil && fixed == nil:
			fixed = l.Fixed
		}
	}
	switch {
	case len(modes) > 1:
		add(problem, "iptables-wrapper reset", "some names lead to nft and others to legacy")
	case len(modes) == 1 && x.result.Conclusive && x.own && modes[0] != string(x.result.Mode):
		add(problem, "iptables-wrapper reset, or start the container anew from its image",
			"the names lead to %s, and the host uses %s", modes[0], x.result.Mode)
	case fixed != nil:
		add(note, "nothing: it costs each call two milliseconds", "the names cannot be moved (%v), so each call decides", fixed)
	}
}

// release is the version alone: "1.8.9" of "iptables v1.8.9 (nf_tables)".
func (p program) release() string {
	var version string
	if _, err := fmt.Sscanf(p.Version, "iptables v%s", &version); err != nil {
		return ""
	}
	return version
}

// strays says what is in the backend that is not used, and whose it seems to be.
func strays(r detect.Result) string {
	var tables, whose []string
	for _, e := range r.Evidence {
		if e.Backend == r.Mode {
			continue
		}
		for _, t := range e.Tables {
			if t.Rules.Min > 0 {
				tables = append(tables, fmt.Sprintf("%s in %s %s %s", number(t.Rules), e.Backend, e.Family, t.Name))
			}
			for _, chain := range t.Chains {
				for _, o := range owners {
					if strings.HasPrefix(chain, o.prefix) && !slices.Contains(whose, o.owner) {
						whose = append(whose, o.owner)
					}
				}
			}
		}
	}
	text := strings.Join(tables, ", ")
	if text != "" && len(whose) > 0 {
		text += ", with chains of " + strings.Join(whose, ", ")
	}
	return text
}

// doctorCommand prints an examination. Status 1 says that there is a problem.
func doctorCommand(w exec.Wrapper, dir, format string, stdout, stderr io.Writer) error {
	override, err := modeFromEnvironment(w)
	if err != nil {
		return err
	}
	if dir, err = orOwn(w, dir); err != nil {
		return err
	}
	fmt.Fprintln(stderr, "iptables-wrapper: asking for matches and targets: the kernel may load modules")
	x := examine(w, dir, override)
	found := x.findings()
	if format == "json" {
		err = x.printJSON(stdout, found)
	} else {
		err = x.print(stdout, found)
	}
	if err == nil && len(found) > 0 && found[0].Weight == problem {
		return failure{1, errors.New("doctor: there are problems"), ""}
	}
	return err
}

// print writes it for people: the findings first.
func (x examination) print(out io.Writer, found []finding) error {
	paint := painter(out)
	var b strings.Builder
	colors := map[weight]string{problem: red, warning: yellow, note: bold}
	for _, f := range found {
		b.WriteString(fold(fmt.Sprintf("%s: %s", f.Weight, f.Finding), 2, colors[f.Weight], paint))
		b.WriteString("  " + fold("-> "+f.Advice, 5, "", func(_, line string) string { return line }))
	}
	if len(found) == 0 {
		b.WriteString(paint(green, "no findings") + "\n")
	}
	b.WriteString("\n" + table(x.result, paint))
	b.WriteString("\nCAPABILITY     HERE  FOR\n")
	for _, r := range x.rights {
		fmt.Fprintf(&b, "%-13s  %-4s  %s\n", r.Name, yesNo(r.Has), r.For)
	}
	b.WriteString("\nPROGRAM  VERSION\n")
	for _, p := range x.programs {
		b.WriteString(row(string(p.Mode), 9, strings.Join([]string{p.Version, p.Path, p.Error}, " ")))
	}
	b.WriteString("\nNAME               LEADS TO\n")
	for _, l := range x.leads {
		end := l.End
		if l.Err != nil {
			end = l.Err.Error()
		}
		b.WriteString(row(l.Name, 19, end))
	}
	b.WriteString("\nEXTENSION   NFT IPV4  NFT IPV6  LEGACY IPV4  LEGACY IPV6\n")
	n := len(x.support) / 4
	for i := range n {
		fmt.Fprintf(&b, "%-10s  %-8s  %-8s  %-11s  %s\n", x.support[i].Name,
			short(x.support[i].Has), short(x.support[n+i].Has), short(x.support[2*n+i].Has), short(x.support[3*n+i].Has))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// row is a label and a text beside it, broken where the terminal ends.
func row(label string, indent int, text string) string {
	line := fmt.Sprintf("%-*s", indent, label)
	var b strings.Builder
	for _, r := range clean(text) {
		if utf8.RuneCountInString(line) == width {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", indent)
		}
		line += string(r)
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// short is an answer in a narrow column.
func short(a detect.Answer) string {
	if a == detect.Unknown {
		return "?"
	}
	return a.String()
}

func (x examination) printJSON(out io.Writer, found []finding) error {
	type name struct {
		Name    string      `json:"name"`
		LeadsTo string      `json:"leads_to"`
		Mode    detect.Mode `json:"mode,omitempty"`
		Wrapper bool        `json:"wrapper"`
		Error   string      `json:"error,omitempty"`
	}
	type extension struct {
		Backend detect.Mode   `json:"backend"`
		Family  detect.Family `json:"family"`
		Name    string        `json:"name"`
		Target  bool          `json:"target"`
		Has     string        `json:"has"`
	}
	report := struct {
		Version      int         `json:"version"`
		Findings     []finding   `json:"findings"`
		Decision     jsonResult  `json:"decision"`
		Capabilities []right     `json:"capabilities"`
		Programs     []program   `json:"programs"`
		Names        []name      `json:"names"`
		Extensions   []extension `json:"extensions"`
		Unreadable   []string    `json:"unreadable"`
	}{
		jsonVersion, append([]finding{}, found...), asJSON(x.result), x.rights, x.programs, nil, nil, append([]string{}, x.unreadable...),
	}
	for _, l := range x.leads {
		n := name{Name: l.Name, LeadsTo: l.End, Mode: detect.Mode(l.Mode), Wrapper: l.Wrapper}
		if l.Err != nil {
			n.Error = l.Err.Error()
		}
		report.Names = append(report.Names, n)
	}
	for _, s := range x.support {
		report.Extensions = append(report.Extensions, extension{s.Backend, s.Family, s.Name, s.Target, s.Has.String()})
	}
	return encode(out, report)
}
