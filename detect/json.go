// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The JSON forms that encoding/json does not make by itself. That package is not imported: a wrapped call would pay for
// it.

var answerWords = [...]string{NotAsked: "not-asked", Unknown: "unknown", No: "no", Yes: "yes"}

// String returns "not-asked", "unknown", "no" or "yes".
func (a Answer) String() string {
	if a < NotAsked || a > Yes {
		return fmt.Sprintf("Answer(%d)", int8(a))
	}
	return answerWords[a]
}

// MarshalText returns the same words.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the same words. Any other is an error.
func (a *Answer) UnmarshalText(text []byte) error {
	i := slices.Index(answerWords[:], string(text))
	if i < 0 {
		return fmt.Errorf("detect: %q is no answer", text)
	}
	*a = Answer(i)
	return nil
}

// MarshalJSON returns {"min": 1, "max": 3}, without max if that is not known.
func (c Count) MarshalJSON() ([]byte, error) {
	if c.Max == Unbounded {
		return fmt.Appendf(nil, `{"min":%d}`, c.Min), nil
	}
	return fmt.Appendf(nil, `{"min":%d,"max":%d}`, c.Min, c.Max), nil
}

// UnmarshalJSON reads the same. Members that it does not know are ignored. Anything else is an error, null included.
func (c *Count) UnmarshalJSON(text []byte) error {
	read := Count{0, Unbounded}
	for name, number := range map[string]*int{"min": &read.Min, "max": &read.Max} {
		value, found := member(string(text), name)
		if !found && name == "max" {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Errorf("detect: a number of rules has no %s: %s", name, text)
		}
		*number = n
	}
	if read.Min > read.Max {
		return fmt.Errorf("detect: a number of rules is at least %d and at most %d", read.Min, read.Max)
	}
	*c = read
	return nil
}

// member returns the text of a member of an object, which must be valid JSON, if that is a number or a word. Of several
// with the name, the last one counts.
func member(object, name string) (value string, found bool) {
	depth := 0
	for i := 0; i < len(object); i++ {
		switch object[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			begin := i + 1
			i = endOfString(object, begin)
			rest, isName := strings.CutPrefix(strings.TrimLeft(object[min(i+1, len(object)):], space), ":")
			if depth == 1 && isName && unquoted(object[begin:i]) == name {
				rest = strings.TrimLeft(rest, space)
				end := strings.IndexAny(rest, space+",}")
				value, found = rest[:max(end, 0)], true
			}
		}
	}
	return value, found
}

// unquoted resolves escapes such as \u0061 in what stands between the quotes of a string; "" if Go does not have one.
func unquoted(text string) string {
	text, _ = strconv.Unquote(`"` + text + `"`)
	return text
}

const space = " \t\r\n"

// endOfString returns where the quote is that ends a string, of which this is the first byte.
func endOfString(text string, first int) int {
	for i := first; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}
