// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tests

// Package moby keeps what moby's tests import in go.mod. They are compiled from moby's module.
package moby

import (
	_ "github.com/moby/moby/v2/daemon/libnetwork/drivers/bridge"
	_ "github.com/moby/moby/v2/daemon/libnetwork/iptables"
	_ "gotest.tools/v3/assert"
)
