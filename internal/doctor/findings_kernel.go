// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// abilities are about what the right backend needs to work: the kernel, and the privileges of this process.
func (r *Report) abilities() []rule {
	wanted := r.wanted()
	modules := legacyModules
	if wanted == detect.NFT {
		modules = nftModules
	}
	return []rule{
		{
			code:     "kernel-lacks-backend",
			severity: Problem,
			detail:   when(!r.blind() && r.lacks(wanted), wanted),
			text:     "the backend is {}, but this kernel does not support it",
			fixes:    only(Node, load+modules),
		},
		{
			code:     "nft-cannot-add",
			severity: Problem,
			detail:   when(wanted == detect.NFT, r.refused()),
			text:     "iptables-nft cannot add {}: this kernel's nf_tables lacks a part",
			fixes:    only(Node, load+nftModules),
		},
		{
			code:     "extensions-missing",
			severity: Warning,
			detail:   r.missingExtensions(),
			text:     "this kernel lacks matches and targets of iptables, and no module provides them: {}",
			fixes: only(Node, "if something here uses them, reboot if the kernel was updated; else install all "+
				"modules of this kernel, or use one that has them (its options NETFILTER_XT_* and IP_NF_*)"),
		},
		{
			code:     "no-net-raw",
			severity: Problem,
			detail:   when(wanted == detect.Legacy && !r.blind() && !r.has(netRaw), netRaw),
			text:     "{} is missing; it is needed for iptables-legacy",
			fixes:    r.add(),
		},
	}
}

// locking is about the lock that iptables-legacy takes for its tables.
func (r *Report) locking() []rule {
	return []rule{
		{
			code:     "no-lock",
			severity: r.lockSeverity(),
			detail:   when(r.wanted() == detect.Legacy && r.lock != nil, fmt.Sprint(r.lock)),
			text:     "iptables-legacy cannot lock its tables: {}",
			fixes: fixes{
				{
					r.user != 0 && errors.Is(r.lock, unix.EACCES), Pod,
					"run as root, or set XTABLES_LOCKFILE to a file that this user can write " +
						"(it does not lock out the host's programs)",
				},
				{
					r.ownLock, Pod,
					"remove XTABLES_LOCKFILE, and mount the host's /run/xtables.lock (type: FileOrCreate)",
				},
				{
					r.lockKind() == kindDirectory, Node,
					"remove the directory, which a mount without type: FileOrCreate has made, and mount a file:\n" +
						"rmdir " + defaultLock,
				},
				{
					r.lockKind() != "", Node,
					"remove it; iptables-legacy creates a file:\nrm " + defaultLock,
				},
				{
					always, Pod,
					"mount the host's /run/xtables.lock (type: FileOrCreate), or a writable /run (docker run " +
						"--tmpfs /run)",
				},
			},
		},
		{
			code:     "lock-held",
			severity: Problem,
			detail:   when(r.wanted() == detect.Legacy, r.holder),
			text:     "iptables-legacy waits for a lock: {}",
			fixes: only(Node, "wait for the process that holds the lock, or kill it. Its PID on the node may differ "+
				"from the one in this container. To see it:\nlslocks"),
		},
	}
}

// steadiness is about a backend that can change while the container runs.
func (r *Report) steadiness() []rule {
	changing := r.changing()
	forgets := changing && !r.otherProcess1 && r.unwritable != nil && r.noMemory != nil
	return []rule{
		{
			code:     "not-own-process-1",
			severity: Warning,
			detail: when(changing && r.otherProcess1,
				"process 1 is not this container's (hostPID, shareProcessNamespace), or cannot be inspected"),
			text: drifts,
			fixes: fixes{
				{
					r.Host.Conclusive && r.movable() && !r.unusable() && r.badVariable == "", Container,
					"when the container starts, run:\niptables-wrapper select{dir}",
				},
				{r.Host.Conclusive, Pod, "set {variable}={host}"},
				{always, Pod, decide},
			},
		},
		{
			code:     "cannot-remember",
			severity: Warning,
			detail:   when(forgets, fmt.Sprint(r.noMemory)),
			text:     drifts,
			fixes: only(Pod, "mount a tmpfs on /dev/shm (docker run --tmpfs /dev/shm; "+
				"Kubernetes: an emptyDir with medium: Memory)"),
		},
	}
}
