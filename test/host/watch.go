// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
)

// Watch looks at names in /usr/sbin until done is closed, and returns how often, and what was wrong
// with one that did not point to a program.
func Watch(done <-chan struct{}, names []string) (looks int, missing error) {
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, name := range names {
			// One question to the kernel: it follows the link as it is in that instant.
			info, err := os.Stat(filepath.Join(sbin, name))
			if err == nil && info.Mode()&0o111 == 0 {
				err = fmt.Errorf("%s cannot be executed", name)
			}
			if err != nil {
				return looks, err
			}
			looks++
		}
	}
	return looks, nil
}
