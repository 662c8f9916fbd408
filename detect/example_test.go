// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

func ExampleHost() {
	r := detect.Host()
	if !r.Conclusive {
		fmt.Println("a guess:", r)
		return
	}
	fmt.Println(r)
}

// A program that knows of a kubelet on this host gives it a minute.
func ExampleWaitKubelet() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := detect.WaitKubelet(ctx)
	if err != nil {
		fmt.Println("no chains of kubelet:", err)
	}
	fmt.Println("using", r)
}
