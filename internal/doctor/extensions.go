// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/run"
)

// The matches and targets that iptables cannot load.

// Extension is a match or target that iptables cannot load here.
type Extension struct {
	Command string `json:"command"` // that loads it
	Name    string `json:"name"`    // as an argument of iptables: "-m set", "-j TPROXY"
	Lacks   string `json:"lacks"`   // "library": this image does; "kernel": the kernel does
	Printed string `json:"printed"` // by the command, its first line

	used bool // by everybody, or by a rule that is there
}

const (
	lacksLibrary = "library"
	lacksKernel  = "kernel"
)

// extensions are those that clients use most. A target is loaded only with one of its options, because without its
// library iptables takes its name for a chain's.
var extensions = []string{
	"-m comment", "-m conntrack", "-m addrtype", "-m mark", "-m multiport", "-m owner", "-m set", "-m statistic",
	"-j MASQUERADE --random", "-j REDIRECT --random", "-j DNAT --random", "-j MARK --set-mark 1",
	"-j REJECT --reject-with tcp-reset", "-j TPROXY --on-port 1",
}

// load has a command of the wanted backend load the extensions, each with its help: iptables asks the kernel for it,
// and changes nothing. It returns those that fail. Most libraries are for both families, so ip6tables loads only what
// everybody or a rule uses.
func (s *state) load(starter *run.Starter, n name, f detect.Family) (fails []Extension) {
	b := s.wanted()
	uses := s.of(b).uses(f == detect.IPv6)
	for _, arguments := range extensions {
		words := strings.Fields(arguments)
		e := Extension{Name: words[0] + " " + words[1]}
		e.used = e.Name == "-m comment" || uses[e.Name]
		if f == detect.IPv6 && !e.used {
			continue
		}
		out := starter.Run(n.Path, b, append([]string{n.Command.Name}, append(words, "-h")...)...)
		e.Command, e.Printed, e.Lacks = out.Command, firstLine(out.Stderr), lacking(words[1], out, s.libDir)
		if e.Lacks != "" {
			fails = append(fails, e)
		}
	}
	return fails
}

// lacking says what an extension lacks, by what iptables printed when it loaded it: "" for nothing, and if iptables was
// not started. libDir is XTABLES_LIBDIR.
func lacking(extension string, out run.Output, libDir string) string {
	var exit *osexec.ExitError
	switch {
	case strings.Contains(out.Stderr, "missing kernel module?"):
		return lacksKernel
	case !errors.As(out.Err, &exit) || !isExtension.MatchString(out.Stderr):
		return ""
	case hasLibrary(extension, libDir): // before 1.8.8, iptables prints the same for both
		return lacksKernel
	}
	return lacksLibrary
}

// isExtension matches what iptables prints of an extension that it cannot load.
var isExtension = regexp.MustCompile("Couldn't load |unknown option |Can't find library for |extension not found")

// hasLibrary reports whether iptables' directory of extensions has the library of one.
func hasLibrary(extension, libDir string) bool {
	directories := []string{"/usr/lib/*/xtables", "/usr/lib/xtables", "/usr/lib64/xtables", "/lib/xtables"}
	if libDir != "" {
		directories = []string{libDir}
	}
	for _, directory := range directories {
		found, _ := filepath.Glob(directory + "/lib*t_" + extension + ".so") // a good pattern
		if len(found) > 0 {
			return true
		}
	}
	return false
}

// namesOf are the names of the extensions of which something is true, each once: both families may lack one.
func namesOf(extensions []Extension, is func(Extension) bool) (names []string) {
	for _, e := range extensions {
		if is(e) && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

// failing is about the extensions that the library or the kernel lacks and that everybody or a rule uses, nil if there
// are none.
func (s *state) failing(lacks string) *Finding {
	fails := func(e Extension) bool { return e.Lacks == lacks && e.used }
	first := slices.IndexFunc(s.fails, fails)
	if first < 0 {
		return nil
	}
	e := s.fails[first]
	text, do, look := "The image lacks the libraries for ", reinstall, []string{e.Command}
	switch {
	case lacks == lacksKernel:
		text = "The kernel lacks its part of "
		do = "Its module has the alias ipt_" + e.Name[3:] + " (for IPv6, ip6t_" + e.Name[3:] + "); nft also needs " +
			"nft_compat. " + s.adviseModules()
	case s.libDir != "":
		do = "Remove the environment variable XTABLES_LIBDIR. Then run doctor again."
		look = append(look, "printenv XTABLES_LIBDIR")
	}
	return &Finding{
		Severity: problem,
		Text:     text + list(namesOf(s.fails, fails)) + ", so such rules fail. " + quote(e.Command, e.Printed),
		Look:     look,
		Do:       do,
	}
}
