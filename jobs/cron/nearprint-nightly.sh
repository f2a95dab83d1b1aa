#!/usr/bin/env bash
# nearprint-nightly.sh CONFIG LOG_DIR [DATE]: a night's run, started by cron; without a date today's, in UTC. Its exit code is nearprint's own.
#
# A failure is printed, so that cron mails it. These variables, all optional, tell others too:
#   NEARPRINT_ON_FAILURE      a command that is started after a failure, with the summary on standard input and NEARPRINT_DT,
#                             NEARPRINT_EXIT_CODE and NEARPRINT_LOG in its environment
#   NEARPRINT_HEARTBEAT_URL   is asked for after a success, and URL/fail after a failure
#   NEARPRINT_WAIT_MINUTES    how long, in all, a run that holds the lock and a crawl that has not arrived are waited for; the crawl
#                             is looked for every NEARPRINT_WAIT_STEP_SECONDS (600). A missing job file or store is not waited for
#   NEARPRINT_NIGHT           which night is run without a DATE: today, or yesterday, for a crawl that closes at midnight
#   NEARPRINT_ZONE            the time zone in which it is that day, such as Asia/Shanghai (UTC); `time_zone` of the job file has no part in it
#   NEARPRINT_RUN_ARGS        more arguments of nearprint run, between blanks; {dt} in them is the night:
#                             --metrics-file /var/lib/metrics/nearprint.prom --report /srv/pages/{dt}.html
set -euo pipefail

[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: nearprint-nightly.sh CONFIG LOG_DIR [DATE]" >&2; exit 64; }
config=$1
log_dir=$2
# UTC unless asked: a date in local time would skip or repeat an hour twice a year, and differ from the crawl's.
zone=${NEARPRINT_ZONE:-UTC}
# At noon no zone changes its clock: yesterday at this hour may be another day, or none.
dt=${3:-$(TZ=$zone date -d "${NEARPRINT_NIGHT:-today} 12:00" +%F 2>/dev/null || true)}
given=${3:-}
is_day=yes
[ -n "$dt" ] || { is_day=; dt=unknown; }
more=${NEARPRINT_RUN_ARGS:-}
read -r -a more <<<"${more//'{dt}'/$dt}"
log=$log_dir/$dt.log
summary=$log_dir/$dt.json
child=
stopped=

say() {
    # A disk that is full changes no exit code.
    echo "$(date -u +%FT%TZ) $*" >>"$log" || true
}

# What cannot be reached, or hangs, changes nothing.
heartbeat() {
    [ -n "${NEARPRINT_HEARTBEAT_URL:-}" ] || return 0
    curl --silent --show-error --fail --max-time 10 --output /dev/null "$NEARPRINT_HEARTBEAT_URL$1" 2>>"$log" 9>&- || say "no heartbeat"
}

# What the last run has written to the log. A log that has no end is not read.
said() {
    local size
    size=$(stat -L -c %s "$log" 2>/dev/null || echo 0)
    [ "$size" -le "$before" ] || tail -c "+$((before + 1))" "$log" | head -c "$((size - before))"
}

# The summary, if the last run has written one: a killed run has not.
told() {
    if [ -e "$summary" ] && ! [ "$log_dir/began" -nt "$summary" ]; then
        cat "$summary"
    else
        printf '{"command":"run","dt":"%s","status":"failed","exit_code":%d}\n' "$dt" "$1"
    fi
}

failed() {
    local code=$1 error
    error=$2
    say "night $dt failed: exit code $code: $error"
    # cron mails what is printed.
    echo "nearprint: night $dt failed on $(hostname): exit code $code"
    echo "$error"
    echo "Log: $log. What to do: docs/troubleshooting.md."
    heartbeat /fail
    if [ -n "${NEARPRINT_ON_FAILURE:-}" ]; then
        NEARPRINT_DT=$dt NEARPRINT_EXIT_CODE=$code NEARPRINT_LOG=$log timeout 60 bash -c "$NEARPRINT_ON_FAILURE" \
            < <(told "$code") >>"$log" 2>&1 9>&- || say "NEARPRINT_ON_FAILURE failed"
    fi
    exit "$code"
}

# A signal goes to what the script waits for: nearprint, which then ends within a second and publishes nothing, or a pause.
stop() {
    stopped=yes
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null || true
}

# Runs a command that a signal to this script ends. Sets `code`.
await() {
    code=0
    "$@" >>"$log" 2>&1 &
    child=$!
    # A signal that came just before it was sent to nothing.
    [ -z "$stopped" ] || kill -TERM "$child" 2>/dev/null || true
    wait "$child" || code=$?
    # The signal ends the first wait before the command has ended.
    if kill -0 "$child" 2>/dev/null; then
        code=0
        wait "$child" || code=$?
    fi
    child=
}

run() {
    before=$(stat -L -c %s "$log" 2>/dev/null || echo 0)
    touch "$log_dir/began" || true
    await nearprint run --config "$config" --dt "$dt" --late-exit-code "$late" --json --summary-file "$summary" "${more[@]}"
}

# The lock belongs to descriptor 9, which nearprint inherits: it ends with the run, however that ends.
if ! mkdir -p "$log_dir" || ! { : >>"$log"; } || ! exec 9>"$log_dir/lock"; then
    log=/dev/null
    summary=
    failed 74 "$log_dir cannot be made or written: there is no log"
fi
trap stop TERM INT HUP
[ -n "$is_day" ] || failed 64 "NEARPRINT_NIGHT=${NEARPRINT_NIGHT:-today}: date knows no such day: write today or yesterday"
# date takes a zone that it does not know for UTC.
[ -n "$given" ] || [ "$zone" = UTC ] || [ -f "/usr/share/zoneinfo/$zone" ] \
    || failed 64 "NEARPRINT_ZONE=$zone: /usr/share/zoneinfo has no such time zone"
minutes=${NEARPRINT_WAIT_MINUTES:-0}
[[ $minutes =~ ^[0-9]+$ ]] || failed 64 "NEARPRINT_WAIT_MINUTES=$minutes: write a whole number"
# Until a run begins, no summary is of this night's tries.
touch "$log_dir/began" || true

# Last night's run may still be at work. Two at once are safe, but would share the memory; 75 means try again later.
wait=$((60 * 10#$minutes))
end=$((SECONDS + wait))
code=0
flock -n 9 || code=75
if [ "$code" -ne 0 ] && [ "$wait" -gt 0 ]; then
    say "night $dt: another run holds $log_dir/lock: waiting"
    [ -n "$stopped" ] || await flock -w "$wait" 9
    [ -z "$stopped" ] || failed 143 "stopped while another run held $log_dir/lock"
fi
[ "$code" -eq 0 ] || failed 75 "another run holds $log_dir/lock"

# 75 means "try again", for a crawl that is late and for whatever else passes. A missing job file or store is 66.
late=66
[ "$wait" -eq 0 ] || late=75
[ -z "$stopped" ] || failed 143 "stopped"
run
while [ "$code" -eq 75 ] && [ "$SECONDS" -lt "$end" ] && [ -z "$stopped" ]; do
    say "night $dt has to be tried again, its input may be late: waiting"
    await sleep "${NEARPRINT_WAIT_STEP_SECONDS:-600}"
    # The pause may have ended just before it was stopped.
    [ -z "$stopped" ] || { code=143; break; }
    run
done

[ "$code" -eq 0 ] || failed "$code" "$(said | grep '^nearprint: error: ' | tail -n 1 || echo "no message: see the log")"
heartbeat ""
