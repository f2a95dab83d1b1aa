#!/usr/bin/env bash
# Installs Ceph's RADOS Gateway and what start-rgw.sh needs, from Debian (or Ubuntu) packages.
# Why Ceph: it is production S3 code, checks signatures and honours If-None-Match, on which the commit of a night rests.
set -euo pipefail

run_as_root=()
if [ "$(id -u)" -ne 0 ]; then
  sudo -n true 2>/dev/null || { echo "install-rgw: needs root, or sudo without a password" >&2; exit 77; }
  run_as_root=(sudo -n)
fi
command -v apt-get >/dev/null || { echo "install-rgw: needs apt-get; install radosgw, ceph-mon, ceph-osd and curl by hand" >&2; exit 69; }

"${run_as_root[@]}" apt-get update -q
# No recommends: they bring a metadata server, a manager and their Python stack, which one gateway does not need.
"${run_as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -q --no-install-recommends radosgw ceph-mon ceph-osd ceph-common curl
