# Copyright The iptables-wrappers Authors
# SPDX-License-Identifier: Apache-2.0

names="iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore"

# backend BACKEND NAME ...: runs one backend's program, regardless of what the six commands resolve to.
backend() {
	"/usr/sbin/xtables-$1-multi" "${@:2}"
}

# direct BACKEND: the six commands resolve to one backend's programs, as in an image without the wrapper.
direct() {
	local name
	for name in $names; do
		ln -sf "/usr/sbin/${name/tables/tables-$1}" "/etc/alternatives/$name"
	done
}

# wrap installs the wrapper, as an image build does.
wrap() {
	cp /test/bin/iptables-wrapper /usr/sbin/iptables-wrapper
	iptables-wrapper install >/dev/null
}

load_host() {
	local family
	case $HOST in
	hint)
		for family in iptables ip6tables; do
			backend "$BACKEND" $family-restore </test/module/box/hosts/kubelet.save
		done
		;;
	docker) backend "$BACKEND" iptables-restore </test/module/box/hosts/docker.save ;;
	node) backend "$BACKEND" iptables-restore </test/nodes/kind-node.save ;;
	empty) ;;
	esac
}

# record NAME: saves every rule in both backends, and which tables exist.
record() {
	local family backend
	{
		for backend in nft legacy; do
			for family in iptables ip6tables; do
				echo "== $backend $family"
				backend $backend $family-save 2>&1
			done
		done
		for family in ip ip6; do
			echo "== legacy tables of $family"
			sort "/proc/net/${family}_tables_names"
		done
		echo "== nft tables"
		$nft list tables
	} >"/test/out/$((++step)).$1.rules"
}
step=100
nft=nft

# run NAME COMMAND ...: saves the command's exit status and output, and the rules after it.
run() {
	local name=$1 status=0
	shift
	"$@" </dev/null >"/test/out/$((step + 1)).$name.stdout" 2>"/test/out/$((step + 1)).$name.stderr" || status=$?
	echo $status >"/test/out/$((step + 1)).$name.status"
	record "$name"
}

# wait_for COMMAND ...: repeats the command until it succeeds; after five minutes, the whole run fails.
wait_for() {
	local i
	for ((i = 0; i < 3000; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "waited in vain for: $*" >&4
	exit 1
}

file_gone() { [ ! -e "$1" ]; }
