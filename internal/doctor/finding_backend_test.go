// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// A variable that is no backend is a finding where the wrapper reads it.
func TestVariableIsNoBackend(t *testing.T) {
	for _, test := range []struct {
		doc       string
		isCertain bool
		isDirect  bool // no name leads to the wrapper
		want      string
	}{
		{doc: "the host is not known", want: "Set it to one of these, or unset it."},
		{doc: "the host is known", isCertain: true, want: "Remove " + remedy.Variable + ", or set it to nft."},
		{doc: "nothing reads it", isDirect: true},
	} {
		s := permitted()
		s.variErr = remedy.ErrVariable
		s.host.Certain = test.isCertain
		for i := range s.names {
			s.names[i].Wrapper = !test.isDirect
		}
		says(t, test.doc, s.wrongBackend(), test.want)
	}
}

// Why a stored backend is wrong, and what to do, by the network and the place of the switch.
func TestStored(t *testing.T) {
	for _, test := range []struct {
		doc      string
		process1 detect.Answer
		readOnly bool
		agent    bool // it is taken for one
		pod      bool // deleting the Pod is of help
	}{
		{doc: "process 1's network", process1: detect.Yes, pod: true},
		{doc: "process 1's network is not known", process1: detect.Unknown, pod: true},
		{doc: "another network", process1: detect.No, agent: true},
		{doc: "the switch is read-only", process1: detect.Yes, readOnly: true},
	} {
		s := permitted()
		s.network.Process1 = test.process1
		c := s.cause(name{Name: link.Name{Switch: "/usr/sbin"}, call: here.Here{How: here.Stored}, readOnly: test.readOnly})
		agent, pod := strings.Contains(c.why, "an agent has entered"), strings.Contains(c.do, "deleting the Pod does both")
		if agent != test.agent || pod != test.pod {
			t.Errorf("%s: got %+v", test.doc, c)
		}
	}
}

func TestAdviseInstall(t *testing.T) {
	for _, test := range []struct {
		doc  string
		name name
		want string
	}{
		{"a link", name{Name: link.Name{Path: "/usr/sbin/iptables"}}, "install in"},
		{"a link elsewhere", name{Name: link.Name{Path: "/opt/iptables"}}, "install --dir /opt in"},
		{"a switch elsewhere", name{Name: link.Name{Path: "/usr/sbin/iptables", Switch: "/opt"}}, "install --dir /opt in"},
		{"the switch", name{Name: link.Name{Path: "/opt/iptables", Switch: "/usr/sbin"}}, "install in"},
		{"a script", name{Name: link.Name{Path: "/usr/sbin/iptables"}, script: true}, "install --force in"},
		{"a circle", name{Name: link.Name{Path: "/usr/sbin/iptables", Err: unix.ELOOP}}, "install --force in"},
		{"read-only", name{Name: link.Name{Path: "/usr/sbin/iptables"}, readOnly: true}, "Install when the image is built"},
	} {
		got := permitted().adviseInstall(test.name)
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q", test.doc, got)
		}
	}
}

// A name that leads past the wrapper is a problem only where no iptables runs.
func TestNotWrapped(t *testing.T) {
	for directory, want := range map[string]Severity{"": warning, "/usr/sbin": problem} {
		s := permitted()
		s.names[0].Name = link.Name{Name: "iptables", Path: "/usr/sbin/iptables", Switch: directory, ResolvesTo: "/bin/true"}
		s.names[0].script = true
		found := s.notWrapped()
		if found == nil || found.Severity != want {
			t.Errorf("the switch in %q: got %+v", directory, found)
		}
	}
}
