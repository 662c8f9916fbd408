// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// begin is the state in which each message begins: rules, programs and a working directory of its own.
const begin = `mount -t tmpfs none /run
mkdir /run/dir /run/upper /run/work
mount -t overlay -o lowerdir=/usr/sbin,upperdir=/run/upper,workdir=/run/work none /usr/sbin
cd /run/dir
`

// Each message of the page appears for real: messages/messages.txtar has commands that print it, or its line on the
// page says where it is quoted from.
func TestMessages(t *testing.T) {
	old := host.OldIptables(t)
	if !host.Contain(t) {
		return
	}
	host.PutWrapper(t, "/usr/sbin/iptables-wrapper")
	host.Run(t, "iptables-wrapper", "install")
	host.Check(t, os.Setenv("OLD", strings.TrimSuffix(old, "/usr/sbin/xtables-nft-multi")))
	archive, err := txtar.ParseFile("messages/messages.txtar")
	host.Check(t, err)
	scripts := map[string]string{}
	for _, f := range archive.Files {
		scripts[f.Name] = string(f.Data)
	}
	functions := scripts["functions"]
	delete(scripts, "functions")
	for _, row := range rows(t) {
		for _, text := range quotes(messagesOf.FindString(row)) {
			script, has := scripts[text]
			delete(scripts, text)
			if !has && strings.Contains(row, "quoted from ") {
				continue
			}
			t.Run(text, func(t *testing.T) {
				cmd := exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
					"sh", "-c", begin+functions+script)
				output, _ := cmd.CombinedOutput() // most fail
				if !strings.Contains(string(output), text) || strings.Contains(string(output), "another status") {
					t.Errorf("no commands print it: add some to messages.txtar, or end its line on the page with "+
						"\"quoted from\" and the place; printed was: %s", output)
				}
			})
		}
	}
	for text := range scripts {
		t.Errorf("the page does not have %q", text)
	}
}

// rows are the lines of the page that begin with messages.
func rows(t *testing.T) (lines []string) {
	t.Helper()
	_, rest, _ := strings.Cut(string(host.Read(t, "../../docs/troubleshooting.md")), "\n## Messages\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	for line := range strings.Lines(section) {
		if messagesOf.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// messagesOf matches the messages at the beginning of a line, and quote one of them: if it has a backtick itself, it is
// between two.
var (
	messagesOf = regexp.MustCompile("^- (?:(?:``.+?``|`.+?`)(?:, )?)+:")
	quote      = regexp.MustCompile("``(.+?)``|`(.+?)`")
)

func quotes(text string) (texts []string) {
	for _, found := range quote.FindAllStringSubmatch(text, -1) {
		texts = append(texts, strings.TrimSpace(found[1]+found[2]))
	}
	return texts
}
