// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// find looks for the program that can be started as it is first: who starts it may be unable to choose argv[0].
func find(dirs []string, mode detect.Mode, name string) (string, error) {
	files := programs.Files(mode, name)
	slices.Reverse(files)
	return tree.Tree{}.Find(slices.Values(dirs), files, isWrapper)
}

func isWrapper(path string, _ unix.Stat_t) (bool, error) {
	f, err := tree.Tree{}.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return programs.HasMarker(f), nil
}
