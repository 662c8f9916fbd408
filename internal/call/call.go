// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/exec"
	"github.com/iptables-wrappers/iptables-wrappers/internal/file"
	"github.com/iptables-wrappers/iptables-wrappers/internal/link"
	"github.com/iptables-wrappers/iptables-wrappers/internal/plan"
	"github.com/iptables-wrappers/iptables-wrappers/internal/remedy"
)

// run makes a wrapped call. It returns only if the program cannot be executed, and then returns the exit status.
func run(argv, env []string, stderr io.Writer) int {
	command := filepath.Base(argv[0])
	err := become(command, argv, env)
	status, try := remedy.For(err)
	what := strings.ReplaceAll(err.Error(), "\n", "; ")
	try = cmp.Or(try, remedy.Unknown)
	fmt.Fprintf(stderr, "iptables-wrapper: cannot run %s: %s\niptables-wrapper: try: %s\n", command, what, try)
	return status
}

// become becomes the program that the plan of this call names. It returns only an error.
func become(command string, argv, env []string) error {
	running, err := os.Readlink(file.Running)
	seen := plan.Seen{
		SetUID:   unix.Getuid() != unix.Geteuid(),
		Variable: os.Getenv(plan.Variable),
		NoProc:   err,
		Find: func(b detect.Backend) (exec.Program, error) {
			return exec.Find(b, command, filepath.Dir(running))
		},
	}
	p := plan.Plan{}
	if seen.Asks() {
		p = decide(seen, running)
	} else {
		p = plan.Of(seen)
	}
	if p.Err != nil {
		return p.Err
	}
	err = exec.Become(exec.Program{Path: p.Program}, argv, env)
	return fmt.Errorf("%w (%s)", err, p.Because)
}

// decide asks the kernel, keeps the answer if it may, and returns the plan with what is kept then.
func decide(seen plan.Seen, running string) plan.Plan {
	own, dirErr := link.Here(running)
	record, recordErr := link.OpenRecord()
	seen.Recorded = record.Read()
	r, hostErr := detect.Host(seen.Recorded)
	seen.Evidence = r.Evidence
	seen.Failed = errors.Join(dirErr, recordErr, hostErr)
	p := plan.Of(seen)
	if p.How != plan.Asked {
		return p
	}
	if unix.Geteuid() != 0 || hostErr != nil && !p.Certain {
		own = nil // condition 1 of Keep
	}
	kept := link.Keep(own, record, p.Backend, p.Program, p.Certain)
	switch {
	case kept == p.Backend:
		return p
	case p.Certain: // meanwhile, another call has pointed the switch at the other backend's program
		seen.Stored = kept
	default: // or recorded that backend
		seen.Recorded = kept
	}
	return plan.Of(seen)
}
