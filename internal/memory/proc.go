// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readProc reads the beginning of a file of /proc. The runtime's poller would cost five more system calls.
func readProc(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	return buf[:max(n, 0)], err
}

// process is a process as long as the machine runs. Its ID alone may be another process' by now, and somebody may
// have made it so.
type process struct {
	pid   int
	start string // field 22 of /proc/PID/stat, in clock ticks since boot
}

// thisProcess returns the calling process; zero without /proc.
func thisProcess() process {
	_, start := stateAndStart("self")
	if start == "" {
		return process{}
	}
	return process{os.Getpid(), start}
}

// String returns "4711.98765".
func (p process) String() string { return strconv.Itoa(p.pid) + "." + p.start }

// parseProcess is the reverse. The zero process stands for what cannot be read, such as a process ID without a start
// time.
func parseProcess(text string) process {
	id, start, _ := strings.Cut(text, ".")
	pid, err := strconv.Atoi(id)
	if err != nil || pid <= 0 || !digits(start) {
		return process{}
	}
	return process{pid, start}
}

// atWork reports whether the process is known to run, and is not the calling one: what that was before execve(2) has
// ended. One that has ended and that nobody has waited for is a zombie.
func (p process) atWork() bool {
	if p.pid == 0 || p.pid == os.Getpid() {
		return false
	}
	state, start := stateAndStart(strconv.Itoa(p.pid))
	return start == p.start && state != "Z" && state != "X"
}

// stateAndStart returns two fields of a process; "" if they cannot be read.
func stateAndStart(pid string) (state, start string) {
	var buf [512]byte
	stat, _ := readProc("/proc/"+pid+"/stat", buf[:])
	return parseStat(stat)
}

// parseStat reads /proc/PID/stat, see proc_pid_stat(5). Field 2, the command in parentheses, may contain anything.
//
//	(3) state  %c
//	(22) starttime  %llu
func parseStat(stat []byte) (state, start string) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const first, last = 3, 22
	if len(fields) <= last-first {
		return "", ""
	}
	return string(fields[0]), string(fields[last-first])
}

// MapsAll reports whether the user namespace maps every user to itself, as the first one does. Elsewhere, what
// belongs to nobody seems to belong to the overflow user. See user_namespaces(7): a line has the first ID inside, the
// first outside, and how many.
func MapsAll() bool {
	var buf [64]byte
	ids, _ := readProc("/proc/self/uid_map", buf[:])
	fields := strings.Fields(string(ids))
	return len(fields) == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295"
}

// digits reports whether a text is a decimal number without a sign.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
