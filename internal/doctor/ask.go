// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/here"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// askClient finds out what the iptables that PATH finds runs, where it is not iptables' own program: a script, for
// example. Where that turns out to run the commands in the wrapper's own directory, the report is about these.
func (r Report) askClient(n layout.Names, dir string, q detect.Query) (report Report, about string) {
	says, err := r.ask(n.Tree, programs.Join(dir, "iptables"))
	if err != nil {
		return r, dir
	}
	r.believe(says, q)
	own, err := n.Dir()
	elsewhere := err == nil && r.dirArgument != ""
	if !elsewhere || says.misnamed {
		return r, dir
	}
	behind := glance(n, own, q)
	throughSwitch := behind.Here.How == here.Switch && behind.Here.Backend == says.backend
	if says.wrapped || throughSwitch {
		return behind, own
	}
	return r, dir
}

// believe takes over what the client says.
func (r *Report) believe(says said, q detect.Query) {
	r.misnamed = says.misnamed
	r.Here.Backend = says.backend
	if says.wrapped {
		r.Here.Backend = cmp.Or(q.Override, r.Host.Mode)
		r.Here.How = here.EachCall
	}
	if says.wrapped && q.Override != "" {
		r.Here.How = here.Variable
	}
	r.Here.Differs = r.Here.Backend != "" && r.hostUses(otherMode(r.Here.Backend))
}

// said is what a program says about itself.
type said struct {
	backend  detect.Mode // "" if it does not say, or runs the wrapper
	wrapped  bool        // it runs the wrapper, as one of the six commands
	misnamed bool        // it runs the wrapper under another name, which then takes arguments for its own
	other    bool        // it is none of these
}

// askNames has the commands beside iptables say what they run, where that is neither the wrapper nor iptables' own
// program: a script, for example.
func (r *Report) askNames(n layout.Names, dir string) map[string]said {
	says := map[string]said{}
	for _, command := range r.Names[1:] {
		known := command.Wrapper || command.Mode != "" || command.Error != ""
		if known {
			continue
		}
		answer, err := r.ask(n.Tree, programs.Join(dir, command.Name))
		if err == nil {
			says[command.Name] = answer
		}
	}
	return says
}

// ask has a program that is not iptables' own say which backend it runs, once with each value of the variable: only the
// wrapper follows that. A call with the variable neither reads nor stores anything. It is an error if the program was
// not started.
func (r *Report) ask(t tree.Tree, program string) (said, error) {
	before := os.Getenv(programs.ModeVariable)
	defer os.Setenv(programs.ModeVariable, before) // empty is as good as none
	var backends []detect.Mode
	misnamed := false
	for _, mode := range programs.Modes() {
		os.Setenv(programs.ModeVariable, string(mode))
		line, _, err := r.start(t, program, "iptables", "--version")
		if errors.Is(err, errReplaceable) {
			return said{}, err
		}
		backends = append(backends, install.Backend(line))
		misnamed = strings.HasPrefix(line, self.WrapperName+" ")
	}
	if backends[0] != backends[1] {
		return said{wrapped: slices.Equal(backends, programs.Modes())}, nil
	}
	none := backends[0] == ""
	return said{backend: backends[0], misnamed: misnamed, other: none && !misnamed}, nil
}
