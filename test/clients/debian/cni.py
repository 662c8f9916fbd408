# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

"""cni.py COMMAND POD PORT: calls the plugins of a chain, as a container runtime does."""

import json
import os
import subprocess
import sys

PLUGINS = [
    {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "2001:db8:9::/64"}]],
            "dataDir": "/var/lib/cni",
        },
    },
    {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
    {"type": "firewall", "backend": "iptables"},
]


def main(command, pod, port):
    environment = dict(
        os.environ,
        CNI_COMMAND=command,
        CNI_CONTAINERID=pod,
        CNI_NETNS="/run/netns/" + pod,
        CNI_IFNAME="eth0",
        CNI_PATH="/usr/lib/cni",
    )
    result = None
    kept = "/run/result." + pod
    if command != "ADD" and os.path.exists(kept):
        with open(kept, encoding="utf-8") as file:
            result = json.load(file)
    for plugin in PLUGINS if command != "DEL" else reversed(PLUGINS):
        config = dict(plugin, cniVersion="0.4.0", name="test")
        if plugin["type"] == "portmap":
            mapping = {"hostPort": int(port), "containerPort": 80, "protocol": "tcp"}
            config["runtimeConfig"] = {"portMappings": [mapping]}
        if result:
            config["prevResult"] = result
        done = subprocess.run(
            ["/usr/lib/cni/" + plugin["type"]],
            input=json.dumps(config),
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            sys.exit(done.returncode)
        if command == "ADD":
            result = json.loads(done.stdout)
    if command == "ADD":
        with open(kept, "w", encoding="utf-8") as file:
            json.dump(result, file)


main(*sys.argv[1:])
