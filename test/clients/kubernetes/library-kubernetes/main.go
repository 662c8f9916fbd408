// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Library-kubernetes is an example of docs/library.md: Kubernetes' pkg/util/iptables with the host's backend.
package main

import (
	"errors"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"k8s.io/kubernetes/pkg/util/iptables"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
)

// useHostBackend creates links to the programs of the host's backend in dir, and puts dir first in PATH.
func useHostBackend(dir string) error {
	result, err := detect.Host("")
	if err != nil {
		log.Print(err) // what could not be asked; the result is what the rest shows
	}
	for _, name := range exec.Commands() {
		program, err := exec.Find(result.Backend, name)
		if err != nil {
			return err
		}
		link := filepath.Join(dir, name)
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // a link of the last start may be there, to the other backend
		}
		if err := os.Symlink(program.Path, link); err != nil {
			return err
		}
	}
	return os.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func main() {
	dir, err := os.MkdirTemp("", "iptables-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Symlink("/gone", filepath.Join(dir, "iptables")); err != nil { // as of the last start
		log.Fatal(err)
	}
	if err := useHostBackend(dir); err != nil {
		log.Fatal(err)
	}
	for _, protocol := range []iptables.Protocol{iptables.ProtocolIPv4, iptables.ProtocolIPv6} {
		client := iptables.New(protocol)
		rules := []byte("*filter\n:EXAMPLE - [0:0]\n-A EXAMPLE -p tcp --dport 8443 -j ACCEPT\nCOMMIT\n")
		if err := client.RestoreAll(rules, iptables.NoFlushTables, iptables.NoRestoreCounters); err != nil {
			log.Fatal(err)
		}
		_, err := client.EnsureRule(iptables.Append, iptables.TableFilter, iptables.ChainInput, "-j", "EXAMPLE")
		if err != nil {
			log.Fatal(err)
		}
	}
}
