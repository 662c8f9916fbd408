// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"strconv"
	"strings"
)

// Unbounded is the Max of a Count whose upper bound is not known.
const Unbounded = int(^uint(0) >> 1)

// Count is a number of rules: at least Min, at most Max, exact if they are equal. The zero Count is no rules.
type Count struct{ Min, Max int }

func exactly(n int) Count { return Count{n, n} }

func (c Count) plus(d Count) Count {
	if c.Max == Unbounded || d.Max == Unbounded {
		return Count{c.Min + d.Min, Unbounded}
	}
	return Count{c.Min + d.Min, c.Max + d.Max}
}

// String returns for example "no rules", "1 rule", "at least 2 rules", "at most 3 rules", "2 to 3 rules".
func (c Count) String() string {
	number := strconv.Itoa(c.Max)
	switch {
	case c == exactly(0):
		number = "no"
	case c == Count{0, Unbounded}:
		return "an unknown number of rules"
	case c.Max == Unbounded:
		number = "at least " + strconv.Itoa(c.Min)
	case c.Min == 0:
		number = "at most " + number
	case c.Min < c.Max:
		number = strconv.Itoa(c.Min) + " to " + number
	}
	if number == "1" || strings.HasSuffix(number, " 1") {
		return number + " rule"
	}
	return number + " rules"
}
