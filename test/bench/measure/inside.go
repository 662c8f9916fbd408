// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Inside measures one row, as the first process of a container: see test/bench, which calls it. The result goes to
// standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/iptables-wrappers/iptables-wrappers/test/bench/measure"
	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

func main() {
	var row measure.Row
	err := host.Enter()
	if err == nil {
		err = json.Unmarshal([]byte(os.Args[1]), &row)
	}
	var result measure.Result
	if err == nil {
		result, err = measure.Measure(row, os.Args[2])
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
