// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
)

// programs looks at what runs in each mode.
func (r *Report) programs(n layout.Names, dir string) {
	own, _ := n.Self.Path()
	wrapper, noFile := install.Capabilities(n.Tree, own)
	r.wrapperCaps = wrapper != ""
	for _, mode := range programs.Modes() {
		p := Program{Mode: mode}
		var err error
		if p.Path, p.Version, err = install.Programs(n, dir, mode); err == nil {
			// Without its libraries a program has no match and no target.
			if _, stderr, loadErr := install.Output(p.Path, "iptables", "-m", "comment", "-h"); loadErr != nil {
				err = fmt.Errorf("%q cannot load its extensions: %w: %s", p.Path, loadErr, stderr)
			}
		}
		if err != nil {
			// One missing program is reported, not all six.
			p.Error, _, _ = strings.Cut(err.Error(), "\n")
			p.missing = errors.Is(err, programs.ErrMissing)
		} else if mode == detect.NFT {
			r.listErrors(p.Path)
		}
		r.Programs = append(r.Programs, p)
		switch has, err := install.Capabilities(n.Tree, p.Path); {
		case err != nil || noFile != nil || has == wrapper:
		case has == "":
			r.lostCaps = append(r.lostCaps, p.Path)
		default:
			r.fileCaps = append(r.fileCaps, p.Path)
		}
	}
}

// listErrors has iptables-nft list its tables, where there are any.
func (r *Report) listErrors(program string) {
	for i, name := range []string{"iptables-save", "ip6tables-save"} {
		if family := []detect.Family{detect.IPv4, detect.IPv6}[i]; len(r.Host.Of(detect.NFT, family).Tables) > 0 {
			stdout, stderr, err := install.Output(program, name)
			r.listed(name, stdout, stderr, err)
		}
	}
}

// listed looks at what a listing printed. What iptables-nft cannot list it mentions in a comment, and ends with status 0.
// Another failure has nothing to do with tables that others created. A listing that we ended was only a long one.
func (r *Report) listed(name, stdout, stderr string, err error) {
	for line := range strings.Lines(stdout + stderr) {
		if strings.HasPrefix(line, "#") && strings.Contains(line, "incompatible") {
			r.Unreadable = append(r.Unreadable, fmt.Sprintf("%s: %s", name, strings.TrimSpace(strings.TrimPrefix(line, "#"))))
		}
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		r.unlisted = append(r.unlisted, fmt.Sprintf("%s: %v: %s", name, err, stderr))
	}
}
