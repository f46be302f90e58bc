#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on ranks that have a network of their own each: network namespaces joined by a bridge, so that MPI uses
# its real TCP transport and nothing of one machine's shared memory. Needs root, ip, unshare and Open MPI.
#
# usage: namespaces.sh RANKS COMMAND...     Exit code 77: this machine cannot do it.
#
# Each rank has a host name of its own, rank0, rank1, ..., and the address 10.231.7.1, .2, ...
set -euo pipefail
[[ $(id -u) -eq 0 ]] && command -v ip unshare mpirun >/dev/null && mpirun --version | grep -q 'Open MPI' || exit 77
ranks=$1
shift
bridge=ftbr$$
folder=$(mktemp -d)
names=()

clean() {
  for name in "${names[@]}"; do ip netns del "$name" 2>/dev/null || true; done
  ip link del "$bridge" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT

ip link add "$bridge" type bridge 2>/dev/null || exit 77
ip link set "$bridge" up
for ((r = 0; r < ranks; ++r)); do
  name=ft$$-$r
  names+=("$name")
  ip netns add "$name"
  ip link add "ftv$$-$r" type veth peer name eth0 netns "$name"
  ip link set "ftv$$-$r" master "$bridge" up
  ip -n "$name" link set lo up
  ip -n "$name" addr add "10.231.7.$((r + 1))/24" dev eth0
  ip -n "$name" link set eth0 up
done

# What mpirun starts its daemon on another machine with, in place of ssh: agent HOST COMMAND...
cat > "$folder/agent" <<AGENT
#!/bin/sh
host=\$1
shift
exec ip netns exec ft$$-\${host#rank} unshare --uts sh -c "hostname \$host; \$*"
AGENT
chmod +x "$folder/agent"

hosts=$(for ((r = 0; r < ranks; ++r)); do printf 'rank%d:1,' "$r"; done)
ip netns exec "${names[0]}" unshare --uts sh -c 'hostname rank0; exec "$@"' sh \
  mpirun --allow-run-as-root -n "$ranks" --host "${hosts%,}" --mca plm_rsh_agent "$folder/agent" \
  --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --bind-to none "$@"
