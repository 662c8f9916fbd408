// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iptables-wrappers/iptables-wrappers/internal/layout"
	"github.com/iptables-wrappers/iptables-wrappers/internal/programs"
	"github.com/iptables-wrappers/iptables-wrappers/internal/self"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// ErrArchitecture is returned when the wrapper is built for a different architecture than the programs in the root.
var ErrArchitecture = errors.New("this wrapper is built for a different architecture than the root's programs")

// addWrapper plans to write the running executable to its place in the directory, unless it is there, and to give it the
// file capabilities of iptables' programs. In another tree, a wrapper that is there stays if it is for the architecture of the
// programs, and the running one is not.
func (p *plan) addWrapper(n layout.Names, force bool) error {
	path := programs.Join(p.dir, self.WrapperName)
	content, err := executable(n)
	if err != nil {
		return err
	}
	capabilities, other, err := served(n, p.dir, content)
	switch {
	case err != nil:
		return err
	case hasContent(n.Tree, path, content):
	case other == "":
		p.wrapper, p.capabilities = content, capabilities
		return replaceable(n, path, force)
	case architecture(head(n.Tree, path, elfHeader)) != architecture(head(n.Tree, other, elfHeader)) || !n.Tree.IsWrapper(path):
		return fmt.Errorf("%w, such as %q, and there is no wrapper for it at %q", ErrArchitecture, other, path)
	}
	has, err := Capabilities(n.Tree, path)
	if has != capabilities {
		p.capabilities = capabilities
	}
	return err
}

// served looks at the programs that a wrapper in the directory would run: it returns their file capabilities and, in another
// tree, the first that is for another architecture than the running wrapper. Programs without capabilities, and missing ones,
// do not count. Two programs with different ones are an error: no wrapper can serve both.
func served(n layout.Names, dir string, running []byte) (capabilities, other string, err error) {
	from := ""
	for _, mode := range programs.Modes() {
		for _, name := range programs.Names() {
			path, err := n.Find(dir, mode, name)
			if err != nil {
				continue // Check reports it
			}
			got, err := Capabilities(n.Tree, path)
			switch {
			case err != nil:
				return "", "", fmt.Errorf("%w: %w", ErrCapabilities, err)
			case capabilities == "":
				capabilities, from = got, path
			case got != "" && got != capabilities:
				return "", "", fmt.Errorf("%w: those of %q and %q differ", ErrCapabilities, from, path)
			}
			want := architecture(head(n.Tree, path, elfHeader))
			if other == "" && !n.Tree.Own() && want != "" && want != architecture(running) {
				other = path
			}
		}
	}
	return capabilities, other, nil
}

// executable returns the content of the running executable, also if its file has been removed. Some emulators pass their own
// file off as /proc/self/exe.
func executable(n layout.Names) ([]byte, error) {
	path, notFound := n.Self.Path()
	if notFound == nil {
		return os.ReadFile(path)
	}
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil || !programs.HasMarker(bytes.NewReader(content)) {
		return nil, notFound
	}
	return content, nil
}

// hasContent reports whether a path is a regular file with this content that everybody can execute. A symlink is not enough: it
// could point to one of the six commands, which will point to this path.
func hasContent(t tree.Tree, path string, content []byte) bool {
	st, err := t.Lstat(path)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o555 == 0o555 &&
		bytes.Equal(head(t, path, len(content)+1), content)
}

// head returns the beginning of a file, as far as it can be read.
func head(t tree.Tree, path string, size int) []byte {
	f, err := t.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	content, _ := io.ReadAll(io.LimitReader(f, int64(size)))
	return content
}

// writeWrapper puts an executable in its place with one rename(2). It is synced first: after a power failure, the commands
// must not point to an empty file.
func writeWrapper(t tree.Tree, path string, content []byte, capabilities string) error {
	temporary := tree.Temporary(path, "new")
	_ = t.Unlink(temporary) // left behind by a process that was killed; if it stays, Create says why
	f, err := t.Create(temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o755)) // whatever the umask
	if err == nil && capabilities != "" {
		err = setCapabilities(t, temporary, capabilities)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = t.Rename(temporary, path)
	}
	if err != nil {
		_ = t.Unlink(temporary) // the first error is the one to report
	}
	return err
}

// elfHeader is how much of an ELF file architecture needs.
const elfHeader = 20

// architecture returns class and byte order (in e_ident) and e_machine of an ELF file, see elf(5), and "" for other
// files, such as scripts.
func architecture(header []byte) string {
	if len(header) < elfHeader || string(header[:4]) != "\x7fELF" {
		return ""
	}
	return string(header[4:6]) + string(header[18:20])
}

// In an image for a user who is not root, iptables' programs can have file capabilities. A process keeps its capabilities
// through execve(2) only if every file that it executes on the way has them, so the wrapper's file needs the same ones.
// They are copied as they are stored, see capabilities(7).

const capabilityAttribute = "security.capability"

// ErrCapabilities is returned when the wrapper's file could not be given the file capabilities of iptables' programs.
var ErrCapabilities = errors.New("cannot give the wrapper the file capabilities of iptables' programs")

// Capabilities returns the file capabilities of a file as they are stored, "" if it has none. A path in a file system
// without extended attributes has none.
func Capabilities(t tree.Tree, path string) (string, error) {
	f, err := t.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	value := make([]byte, 64)
	switch n, err := unix.Fgetxattr(int(f.Fd()), capabilityAttribute, value); {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP):
		return "", nil
	case err != nil:
		return "", &os.PathError{Op: "getxattr", Path: path, Err: err}
	default:
		return string(value[:n]), nil
	}
}

func setCapabilities(t tree.Tree, path, value string) error {
	f, err := t.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fsetxattr(int(f.Fd()), capabilityAttribute, []byte(value), 0); err != nil {
		return fmt.Errorf("%w: %w", ErrCapabilities, &os.PathError{Op: "setxattr", Path: path, Err: err})
	}
	return nil
}
