// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Library-exec is an example of docs/library.md: a k8s.io/utils/exec.Interface that starts the programs of the host's
// backend.
package main

import (
	"context"
	"log"
	"strings"

	utilexec "k8s.io/utils/exec"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// hostExec starts the programs of one backend for iptables' commands, and anything else as before.
type hostExec struct {
	utilexec.Interface
	programs map[string]exec.Program
}

func newHostExec(inner utilexec.Interface) (utilexec.Interface, error) {
	result, err := detect.Host("")
	if err != nil {
		log.Print(err) // what could not be asked; the result is what the rest shows
	}
	programs := map[string]exec.Program{}
	for _, name := range exec.Commands() {
		programs[name], err = exec.Find(result.Backend, name)
		if err != nil {
			return nil, err
		}
	}
	return hostExec{inner, programs}, nil
}

func (e hostExec) Command(name string, args ...string) utilexec.Cmd {
	return e.CommandContext(context.Background(), name, args...)
}

func (e hostExec) CommandContext(ctx context.Context, name string, args ...string) utilexec.Cmd {
	program, found := e.programs[name]
	if !found {
		return e.Interface.CommandContext(ctx, name, args...)
	}
	if program.MultiCall { // takes the command as its first argument, too
		args = append([]string{name}, args...)
	}
	return e.Interface.CommandContext(ctx, program.Path, args...)
}

func (e hostExec) LookPath(name string) (string, error) {
	if program, found := e.programs[name]; found {
		return program.Path, nil
	}
	return e.Interface.LookPath(name)
}

func main() {
	commands, err := newHostExec(utilexec.New())
	if err != nil {
		log.Fatal(err)
	}
	run := func(stdin, name string, args ...string) {
		cmd := commands.Command(name, args...)
		cmd.SetStdin(strings.NewReader(stdin))
		out, err := cmd.CombinedOutput()
		if err != nil {
			log.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	const rules = "*filter\n:EXAMPLE-EXEC - [0:0]\n-A EXAMPLE-EXEC -p tcp --dport 8444 -j ACCEPT\nCOMMIT\n"
	for _, name := range []string{"iptables", "ip6tables"} {
		run(rules, name+"-restore", "--noflush")
		run("", name, "-A", "INPUT", "-j", "EXAMPLE-EXEC")
		run("", name+"-save", "-t", "filter")
	}
	run("", "true")
}
