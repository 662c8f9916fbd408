#!/bin/bash
# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

# Makes a cluster with kind, kube-proxy in one mode, and flannel with this wrapper in its image, and looks at where flannel's rules went,
# and whether a Pod reaches a service: kind.sh iptables|nftables. It needs docker, kubectl, curl, Go and a network.
set -euo pipefail
mode=${1:?usage: kind.sh iptables|nftables}
cd "$(dirname "$0")/../.."
cluster=iptables-wrapper-$mode
flannel=$(sed -n 's|.*github.com/flannel-io/flannel \(v[^ ]*\).*|\1|p' test/clients/agents/go.mod)
plugins=v1.8.0 # of containernetworking: flannel needs bridge, which kind's nodes do not have
kind=(go run sigs.k8s.io/kind@v0.33.0)
kubectl=(kubectl --context "kind-$cluster")
fail() { printf 'kind.sh: %s\n' "$*" >&2 && exit 1; }

scratch=$(mktemp -d)
cleanup() {
	local status=$?
	((status == 0)) || "${kubectl[@]}" get pods --all-namespaces --output wide || true
	((status == 0)) || "${kubectl[@]}" logs --namespace kube-flannel --selector app=flannel --tail=50 || true
	"${kind[@]}" delete cluster --name "$cluster" || true
	rm -rf "$scratch"
}
trap cleanup EXIT

docker build --tag iptables-wrapper .
docker build --tag flannel:with-wrapper - <<DOCKERFILE
FROM iptables-wrapper AS wrapper
FROM ghcr.io/flannel-io/flannel:$flannel
COPY --from=wrapper /iptables-wrapper /usr/sbin/
RUN iptables-wrapper install --force
DOCKERFILE

"${kind[@]}" create cluster --name "$cluster" --config - <<CONFIG
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking: {disableDefaultCNI: true, kubeProxyMode: $mode, podSubnet: 10.244.0.0/16}
nodes:
  - role: control-plane
  - role: worker
CONFIG
"${kind[@]}" load docker-image --name "$cluster" flannel:with-wrapper

mapfile -t nodes < <("${kind[@]}" get nodes --name "$cluster")
((${#nodes[@]} == 2)) || fail "the cluster has ${#nodes[@]} nodes"
arch=$(go env GOARCH)
curl --fail --silent --show-error --location --output "$scratch/plugins.tgz" \
	"https://github.com/containernetworking/plugins/releases/download/$plugins/cni-plugins-linux-$arch-$plugins.tgz"
container=$(docker create iptables-wrapper)
docker cp "$container:/iptables-wrapper" "$scratch/iptables-wrapper"
docker rm "$container" >/dev/null
for node in "${nodes[@]}"; do
	docker exec --interactive "$node" tar -xz -C /opt/cni/bin ./bridge <"$scratch/plugins.tgz"
	docker cp "$scratch/iptables-wrapper" "$node:/usr/local/bin/iptables-wrapper"
done

curl --fail --silent --show-error --location --output "$scratch/flannel.yml" \
	"https://github.com/flannel-io/flannel/releases/download/$flannel/kube-flannel.yml"
sed -i "s|image: .*/flannel:$flannel|image: docker.io/library/flannel:with-wrapper|" "$scratch/flannel.yml"
grep -q flannel:with-wrapper "$scratch/flannel.yml" || fail "flannel's manifest has another image"
"${kubectl[@]}" apply --filename "$scratch/flannel.yml"
"${kubectl[@]}" rollout status --namespace kube-flannel daemonset/kube-flannel-ds --timeout 180s
"${kubectl[@]}" wait --for=condition=Ready nodes --all --timeout 180s

# Through kube-proxy's rules to the API server, from the worker; through the cluster's DNS, over flannel.
"${kubectl[@]}" run client --image=docker.io/library/busybox:1.37 --restart=Never -- \
	wget --no-check-certificate -T 60 -O - https://kubernetes.default.svc.cluster.local/version
"${kubectl[@]}" wait --for=jsonpath='{.status.phase}'=Succeeded pod/client --timeout 180s

for node in "${nodes[@]}"; do
	backend=$(docker exec "$node" iptables-wrapper detect --strict) || fail "$node: not certain: $backend"
	case $backend in nft) other=legacy ;; *) other=nft ;; esac
	docker exec "$node" "iptables-$backend-save" | grep -q '^:FLANNEL-' || fail "$node: flannel's chains are not in $backend"
	! docker exec "$node" "iptables-$other-save" | grep -q '^:FLANNEL-' || fail "$node: flannel's chains are in $other"
	echo "$node, kube-proxy in mode $mode: flannel's rules are in $backend"
done
for pod in $("${kubectl[@]}" get pods --namespace kube-flannel --selector app=flannel --output name); do
	"${kubectl[@]}" exec --namespace kube-flannel "$pod" -c kube-flannel -- iptables-wrapper doctor || fail "$pod: doctor found a problem"
done
