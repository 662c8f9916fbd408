// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

// Codes are those of all findings, in their order.
func Codes() (all []string) {
	for _, c := range codes {
		all = append(all, c.code)
	}
	return all
}

// Message is a line of the list of messages.
type Message struct {
	Texts          []string
	Code, Says, Do string
}

// Messages are the lines that are made from Go.
func Messages() (all []Message) {
	for _, m := range messages {
		all = append(all, Message{m.texts, m.code, m.says, m.do})
	}
	return all
}
