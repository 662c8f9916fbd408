// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package look

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
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
)

// Here returns what each call in this environment sees, for Command.Plan. host and failed are the results of detect.
func Here(host detect.Result, failed error) plan.Seen {
	record, err := link.OpenRecord()
	_, noProc := os.Readlink(file.Running)
	return plan.Seen{
		Variable: os.Getenv(plan.Variable),
		NoProc:   noProc,
		Recorded: record.Read(),
		Evidence: host.Evidence,
		Failed:   errors.Join(err, failed),
	}
}

// Plan returns the plan of a call of the command. The command may lead to another copy of the wrapper, which looks for
// programs beside itself.
func (c Command) Plan(seen plan.Seen) plan.Plan {
	p := plan.Plan{Backend: c.Backend, Program: c.ResolvesTo, How: plan.NotWrapped}
	switch {
	case c.Err != nil:
		p = plan.Fails(c.Err)
	case c.Wrapper:
		seen.SetUID = isSetUID(c.ResolvesTo)
		seen.Find = c.find
		p = plan.Of(seen)
	case c.Switch != "" && c.Backend != "":
		p.How = plan.Stored
	}
	p.Path = c.Path
	return p
}

// find finds a backend's program as the called copy does, whose search also ends at itself.
func (c Command) find(b detect.Backend) (exec.Program, error) {
	program, err := exec.Find(b, c.Name, filepath.Dir(c.ResolvesTo))
	if err == nil && IsWrapper(program.Path) {
		err = fmt.Errorf("%q: %w", program.Path, exec.ErrItself)
	}
	return program, err
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
