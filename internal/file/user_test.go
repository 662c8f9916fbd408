// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// asks is set in the environment of a test process that says which of some directories it trusts.
const asks = "IPTABLES_WRAPPER_TEST_ASKS"

func TestMain(m *testing.M) {
	if paths := os.Getenv(asks); paths != "" {
		for _, path := range strings.Fields(paths) {
			var st unix.Stat_t
			err := unix.Stat(path, &st)
			fmt.Println(Trusted(st), st.Uid, err)
		}
		return
	}
	os.Exit(m.Run())
}

// Root's files are nobody's in a user namespace that does not map root, as those in which rootlesskit starts Docker.
// Others may write there as little as elsewhere. Nobody's own files are not trusted where root is root.
func TestTrustedInUserNamespace(t *testing.T) {
	host.NeedsRoot(t, "give a file away")
	const user, nobody = 1000, 65534
	top := t.TempDir()
	for name, mode := range map[string]os.FileMode{"/closed": 0o755, "/open": 0o777} {
		host.Check(t, os.Mkdir(top+name, mode))
		host.Check(t, os.Chmod(top+name, mode))
	}
	host.Check(t, os.Mkdir(top+"/nobodys", 0o755))
	host.Check(t, os.Chown(top+"/nobodys", nobody, nobody))
	self, err := os.Open("/proc/self/exe")
	host.Check(t, err)
	defer self.Close()
	for _, test := range []struct {
		doc    string
		mapped []syscall.SysProcIDMap
		want   string // of the three directories: trusted, owner
	}{
		{"root is not mapped", []syscall.SysProcIDMap{{HostID: user, Size: 1}}, "true 65534, false 65534"},
		{"no user namespace", nil, "true 0, false 0, false 65534"},
	} {
		paths := []string{"/proc/self/fd/4", "/proc/self/fd/5", "/proc/self/fd/6"}
		cmd := exec.Command("/proc/self/fd/3") // the way to the file may be closed to the user
		cmd.ExtraFiles = []*os.File{self}
		for _, name := range []string{"/closed", "/open", "/nobodys"} {
			d, err := os.Open(top + name)
			host.Check(t, err)
			defer d.Close()
			cmd.ExtraFiles = append(cmd.ExtraFiles, d)
		}
		if test.mapped != nil {
			paths = paths[:2]
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  unix.CLONE_NEWUSER,
				UidMappings: test.mapped,
				GidMappings: test.mapped,
				Credential:  &syscall.Credential{NoSetGroups: true},
			}
		}
		cmd.Env = []string{asks + "=" + strings.Join(paths, " ")}
		got := strings.TrimSpace(host.Output(t, cmd))
		got = strings.ReplaceAll(strings.ReplaceAll(got, " <nil>", ""), "\n", ", ")
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.doc, got, test.want)
		}
	}
}
