// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	// ErrOutside: a link leads out of the root file system that was entered.
	ErrOutside = errors.New("it leads out of the root")
	// ErrMachine: the root file system is for another kind of machine than this wrapper.
	ErrMachine = errors.New("this wrapper is for another machine than the root's programs")
)

// EnterRoot moves this process into a root file system, by chroot(2): from then on every path is what it will be inside,
// and nothing outside can be reached, whatever links there are. It cannot be left again. It needs CAP_SYS_CHROOT.
func (w *Wrapper) EnterRoot(root string) error {
	if w.Secure {
		return ErrSecure
	}
	var err error
	if w.binary, err = w.content(); err != nil {
		return err
	}
	if err := unix.Chroot(root); err != nil {
		return &os.PathError{Op: "chroot", Path: root, Err: err}
	}
	w.inRoot = true
	if err := unix.Chdir("/"); err != nil {
		return &os.PathError{Op: "chdir", Path: "/", Err: err}
	}
	return nil
}

// inside says whether a path stays inside the root. The kernel takes ".." of the root for the root itself; what was
// meant is a place outside, and it would mean something else where the root is mounted elsewhere. And it follows the
// links of a /proc to where they really lead, so nothing in one is inside. A path that does not exist, in part or whole,
// stays inside.
func inside(path string) error {
	rest := strings.Split(path, "/")
	at := ""
	for steps := 0; len(rest) > 0; steps++ {
		part := rest[0]
		rest = rest[1:]
		if steps > 4096 {
			return &os.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
		}
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return fmt.Errorf("%q: %w", path, ErrOutside)
			}
			at = at[:strings.LastIndexByte(at, '/')]
			continue
		}
		var fs unix.Statfs_t
		if unix.Statfs(at+"/", &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC {
			return fmt.Errorf("%q: %w", path, ErrOutside)
		}
		target, err := os.Readlink(at + "/" + part)
		if err != nil { // no link, or nothing at all
			at += "/" + part
			continue
		}
		if target[0] == '/' {
			at = ""
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return nil
}

// forMachine says whether the wrapper that is at the path already is the one to use, because it is for the machine of the
// root's programs and the running one is not.
func (w Wrapper) forMachine(d, path string, running []byte) (there bool, err error) {
	program, err := w.find("nft", "iptables", d)
	if err != nil {
		program, err = w.find("legacy", "iptables", d)
	}
	if err != nil {
		return false, nil // nothing to compare with
	}
	want, err := machine(program)
	if err != nil || want == "" || want == machineOf(running) {
		return false, err
	}
	if got, err := machine(path); err == nil && got == want && isWrapper(path) {
		return true, nil
	}
	return false, fmt.Errorf("%w, such as %q, and there is none for it at %q", ErrMachine, program, path)
}

// machine reads what kind of machine a program is for.
func machine(path string) (string, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	header := make([]byte, 20)
	n, err := f.Read(header)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return machineOf(header[:n]), nil
}

// openRegular opens a file that nobody can make us wait for.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readRegular reads a file of some size at most.
func readRegular(path string, most int) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(content) > most {
		err = &os.PathError{Op: "read", Path: path, Err: unix.EFBIG}
	}
	return content, err
}

// machineOf reads class, byte order and machine from the head of an ELF file, see elf(5):
//
//	unsigned char e_ident[16];  // [4] class, [5] byte order
//	uint16_t      e_type;
//	uint16_t      e_machine;
//
// What is no ELF file, a script for example, is for no machine in particular.
func machineOf(header []byte) string {
	if len(header) < 20 || string(header[:4]) != "\x7fELF" {
		return ""
	}
	return string(header[4:6]) + string(header[18:20])
}
