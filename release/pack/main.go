// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Pack prints a directory as a tar archive: pack [-gzip] [-prefix NAME] SECONDS DIRECTORY. Every file in it has the
// time SECONDS, since 1970, and belongs to root. Two versions of tar or gzip may write the same files as different
// bytes; two runs of one version of Go do not, and go.mod says which version a release is made with.
package main

import (
	"archive/tar"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"time"
)

func main() {
	compress := flag.Bool("gzip", false, "compress the archive")
	prefix := flag.String("prefix", "", "the directory's name in the archive")
	flag.Parse()
	err := run(*compress, *prefix, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(compress bool, prefix string, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: pack [-gzip] [-prefix NAME] SECONDS DIRECTORY")
	}
	seconds, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return err
	}
	date := time.Unix(seconds, 0)
	if !compress {
		return pack(os.Stdout, os.DirFS(args[1]), prefix, date)
	}
	out, err := gzip.NewWriterLevel(os.Stdout, gzip.BestCompression)
	if err != nil {
		return err
	}
	err = pack(out, os.DirFS(args[1]), prefix, date)
	if err != nil {
		return err
	}
	return out.Close()
}

// pack writes the files in the order of their names.
func pack(w io.Writer, files fs.FS, prefix string, date time.Time) error {
	out := tar.NewWriter(w)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "." && prefix == "" {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return add(out, files, name, header(path.Join(prefix, name), info, date))
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// header is what the archive says of a file: of the file's mode, whether it can be executed.
func header(name string, info fs.FileInfo, date time.Time) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Size:     info.Size(),
		Mode:     0o644,
		ModTime:  date,
		Format:   tar.FormatUSTAR,
	}
	if info.IsDir() {
		h.Typeflag = tar.TypeDir
		h.Name += "/"
		h.Size = 0
	}
	if info.IsDir() || info.Mode()&0o100 != 0 {
		h.Mode = 0o755
	}
	return h
}

func add(out *tar.Writer, files fs.FS, name string, h *tar.Header) error {
	err := out.WriteHeader(h)
	if err != nil || h.Typeflag == tar.TypeDir {
		return err
	}
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(out, file)
	return err
}
