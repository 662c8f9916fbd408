// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lay makes what outlives a container in a directory, if it is not there: /usr/sbin as the image has it, without the
// programs that are missing, and /run. The host's side has them all, in /run/host.
func (p place) lay(dir, image string) error {
	_, err := os.Lstat(dir + "/run")
	if err == nil {
		return nil
	}
	err = errors.Join(os.Mkdir(dir+"/run", 0o755), os.Mkdir(dir+"/dev", 0o755), os.Mkdir(dir+"/sbin", 0o755),
		os.Mkdir(dir+"/run/host", 0o755))
	if err != nil {
		return err
	}
	files, err := os.ReadDir(image)
	if err != nil {
		return err
	}
	for _, file := range files {
		from := filepath.Join(image, file.Name())
		err = errors.Join(err, os.Link(from, filepath.Join(dir, "run/host", file.Name())))
		if p.missing == "" || !strings.Contains(file.Name(), "tables-"+p.missing+"-") {
			err = errors.Join(err, os.Link(from, filepath.Join(dir, "sbin", file.Name())))
		}
	}
	if p.root == "shared" {
		err = errors.Join(err, os.Chmod(dir+"/sbin", 0o777), os.Chown(dir+"/sbin", 1000, 1000))
	}
	return errors.Join(err, unix.Mkfifo(dir+"/run/held", 0o666), os.Chmod(dir+"/run/held", 0o666),
		os.WriteFile(dir+"/run/xtables.lock", nil, 0o666), os.Chmod(dir+"/run/xtables.lock", 0o666))
}

// mount makes the mounts of a container in this thread's mount namespace.
func (p place) mount(dir string) error {
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(dir+"/sbin", "/usr/sbin", "", unix.MS_BIND, ""),
		unix.Mount(dir+"/run", "/run", "", unix.MS_BIND, ""),
		unix.Mount("none", dir+"/dev", "tmpfs", 0, "mode=755"),
	)
	if err != nil {
		return err
	}
	for name, device := range map[string]uint64{
		"null":    unix.Mkdev(1, 3),
		"zero":    unix.Mkdev(1, 5),
		"urandom": unix.Mkdev(1, 9),
		"tty":     unix.Mkdev(5, 0),
	} {
		path := filepath.Join(dir, "dev", name)
		err = errors.Join(err, unix.Mknod(path, unix.S_IFCHR, int(device)), os.Chmod(path, 0o666))
	}
	if p.dev == "own" { // as runc makes it
		err = errors.Join(err, os.Symlink("pts/ptmx", dir+"/dev/ptmx"))
	} else { // as in the devtmpfs of a host
		err = errors.Join(err, unix.Mknod(dir+"/dev/ptmx", unix.S_IFCHR, int(unix.Mkdev(5, 2))))
	}
	err = errors.Join(err, unix.Mount(dir+"/dev", "/dev", "", unix.MS_MOVE, ""))
	if p.root == "ro" {
		err = errors.Join(err, unix.Mount("", "/usr/sbin", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	}
	return err
}
