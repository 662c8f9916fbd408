// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
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
		{doc: "the host is known", isCertain: true, want: "Remove " + plan.Variable + ", or set it to nft."},
		{doc: "nothing reads it", isDirect: true},
	} {
		s := permitted()
		s.variErr = plan.ErrVariable
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
		n := name{Command: link.Command{Switch: "/usr/sbin"}, readOnly: test.readOnly}
		n.call.How = plan.Stored
		c := s.cause(n)
		agent := strings.Contains(c.why, "an agent has entered")
		pod := strings.Contains(c.do, "deleting the Pod does both")
		if agent != test.agent || pod != test.pod {
			t.Errorf("%s: got %+v", test.doc, c)
		}
	}
}

func TestAdviseInstall(t *testing.T) {
	for _, test := range []struct {
		doc, path, directory string // of the switch
		err                  error
		script, readOnly     bool
		want                 string
	}{
		{doc: "a link", path: "/usr/sbin/iptables", want: "install in"},
		{doc: "a link elsewhere", path: "/opt/iptables", want: "install --dir /opt in"},
		{doc: "a switch elsewhere", path: "/usr/sbin/iptables", directory: "/opt", want: "install --dir /opt in"},
		{doc: "the switch", path: "/opt/iptables", directory: "/usr/sbin", want: "install in"},
		{doc: "a script", path: "/usr/sbin/iptables", script: true, want: "install --force in"},
		{doc: "a circle", path: "/usr/sbin/iptables", err: unix.ELOOP, want: "install --force in"},
		{doc: "read-only", path: "/usr/sbin/iptables", readOnly: true, want: "Install when the image is built"},
	} {
		n := name{script: test.script, readOnly: test.readOnly}
		n.Command = link.Command{Path: test.path, Switch: test.directory, Err: test.err}
		s := permitted()
		s.names[5] = n // install lays all names, so any of them may need it
		got := s.adviseInstall(n)
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q", test.doc, got)
		}
	}
}

// reset refuses a switch that leads in a circle: only install --force replaces it.
func TestDangles(t *testing.T) {
	for _, test := range []struct {
		err      error
		canReset bool
		want     string
	}{
		{unix.ENOENT, true, "run iptables-wrapper reset"},
		{unix.ENOENT, false, "Run iptables-wrapper install in"},
		{unix.ELOOP, true, "Run iptables-wrapper install --force in"},
	} {
		n := name{canReset: test.canReset}
		n.Command = link.Command{Path: "/usr/sbin/iptables", Switch: "/usr/sbin", Err: test.err}
		s := permitted()
		s.names[0] = n
		got := s.dangles(n)
		if !strings.Contains(got, test.want) {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

// A name that leads past the wrapper is a problem only where no iptables runs.
func TestNotWrapped(t *testing.T) {
	for printed, want := range map[string]Severity{"": warning, "nothing": problem} {
		s := permitted()
		s.names[0].Wrapper = false
		s.names[0].script, s.names[0].printed = true, printed
		found := s.notWrapped()
		if found == nil || found.Severity != want {
			t.Errorf("it printed %q: got %+v", printed, found)
		}
	}
}
