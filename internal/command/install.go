// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/iptables-wrappers/iptables-wrappers/internal/install"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

func (s *session) installCommand() *cli.Command {
	root := &cli.StringFlag{
		Name:  "root",
		Usage: "install into the root file system at `ROOT`:\n\tDIR is a path in it, and nothing in it is run",
	}
	alternatives := &cli.StringFlag{
		Name:  "alternatives",
		Value: "auto",
		Usage: "`WHEN` to register with (update-)alternatives: auto\n" +
			"\t(if the package manager uses it for iptables) or\n" +
			"\tnever (plain symlinks)",
	}
	return &cli.Command{
		Name:  "install",
		Usage: "make the six iptables commands run this wrapper",
		Description: "Copies the wrapper into DIR if it runs from elsewhere. Running it again\n" +
			"changes nothing. Example, in an image:\n\n" +
			"   COPY iptables-wrapper /usr/sbin/\n" +
			"   RUN iptables-wrapper install",
		Flags: []cli.Flag{
			dirFlag(wrappersDir),
			checked(root),
			checked(alternatives, "auto", "never"),
			boolFlag("force", "also replace files that are neither a wrapper nor a\n\tlink to iptables"),
			boolFlag("skip-checks", "do not check which iptables programs are installed"),
		},
		Action: s.install,
	}
}

func (s *session) install(c *cli.Context) error {
	n := s.names
	if root := c.String("root"); root != "" {
		tree, err := tree.Open(root)
		if err != nil {
			return failure{1, fmt.Errorf("install: %w", err), "--root with the directory of a root file system"}
		}
		n.Tree = tree
	}
	dir, err := dir(c, n)
	if err != nil {
		return err
	}
	var remarks []string
	if !c.Bool("skip-checks") {
		remarks, err = install.Check(n, dir)
		if err != nil {
			const hint = "install iptables with both backends first, or use --skip-checks"
			return failure{1, fmt.Errorf("install: %w", err), hint}
		}
	}
	changed, err := install.Install(n, dir, install.Options{
		Force:        c.Bool("force"),
		Alternatives: c.String("alternatives") == "auto",
	})
	for _, line := range changed {
		fmt.Fprintln(s.stdout, line)
	}
	if err != nil {
		return aboutDir(c, fmt.Errorf("install: %w", err))
	}
	if len(changed) == 0 {
		fmt.Fprintf(s.stdout, "nothing to do: the iptables commands in %s run the wrapper\n", tree.Printable(dir))
	}
	for _, remark := range remarks {
		s.say("%s", remark)
	}
	for _, path := range n.Others(dir) {
		s.say("warning: %s also runs iptables and bypasses the wrapper", path)
	}
	return nil
}
