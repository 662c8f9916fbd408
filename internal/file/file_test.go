// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestRead(t *testing.T) {
	path := t.TempDir() + "/file"
	want := strings.Repeat("more than one read takes\n", 1000)
	host.Check(t, os.WriteFile(path, []byte(want), 0o644))
	host.OnThread(func() {
		host.ForbidCall(t, unix.SYS_EPOLL_CTL)
		got, err := Read(path)
		if string(got) != want || err != nil {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		_, err = Read(path + "/x")
		if !errors.Is(err, unix.ENOTDIR) || !strings.Contains(err.Error(), path) {
			t.Errorf("not a directory: %v", err)
		}
	})
}
