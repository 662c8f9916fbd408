// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
)

// This file sees for the commands what a call would see. A wrapped call sees it in internal/call.

// Here returns what each call in this environment sees. host and failed are the results of detect.
func Here(host detect.Result, failed error) Seen {
	record, err := link.OpenRecord()
	_, noProc := os.Readlink(file.Running)
	return Seen{
		Variable: os.Getenv(Variable),
		NoProc:   noProc,
		Recorded: record.Read(),
		Evidence: host.Evidence,
		Failed:   errors.Join(err, failed),
	}
}

// At returns what a call of a command runs. It may lead to another copy of the wrapper, which looks for programs beside
// itself.
func (s Seen) At(c link.Command) Plan {
	p := s.at(c)
	p.Path = c.Path
	return p
}

func (s Seen) at(c link.Command) Plan {
	s.Find = func(b detect.Backend) (exec.Program, error) {
		program, err := exec.Find(b, c.Name, filepath.Dir(c.ResolvesTo))
		if err == nil && link.IsWrapper(program.Path) {
			err = fmt.Errorf("%q: %w", program.Path, exec.ErrItself) // a copy, whose own search ends there
		}
		return program, err
	}
	switch {
	case c.Err != nil:
		return nothing(c.Err)
	case c.Wrapper:
		s.SetUID = isSetUID(c.ResolvesTo)
	case c.Switch != "" && c.Backend != "":
		return Plan{Backend: c.Backend, Program: c.ResolvesTo, How: Stored}
	default:
		return Plan{Backend: c.Backend, Program: c.ResolvesTo, How: NotWrapped}
	}
	return Of(s)
}

// isSetUID reports whether the kernel gives whoever executes a file another user: its owner.
func isSetUID(path string) bool {
	var st unix.Stat_t
	var fs unix.Statfs_t
	err := errors.Join(unix.Stat(path, &st), unix.Statfs(path, &fs))
	ignored, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	isIgnored := ignored == 1 || fs.Flags&unix.ST_NOSUID != 0
	return err == nil && !isIgnored && st.Mode&unix.S_ISUID != 0 && int(st.Uid) != unix.Getuid()
}
