// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

// Fakeapi is an API server for kube-proxy, which lists and watches services, endpoint slices and its node. SIGUSR1 adds
// a service, SIGUSR2 removes it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

type object = map[string]any

// resource holds the objects of one kind. Each watch has a channel for changes.
type resource struct {
	kind, version string
	objects       []object

	mu       sync.Mutex
	watchers []chan object
}

func main() {
	node := object{
		"metadata": object{"name": "node1", "uid": "node1", "resourceVersion": "1"},
		"spec":     object{"podCIDR": "10.244.0.0/24", "podCIDRs": []string{"10.244.0.0/24"}},
		"status": object{"addresses": []object{
			{"type": "InternalIP", "address": "192.0.2.10"},
			{"type": "InternalIP", "address": "2001:db8::10"},
		}},
	}
	resources := map[string]*resource{
		"/api/v1/nodes":    {kind: "Node", version: "v1", objects: []object{node}},
		"/api/v1/services": {kind: "Service", version: "v1"},
		"/apis/discovery.k8s.io/v1/endpointslices":         {kind: "EndpointSlice", version: "discovery.k8s.io/v1"},
		"/apis/networking.k8s.io/v1/servicecidrs":          {kind: "ServiceCIDR", version: "networking.k8s.io/v1"},
		"/api/v1/namespaces/default/events":                {kind: "Event", version: "v1"},
		"/apis/events.k8s.io/v1/namespaces/default/events": {kind: "Event", version: "events.k8s.io/v1"},
	}
	services, slices := resources["/api/v1/services"], resources["/apis/discovery.k8s.io/v1/endpointslices"]
	for i, name := range []string{"api", "web", "dns"} {
		s, e := service(name, i)
		services.objects, slices.objects = append(services.objects, s), append(slices.objects, e...)
	}
	s, e := service("late", 9)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGUSR2)
	go func() {
		for received := range signals {
			kind := map[os.Signal]string{unix.SIGUSR1: "ADDED", unix.SIGUSR2: "DELETED"}[received]
			services.tell(kind, s)
			for _, slice := range e {
				slices.tell(kind, slice)
			}
		}
	}()
	for path, r := range resources {
		http.Handle(path, r)
	}
	http.HandleFunc("/api/v1/nodes/node1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, named(resources["/api/v1/nodes"], node))
	})
	http.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, object{"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:8001", nil))
}

func meta(name string, labels object) object {
	return object{"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "labels": labels}
}

// service returns a service in both families with a node port, and its endpoint slices with two endpoints each.
func service(name string, i int) (object, []object) {
	s := object{"metadata": meta(name, nil), "spec": object{
		"type": "NodePort", "selector": object{"app": name}, "sessionAffinity": "ClientIP",
		"sessionAffinityConfig": object{"clientIP": object{"timeoutSeconds": 600}},
		"clusterIP":             fmt.Sprintf("10.96.0.%d", 10+i),
		"clusterIPs":            []string{fmt.Sprintf("10.96.0.%d", 10+i), fmt.Sprintf("2001:db8:96::%d", 10+i)},
		"ipFamilies":            []string{"IPv4", "IPv6"}, "ipFamilyPolicy": "RequireDualStack",
		"internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster",
		"ports": []object{{"name": "main", "protocol": "TCP", "port": 80 + i, "targetPort": 8080,
			"nodePort": 30080 + i}},
	}}
	var slices []object
	for family, prefix := range map[string]string{"IPv4": "10.244.0.", "IPv6": "2001:db8:244::"} {
		var endpoints []object
		for e := range 2 {
			endpoints = append(endpoints, object{"addresses": []string{fmt.Sprint(prefix, 20+10*i+e)},
				"nodeName":   "node1",
				"conditions": object{"ready": true, "serving": true, "terminating": false}})
		}
		slices = append(slices, object{"metadata": meta(name+"-"+family, object{"kubernetes.io/service-name": name}),
			"addressType": family,
			"endpoints":   endpoints, "ports": []object{{"name": "main", "protocol": "TCP", "port": 8080}}})
	}
	return s, slices
}

func (r *resource) tell(kind string, o object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.watchers {
		w <- object{"type": kind, "object": named(r, o)}
	}
}

// named returns an object with its kind, which objects in a list do not have.
func named(r *resource, o object) object {
	all := object{"kind": r.kind, "apiVersion": r.version}
	for key, value := range o {
		all[key] = value
	}
	return all
}

func (r *resource) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, request.Body) // an event
		return
	}
	if request.URL.Query().Get("watch") == "" {
		objects := r.objects
		if objects == nil {
			objects = []object{}
		}
		answer(w, object{"kind": r.kind + "List", "apiVersion": r.version, "metadata": object{"resourceVersion": "1"},
			"items": objects})
		return
	}
	changes := make(chan object, 16)
	r.mu.Lock()
	r.watchers = append(r.watchers, changes)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		w.(http.Flusher).Flush()
		select {
		case change := <-changes:
			_ = json.NewEncoder(w).Encode(change)
		case <-request.Context().Done():
			return
		}
	}
}

func answer(w http.ResponseWriter, o object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}
