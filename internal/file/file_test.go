// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func TestRead(t *testing.T) {
	host.NeedsRoot(t, "filter its system calls")
	path := t.TempDir() + "/file"
	want := strings.Repeat("more than one read takes\n", 1000)
	host.Check(t, os.WriteFile(path, []byte(want), 0o644))
	host.OnThread(func() {
		host.ForbidCall(t, unix.SYS_EPOLL_CTL)
		for limit, want := range map[int]string{1 << 20: want, 9_999: want[:9_999], len(want): want} {
			got, err := Read(path, limit)
			if string(got) != want || err != nil {
				t.Errorf("%d: got %d bytes, %v", limit, len(got), err)
			}
		}
		_, err := Read(path+"/x", 1)
		if !errors.Is(err, unix.ENOTDIR) || !strings.Contains(err.Error(), path) {
			t.Errorf("not a directory: %v", err)
		}
	})
}

func TestNames(t *testing.T) {
	host.NeedsRoot(t, "filter its system calls")
	dir := t.TempDir()
	var want []string
	for i := range 300 { // more than one read takes
		name := fmt.Sprintf("a-name-of-some-length-%d", i)
		host.Check(t, os.WriteFile(dir+"/"+name, nil, 0o644))
		want = append(want, name)
	}
	slices.Sort(want)
	host.OnThread(func() {
		host.ForbidCall(t, unix.SYS_EPOLL_CTL)
		got, err := Names(dir)
		slices.Sort(got)
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("got %d names, %v", len(got), err)
		}
		_, err = Names(dir + "/gone")
		if !errors.Is(err, unix.ENOENT) {
			t.Errorf("no such directory: %v", err)
		}
	})
}
