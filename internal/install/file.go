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

// addWrapper plans to write the running executable to its place in the directory, unless it is there as it should be,
// and to give it the file capabilities of iptables' programs. In another tree, a wrapper that is there stays if it is
// for the architecture of the programs, and the running one is not.
//
// What is there is never changed: a new file takes its place.
func (p *plan) addWrapper(n layout.Names, force bool) error {
	path := programs.Join(p.dir, self.WrapperName)
	content, err := executable(n)
	if err != nil {
		return err
	}
	wanted, err := lookAtPrograms(n, p.dir, content)
	if err != nil {
		return err
	}
	now := look(n.Tree, path, content)
	if wanted.other != "" {
		wrong := now.unusable(wanted)
		if wrong != "" {
			return fmt.Errorf("%w, such as %q, and %s at %q", ErrArchitecture, wanted.other, wrong, path)
		}
		content = now.content
	}
	if bytes.Equal(now.content, content) && now.sound() && now.has(wanted.capabilities) {
		return nil
	}
	p.wrapper, p.capabilities = content, wanted.capabilities
	return replaceable(n, path, force)
}

// file is what is known of a regular file, all of it by one descriptor. The zero file is none.
type file struct {
	content      []byte
	mode         uint32
	owner        uint32
	links        uint64
	rewritable   bool // by users who do not count, see tree.Exposed
	capabilities string
}

// largest is the size of the largest file that may be a wrapper, see programs.HasMarker.
const largest = 64 << 20

// look looks at a file, which probably has the content of the running executable. A symlink is not followed: it could
// point to one of the six commands, which will point to this path.
func look(t tree.Tree, path string, running []byte) (found file) {
	f, err := t.OpenEntry(path)
	if err != nil {
		return file{}
	}
	defer f.Close()
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	if err != nil || st.Size > largest {
		return file{}
	}
	found.content, err = contentOf(f, st.Size, running)
	if err != nil {
		return file{}
	}
	found.capabilities, err = capabilitiesOf(f)
	if err != nil {
		return file{}
	}
	found.mode, found.owner, found.links = st.Mode, st.Uid, uint64(st.Nlink)
	found.rewritable = t.Rewritable(st)
	return found
}

// contentOf is the content of a file of a known size, or of one that has grown since. If that is what is expected, no
// second copy of it is made in memory: with one, Go's garbage collector took half of install's time.
func contentOf(f *os.File, size int64, expected []byte) ([]byte, error) {
	if size == int64(len(expected)) && isContent(f, expected) {
		return expected, nil
	}
	content := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := content.ReadFrom(io.LimitReader(f, largest))
	return content.Bytes(), err
}

// isContent reports whether a file begins with what is expected. It leaves the file's position where it is.
func isContent(f io.ReaderAt, expected []byte) bool {
	buf := make([]byte, 64<<10)
	for at := 0; at < len(expected); at += len(buf) {
		part := expected[at:min(at+len(buf), len(expected))]
		n, _ := f.ReadAt(buf[:len(part)], int64(at))
		if !bytes.Equal(buf[:n], part) {
			return false
		}
	}
	return true
}

func (f file) wrapper() bool { return programs.HasMarker(bytes.NewReader(f.content)) }

// unusable says why a file is not the wrapper for programs of another architecture, "" if it is.
func (f file) unusable(wanted needs) string {
	switch {
	case architectureOf(f.content) != wanted.architecture, !f.wrapper():
		return "there is no wrapper for it"
	case f.rewritable, wanted.capabilities != "" && f.owner != 0:
		return "others can change the wrapper for it"
	}
	return ""
}

// sound reports whether everybody can execute a file, and nobody can change it who must not.
func (f file) sound() bool {
	const all = 0o555
	return f.mode&all == all && !f.rewritable
}

// has reports whether a file has the file capabilities that it needs, if any. Others may have been given to it by
// somebody else.
func (f file) has(capabilities string) bool {
	if capabilities == "" {
		return true
	}
	return f.capabilities == capabilities && f.owner == 0 && f.links == 1
}

// executable returns the content of the running executable, also if its file has been removed. Some emulators pass
// their own file off as /proc/self/exe.
func executable(n layout.Names) ([]byte, error) {
	content, err := os.ReadFile("/proc/self/exe")
	if err == nil && programs.HasMarker(bytes.NewReader(content)) {
		return content, nil
	}
	path, err := n.Self.Path()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// writeWrapper puts an executable in its place with one rename(2). It is synced first: after a power failure, the
// commands must not point to an empty file.
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
		err = setCapabilities(f, path, capabilities)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = t.Rename(temporary, path)
	}
	if err != nil {
		_ = t.Unlink(temporary) // the first error is the one to report
	}
	return err
}

// elfHeader is how much of an ELF file architectureOf needs.
const elfHeader = 20

// architectureOf returns class and byte order (in e_ident) and e_machine of an ELF file, see elf(5), and "" for other
// files, such as scripts:
//
//	unsigned char e_ident[16];  // [0..3] "\x7fELF", [4] EI_CLASS, [5] EI_DATA
//	uint16_t e_type, e_machine;
func architectureOf(header []byte) string {
	if len(header) < elfHeader || string(header[:4]) != "\x7fELF" {
		return ""
	}
	return string(header[4:6]) + string(header[18:20])
}
