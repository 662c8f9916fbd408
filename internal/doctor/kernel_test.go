// Copyright The iptables-wrappers Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"github.com/iptables-wrappers/iptables-wrappers/detect"
)

// Kernels that cannot be had here.
func TestKernel(t *testing.T) {
	const lacking = "matches and targets of iptables (nft_compat)"
	for _, test := range []struct {
		doc         string
		here        detect.Backend
		nft, legacy detect.Answer // the kernel has it
		lacks       string
		loadable    bool   // the modules are here
		cannot      bool   // load modules
		want        string // a part of the text, "" for no finding
	}{
		{
			doc:  "RHEL 10 without kernel-modules-extra",
			here: detect.NFT, nft: detect.Yes, legacy: detect.No, lacks: lacking,
			want: "with either backend: nf_tables lacks " + lacking + ", and ip_tables is not loaded, and this " +
				"container cannot load it.",
		},
		{
			doc:  "no nf_tables, and nothing of legacy",
			here: detect.Legacy, nft: detect.No, legacy: detect.No,
			want: "with either backend: this kernel has no nf_tables",
		},
		{
			doc:  "no nf_tables, and a module of legacy",
			here: detect.Legacy, nft: detect.No, legacy: detect.No, loadable: true,
		},
		{
			doc:  "no nf_tables, and a module of legacy that may not be loaded",
			here: detect.Legacy, nft: detect.No, legacy: detect.No, loadable: true, cannot: true,
			want: "with either backend: this kernel has no nf_tables, and ip_tables is not loaded, and this " +
				"container cannot load it",
		},
		{
			doc:  "no nf_tables, and it is not known whether there is legacy",
			here: detect.Legacy, nft: detect.No, legacy: detect.Unknown,
		},
		{
			doc:  "nf_tables lacks something, and nft is what runs",
			here: detect.NFT, nft: detect.Yes, legacy: detect.Yes, lacks: lacking,
			want: "it should run nft, and nf_tables lacks " + lacking,
		},
		{
			doc:  "nf_tables lacks something, and legacy is what runs",
			here: detect.Legacy, nft: detect.Yes, legacy: detect.Yes, lacks: lacking,
		},
		{
			doc:  "no x_tables, and legacy is what runs",
			here: detect.Legacy, nft: detect.Yes, legacy: detect.No,
			want: "it should run legacy, and ip_tables is not loaded",
		},
		{
			doc:  "a kernel without legacy is normal",
			here: detect.NFT, nft: detect.Yes, legacy: detect.No,
		},
	} {
		s := permitted()
		s.lacks, s.loadable, s.process.sysModule = test.lacks, test.loadable, !test.cannot
		s.names[0].call.Backend = test.here
		s.host.Evidence.NFT.Kernel = test.nft
		s.host.Evidence.Legacy.Kernel = test.legacy
		found := s.kernel()
		if found == nil != (test.want == "") || found != nil && !strings.Contains(found.Text, test.want) {
			t.Errorf("%s: got %+v", test.doc, found)
		}
	}
}
