// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/test/host"
)

// registry is as much of a registry of images as a push needs. It keeps what it was given by its path, so that a
// manifest is kept twice: under its tag and under its digest.
type registry struct {
	*httptest.Server

	mutex   sync.Mutex
	content map[string][]byte
	types   map[string]string
	upload  map[string][]byte // what came of an upload, by its path
}

func newRegistry(t *testing.T) *registry {
	r := &registry{content: map[string][]byte{}, types: map[string]string{}, upload: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// address is what stands before an image's name.
func (r *registry) address() string { return strings.TrimPrefix(r.URL, "http://") }

// insecure returns the skopeo command for it, because it has no certificate.
func insecure(t *testing.T, r *registry) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "registries.conf")
	content := "[[registry]]\nlocation = \"" + r.address() + "\"\ninsecure = true\n"
	host.Check(t, os.WriteFile(file, []byte(content), 0o644))
	// Whoever runs the test may have logins of his own, or none that he can read.
	logins := filepath.Join(dir, "auth.json")
	host.Check(t, os.WriteFile(logins, []byte("{}"), 0o644))
	letIn(t, file)
	return "env REGISTRY_AUTH_FILE=" + logins + " skopeo --registries-conf " + file
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	path := request.URL.Path
	directory := path[:strings.LastIndex(path, "/")+1]
	isUpload := strings.HasSuffix(directory, "/blobs/uploads/")
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		content, found := r.content[path]
		switch {
		case path == "/v2/":
		case !found && strings.HasSuffix(directory, "/manifests/"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}`))
		case !found:
			http.NotFound(w, request)
		default:
			w.Header().Set("Content-Type", r.types[path])
			_, _ = w.Write(content) // of a HEAD, net/http keeps the length
		}
	case http.MethodPost: // the beginning of an upload
		location := path + digest([]byte(request.RemoteAddr+hex.EncodeToString(body)))
		r.upload[location] = nil
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPatch: // a part of it
		r.upload[path] = append(r.upload[path], body...)
		w.Header().Set("Location", path)
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut: // its end, or a manifest
		if isUpload {
			body = append(r.upload[path], body...)
			delete(r.upload, path)
			directory = strings.TrimSuffix(directory, "uploads/")
			path = directory + request.URL.Query().Get("digest")
		}
		if isUpload && path != directory+digest(body) {
			http.Error(w, "another digest", http.StatusBadRequest)
			return
		}
		for _, name := range []string{path, directory + digest(body)} {
			r.content[name] = body
			r.types[name] = request.Header.Get("Content-Type")
		}
		w.Header().Set("Docker-Content-Digest", digest(body))
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
