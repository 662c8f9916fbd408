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

// Messages are what doctor looks for in what programs print, with its codes.
func Messages() map[string]string {
	all := map[string]string{}
	for _, m := range messages {
		all[m.text] = m.code
	}
	return all
}
