// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cpio writes an archive as the kernel unpacks it into its first root: Documentation/driver-api/early-userspace/buffer-format.rst.
// Archives may follow one another.
type cpio struct {
	out   *bufio.Writer
	files uint32
	err   error
}

// add writes one file. mode is that of stat(2), with the type.
func (c *cpio) add(name string, mode uint32, content []byte) {
	c.files++
	header := [13]uint32{c.files, mode, 0, 0, 1, 0, uint32(len(content)), 0, 0, 0, 0, uint32(len(name)) + 1, 0}
	c.write("070701")
	for _, field := range header {
		c.write(fmt.Sprintf("%08X", field))
	}
	const sizeofHeader = 6 + 13*8
	c.write(name + "\x00" + strings.Repeat("\x00", -(sizeofHeader+len(name)+1)&3))
	c.write(string(content) + strings.Repeat("\x00", -len(content)&3))
}

func (c *cpio) write(s string) {
	if c.err == nil {
		_, c.err = c.out.WriteString(s)
	}
}

func (c *cpio) close() error {
	c.add("TRAILER!!!", 0, nil)
	return errors.Join(c.err, c.out.Flush())
}

// cpioFromTar turns a Debian root into an archive.
func cpioFromTar(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	c := cpio{out: bufio.NewWriter(out)}
	contents := map[string][]byte{} // for hard links, of which copies are made
	for r := tar.NewReader(bufio.NewReader(in)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return errors.Join(c.close(), out.Sync())
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(header.Name, "./"), "/")
		if name == "" || slices.ContainsFunc(notNeeded, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		mode := uint32(header.Mode & 0o7777)
		switch header.Typeflag {
		case tar.TypeReg:
			if contents[name], err = io.ReadAll(r); err != nil {
				return err
			}
			c.add(name, unix.S_IFREG|mode, contents[name])
		case tar.TypeLink:
			c.add(name, unix.S_IFREG|mode, contents[strings.TrimPrefix(header.Linkname, "./")])
		case tar.TypeDir:
			c.add(name, unix.S_IFDIR|mode, nil)
		case tar.TypeSymlink:
			c.add(name, unix.S_IFLNK|0o777, []byte(header.Linkname))
		}
	}
}

// initramfs writes what a guest starts from: the archive of its root, then these files and trees, by their paths in it.
func initramfs(to, root string, trees map[string]string) (err error) {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	in, err := os.Open(root)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	c := cpio{out: bufio.NewWriter(out)}
	made := map[string]bool{".": true}
	for path, tree := range trees {
		// The directories above.
		for i := range path {
			if above := path[:i]; path[i] == '/' && !made[above] {
				c.add(above, unix.S_IFDIR|0o755, nil)
				made[above] = true
			}
		}
		if err := filepath.WalkDir(tree, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			inside := filepath.Join(path, strings.TrimPrefix(file, tree))
			info, err := entry.Info()
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				c.add(inside, unix.S_IFDIR|0o755, nil)
			case info.Mode().IsRegular():
				content, err := os.ReadFile(file)
				c.add(inside, unix.S_IFREG|uint32(info.Mode().Perm()), content)
				return err
			}
			return nil // no links to be had: modules' "build" and "source" are for compilers
		}); err != nil {
			return err
		}
	}
	return c.close()
}
