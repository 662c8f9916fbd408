// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// This file is what the first process of a container in the guest does.

// step is one program that ran in the guest, and what the kernel did for it.
type step struct {
	Name           string
	Status         int    // -1 if a signal ended it
	Signal         string // which
	Stdout, Stderr string
	Asked          []string // the modules that the kernel asked for, one by one
	Loaded         []string // the modules that it has gained
	Registered     []string // the legacy tables that this network namespace has gained
	Took           time.Duration
}

// realistic is a rule set as a VPN container, docker or a node agent creates first.
const realistic = `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:APP - [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -s 192.0.2.1/32 -m comment --comment first -j DROP
-A FORWARD -j APP
-A APP -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -p tcp -m tcp --dport 8080 -j DNAT --to-destination 192.0.2.2:80
-A POSTROUTING -s 198.51.100.0/24 ! -o lo -j MASQUERADE
COMMIT
`

const (
	// hintScript lets kubelet leave its hint by a program, and looks with both builds.
	hintScript = "$0 -t mangle -N KUBE-IPTABLES-HINT && " + wrapper + " detect -o json && /wrapper/386 detect -o json"
	// directScript is what the wrapper's choice is compared with: the same rules by one backend's program.
	directScript = "exec $0-restore <" + rulesFile
)

// container is what its first process does.
func container(name string) error {
	s, ok := find(name)
	if !ok {
		return fmt.Errorf("find state %q", name)
	}
	if err := host.Enter(); err != nil {
		return err
	}
	if err := putFile(wrapper, "/wrapper/amd64"); err != nil {
		return err
	}
	if s.readOnly {
		err := unix.Mount("", "/dev", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		if err != nil {
			return err
		}
	}
	boot, err := modules()
	if err != nil {
		return err
	}
	if err := shell(s.inside); err != nil {
		return err
	}
	if s.locked {
		if err := os.WriteFile("/proc/sys/kernel/modules_disabled", []byte("1"), 0); err != nil {
			return err
		}
	}
	return s.run(boot)
}

// run asks everything.
func (s state) run(boot []string) error {
	for _, s := range []struct {
		name, stdin string
		command     []string
	}{
		{"detect", "", []string{wrapper, "detect", "-o", "json"}},
		{"install", "", []string{wrapper, "install"}},
		{"read", "", []string{"iptables", "--version"}},
		{"restore", realistic, []string{"iptables-restore"}},
		{"record", "", []string{"sh", "-c", "readlink /dev/iptables-backend-*"}},
		{"detect after", "", []string{wrapper, "detect", "-o", "json"}},
		{"detect after 386", "", []string{"/wrapper/386", "detect", "-o", "json"}},
		{"save nft", "", []string{"iptables-nft-save"}},
		{"save legacy", "", []string{"iptables-legacy-save"}},
		{"hint nft", "", []string{"unshare", "--net", "sh", "-c", hintScript, "iptables-nft"}},
		{"hint legacy", "", []string{"unshare", "--net", "sh", "-c", hintScript, "iptables-legacy"}},
		{"direct nft", "", []string{"unshare", "--net", "sh", "-c", directScript, "iptables-nft"}},
		{"direct legacy", "", []string{"unshare", "--net", "sh", "-c", directScript, "iptables-legacy"}},
	} {
		if err := run(s.name, s.stdin, s.command...); err != nil {
			return err
		}
	}
	if s.want.doctor == "" {
		return nil
	}
	// As it was in the beginning. Each fails where its backend is not there.
	_ = shell(`nft flush ruleset
		for table in filter nat; do iptables-legacy -t $table -F; iptables-legacy -t $table -X; done`)
	if !s.locked {
		if err := unload(boot); err != nil {
			return err
		}
	}
	if err := run("reset", "", wrapper, "reset"); err != nil {
		return err
	}
	return run("doctor", "", wrapper, "doctor", "-o", "json")
}

// run runs a program and reports it.
func run(name, stdin string, command ...string) error {
	before, err := modules()
	if err != nil {
		return err
	}
	if err := os.Remove(askedFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	tables := registered()
	start := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return err
	}
	s := step{
		Name:   name,
		Status: cmd.ProcessState.ExitCode(),
		Stdout: stdout.String(),
		Stderr: stderr.String(),
		Took:   time.Since(start),
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		s.Signal = status.Signal().String()
	}
	asked, err := os.ReadFile(askedFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(asked)) {
		s.Asked = append(s.Asked, strings.TrimPrefix(strings.TrimSpace(line), "-q -- "))
	}
	after, err := modules()
	if err != nil {
		return err
	}
	s.Loaded, s.Registered = added(before, after), added(tables, registered())
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	fmt.Println(stepMark + string(text))
	return nil
}

// registered are the legacy tables of this network namespace. They are listed only if x_tables is loaded.
func registered() (tables []string) {
	for _, family := range []string{"ip", "ip6"} {
		text, _ := os.ReadFile("/proc/thread-self/net/" + family + "_tables_names")
		for table := range strings.FieldsSeq(string(text)) {
			tables = append(tables, family+" "+table)
		}
	}
	return tables
}
