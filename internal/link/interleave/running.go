// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"runtime"
	"strings"
)

// running is an actor that runs. It stops before each of its steps.
type running struct {
	process
	at      string // the step, "" at its end
	proceed chan bool
	reached chan string
	outcome outcome
}

func (m *machine) launch(a actor) *running {
	r := &running{proceed: make(chan bool), reached: make(chan string)}
	r.process = process{disk: m.disk, kernel: &kernel{}, place: m.place}
	r.step = func(operation, name string) {
		if slot(name) < 0 && (operation == "stat" || operation == "lstat") {
			return // nobody changes what has this name
		}
		r.reached <- operation + " " + name
		goOn := <-r.proceed
		if !goOn {
			runtime.Goexit()
		}
	}
	go func() {
		defer close(r.reached)
		r.outcome = a.run(&r.process)
	}()
	r.at = <-r.reached
	return r
}

// meet gives an actor what it is to meet.
func (r *running) meet(now met, c content) {
	*r.kernel = now.kernel
	r.disk.set(c)
	if strings.HasPrefix(r.at, "lock") && now.lock == others {
		r.disk.holdLock(true)
	}
}

func (r *running) goOn() {
	lock := strings.HasPrefix(r.at, "lock")
	r.proceed <- true
	r.at = <-r.reached
	if lock {
		r.disk.holdLock(false)
	}
}

// stop ends an actor that has not come to its end.
func (r *running) stop() {
	for r.at != "" {
		r.proceed <- false
		r.at = <-r.reached
	}
}
