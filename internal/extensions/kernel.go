// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
	"github.com/iptables-wrappers/iptables-wrappers/internal/tree"
)

// kernel is what files say about the running kernel.
type kernel struct {
	lists    map[list][]string // what is registered, where there is a list of it
	loads    bool              // it can load modules, as far as is known
	present  []string          // the modules that are loaded or built in, as far as is known
	loadable []string          // those that can be loaded
	known    bool              // both lists could be read, so that no other module brings an extension
}

// list is what a file in /proc lists.
type list struct {
	family  detect.Family
	targets bool
}

// lists are readable by root and group 0 only. A name is in them once for each of its revisions.
var lists = map[list]string{
	{detect.IPv4, false}: "ip_tables_matches",
	{detect.IPv4, true}:  "ip_tables_targets",
	{detect.IPv6, false}: "ip6_tables_matches",
	{detect.IPv6, true}:  "ip6_tables_targets",
}

// largest is more than any of the files has: modules.dep of a distribution's kernel takes 0.7 MB.
const largest = 8 << 20

// look reads the files below a root.
func look(root string) kernel {
	k := kernel{lists: map[list][]string{}}
	for which, name := range lists {
		text, err := read(root + "/proc/thread-self/net/" + name)
		if err == nil {
			k.lists[which] = strings.Fields(text)
		}
	}
	release, err := read(root + "/proc/sys/kernel/osrelease")
	disabled, disabledErr := read(root + "/proc/sys/kernel/modules_disabled")
	builtWithout := err == nil && errors.Is(disabledErr, fs.ErrNotExist)
	k.loads = !builtWithout && strings.TrimSpace(disabled) != "1"
	k.lookAtModules(root, strings.TrimSpace(release))
	return k
}

// lookAtModules reads which modules are there, and which can be loaded.
func (k *kernel) lookAtModules(root, release string) {
	loaded, _ := read(root + "/proc/modules")
	for line := range strings.Lines(loaded) {
		name, _, _ := strings.Cut(line, " ")
		k.present = append(k.present, name)
	}
	dir := root + "/lib/modules/" + release + "/"
	builtIn, builtInErr := read(dir + "modules.builtin")
	for line := range strings.Lines(builtIn) {
		k.present = append(k.present, module(line))
	}
	dependencies, dependenciesErr := read(dir + "modules.dep")
	for line := range strings.Lines(dependencies) {
		file, _, _ := strings.Cut(line, ":")
		_, err := tree.Tree{}.Stat(dir + file)
		if err == nil {
			k.loadable = append(k.loadable, module(file))
		}
	}
	k.known = builtInErr == nil && dependenciesErr == nil
}

// module is the name of the module in a file: of kernel/net/netfilter/xt_owner.ko.xz, it is xt_owner.
func module(file string) string {
	name, _, _ := strings.Cut(filepath.Base(strings.TrimSpace(file)), ".ko")
	return name
}

// read reads a file that anybody may have put there.
func read(path string) (string, error) {
	f, err := tree.Tree{}.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err == nil && len(content) > largest {
		err = bytes.ErrTooLarge
	}
	return string(content), err
}
