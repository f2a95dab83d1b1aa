#!/usr/bin/env bash
# start-rgw.sh DIR PORT [BUCKET]: a real S3 server for tests on 127.0.0.1, gone without trace after stop-rgw.sh DIR.
#
# One monitor, one object store daemon that keeps everything in memory, and Ceph's S3 gateway in front of it.
# Prints the variables that the tests read (also left in DIR/env) and creates BUCKET.
# Ports used: PORT for S3, PORT+1 for the monitor, PORT+10 to PORT+60 for the others.
set -euo pipefail

[ $# -ge 2 ] || { echo "usage: start-rgw.sh DIR PORT [BUCKET]" >&2; exit 64; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
port=$2
bucket=${3:-}
access_key=nearprint-test
secret_key=nearprint-test-secret
endpoint=http://127.0.0.1:$port
scripts=$(cd "$(dirname "$0")" && pwd)

say() { echo "start-rgw: $*" >&2; }

for tool in radosgw radosgw-admin ceph-mon ceph-osd ceph ceph-authtool monmaptool curl; do
  command -v "$tool" >/dev/null || { say "$tool is missing; scripts/install-rgw.sh installs it"; exit 69; }
done

# DIR is emptied, so it has to be empty already or to be ours.
if [ -e "$dir/ceph.conf" ]; then
  bash "$scripts/stop-rgw.sh" "$dir"
elif [ -n "$(ls -A "$dir")" ]; then
  say "$dir is not empty and was not made by this script"
  exit 73
fi
# Another server on the port would answer the probes below in our gateway's place.
if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then say "port $port is in use"; exit 69; fi
rm -rf "${dir:?}/log"
mkdir -p "$dir"/{mon,osd,rgw,run,log}

cluster_id=$(cat /proc/sys/kernel/random/uuid)
osd_id=$(cat /proc/sys/kernel/random/uuid)
cat >"$dir/ceph.conf" <<CONF
[global]
fsid = $cluster_id
mon host = [v2:127.0.0.1:$((port + 1))]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
ms bind port min = $((port + 10))
ms bind port max = $((port + 60))
keyring = $dir/keyring
mon data = $dir/mon
osd data = $dir/osd
rgw data = $dir/rgw
run dir = $dir/run
pid file = $dir/run/\$name.pid
admin socket = $dir/run/\$name.asok
log file = $dir/log/\$name.log
# One copy in memory: tests want speed, not safety. A full disk below DIR must not stop the monitor.
osd objectstore = memstore
memstore device bytes = 4294967296
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail warn = 2
# Tests stop the daemon for 20 seconds. Its placement groups refuse all reads once their lease, 0.8 of this, has run out, and with one
# daemon nobody gives them another.
osd heartbeat grace = 120
mon data avail crit = 1
# The gateway makes its pools one after the other, each waiting for the monitor: shorter waits let it start in seconds.
mon max pg per osd = 1000
paxos propose interval = 0.05
paxos min wait = 0.01
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:$port
CONF

# The gateway refuses to run without authentication, so every daemon gets an entry; one key will do on loopback.
key=$(ceph-authtool --gen-print-key)
for name in mon. osd.0 client.admin client.rgw; do
  printf '[%s]\nkey = %s\ncaps mon = "allow *"\ncaps osd = "allow *"\ncaps mgr = "allow *"\n' "$name" "$key"
done >"$dir/keyring"
chmod 600 "$dir/keyring"

# The configuration is named on every command line: stop-rgw.sh knows its own processes by it.
conf=(--conf "$dir/ceph.conf")
trap 'say "failed; the logs are in $dir/log"; bash "$scripts/stop-rgw.sh" "$dir"' EXIT

# eventually SECONDS COMMAND...: repeats a probe until it succeeds.
eventually() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >>"$dir/log/probe.log" 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || { say "gave up waiting for: $*"; return 1; }
    sleep 0.2
  done
}
osd_is_up() { ceph "${conf[@]}" --connect-timeout 5 osd stat | grep -q '1 up'; }
gateway_answers() { curl -fsS --max-time 5 -o /dev/null "$endpoint/"; }
# The SHA-256 of an empty body is named because older curls sign it without sending it, and the gateway then refuses.
# Creating a bucket that one has already is no error in S3, so this can be repeated.
create_bucket() {
  curl -fsS --max-time 10 -o /dev/null -X PUT "$endpoint/$bucket" \
    --aws-sigv4 "aws:amz:us-east-1:s3" --user "$access_key:$secret_key" \
    -H "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
}

# Without -f each daemon goes to the background by itself and writes its pid file.
monmaptool --create --addv a "[v2:127.0.0.1:$((port + 1))]" --fsid "$cluster_id" "$dir/monmap" >"$dir/log/setup.log" 2>&1
ceph-mon "${conf[@]}" -i a --mkfs --monmap "$dir/monmap" --keyring "$dir/keyring" >>"$dir/log/setup.log" 2>&1
ceph-mon "${conf[@]}" -i a >>"$dir/log/setup.log" 2>&1
eventually 30 ceph "${conf[@]}" --connect-timeout 5 mon stat

# Both commands must name the same id: the monitor drops the boot message of any other, and says nothing.
{
  ceph "${conf[@]}" osd new "$osd_id"
  ceph-osd "${conf[@]}" -i 0 --mkfs --osd-uuid "$osd_id"
  ceph-osd "${conf[@]}" -i 0
} >>"$dir/log/setup.log" 2>&1
eventually 60 osd_is_up

radosgw-admin "${conf[@]}" -n client.rgw user create --uid=nearprint-test --display-name=nearprint-test \
  --access-key="$access_key" --secret-key="$secret_key" >>"$dir/log/setup.log" 2>&1
radosgw "${conf[@]}" -n client.rgw >>"$dir/log/setup.log" 2>&1
eventually 60 gateway_answers
[ -z "$bucket" ] || eventually 30 create_bucket

cat >"$dir/env" <<ENV
NEARPRINT_TEST_S3_ENDPOINT=$endpoint
NEARPRINT_TEST_S3_BUCKET=$bucket
AWS_ACCESS_KEY_ID=$access_key
AWS_SECRET_ACCESS_KEY=$secret_key
AWS_REGION=us-east-1
AWS_ALLOW_HTTP=true
ENV
trap - EXIT
cat "$dir/env"
