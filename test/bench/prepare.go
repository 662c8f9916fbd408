// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

var names = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}

// reset makes the layout of install: six names, the switch, the wrapper. There is no memory afterwards.
func reset() error {
	for _, name := range names {
		if err := relink("iptables-current", filepath.Join("/usr/sbin", name)); err != nil {
			return err
		}
	}
	if err := relink("iptables-wrapper", "/usr/sbin/iptables-current"); err != nil {
		return err
	}
	return forget()
}

func relink(target, path string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(target, path)
}

// forget removes the memory.
func forget() error {
	memories, err := filepath.Glob("/dev/shm/iptables-wrapper.*")
	for _, memory := range memories {
		err = errors.Join(err, os.Remove(memory))
	}
	return err
}

// place lays a layer with the programs over /usr/sbin, and a writable one over that, as a container has them.
func place(layer string) error {
	return run("sh", "-ec", `
		mkdir /run/upper /run/work
		mount -t overlay -o "lowerdir=$1:/usr/sbin,upperdir=/run/upper,workdir=/run/work" overlay /usr/sbin`, "sh", layer)
}

// makeHost loads rules as kube-proxy writes them.
func makeHost(s state) error {
	if s.Hint {
		if err := run("iptables-"+s.Mode, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"); err != nil {
			return err
		}
	}
	if s.Rules == 0 {
		return nil
	}
	// Not by this process: what it holds in memory counts for those that it starts.
	return run("bash", "-o", "pipefail", "-ec", `awk -v n="$1" 'BEGIN {
		print "*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES"
		for (i = 0; i < n - 1; i++)
			printf "-A KUBE-SERVICES -d 10.%d.%d.%d/32 -p tcp -m comment --comment \"ns/svc-%d cluster IP\" -m tcp --dport 80 -j RETURN\n",
				i / 65536, i / 256 % 256, i % 256, i
		print "COMMIT"
	}' | "$2"`, "bash", fmt.Sprint(s.Rules), "iptables-"+s.Mode+"-restore")
}
