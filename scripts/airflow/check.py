"""check.py WORK SAMPLE: triggers the DAGs of a running Airflow, and compares what becomes of them with what should. See check.sh."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

WORK, SAMPLE = Path(sys.argv[1]), Path(sys.argv[2])
URL = "http://127.0.0.1:18089"
SECONDS = 240
token = None
failures = []


def ask(path, body=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{path}: {error.code} {error.read().decode()[:500]}") from error


def until(what, seconds=SECONDS):
    """The first value of `what` that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := what():
                return value
        except OSError:
            pass
        time.sleep(0.5)
    raise TimeoutError(what.__doc__ or "no end")


def trigger(dag, key=None, **conf):
    run = ask(f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None, "partition_key": key, "conf": conf})
    return run["dag_run_id"]


def ended(dag, run):
    def state():
        now = ask(f"/api/v2/dags/{dag}/dagRuns/{run}")
        return now if now["state"] in ("success", "failed") else None

    return until(state)


def of_partition(dag, key, n=1):
    """The ended n-th run of a partition."""

    def run():
        runs = [run for run in ask(f"/api/v2/dags/{dag}/dagRuns?limit=100")["dag_runs"] if run["partition_key"] == key]
        runs = sorted(runs, key=lambda run: run["run_after"])
        return runs[n - 1] if len(runs) >= n and runs[n - 1]["state"] in ("success", "failed") else None

    return until(run)


def look(dag, run, task="neardup"):
    """State, tries and summary of a run's task."""
    base = f"/api/v2/dags/{dag}/dagRuns/{run['dag_run_id']}/taskInstances/{task}"
    instance = ask(base)
    try:
        summary = ask(f"{base}/xcomEntries/return_value")["value"]
    except RuntimeError:
        summary = {}
    if isinstance(summary, str):
        summary = json.loads(summary)
    log = json.dumps(ask(f"{base}/logs/{instance['try_number']}?full_content=true"))
    return instance["state"], instance["try_number"], summary, log


def check(what, is_so, seen):
    print(f"{'ok  ' if is_so else 'FAIL'} {what}: {seen}", flush=True)
    if not is_so:
        failures.append(what)


def brief(state, tries, summary):
    return f"{state}, try {tries}, " + ", ".join(f"{k}={summary[k]}" for k in ("status", "exit_code", "error", "stale") if k in summary)


def partitions_out_of_order():
    for dt, source in (("2026-11-19", "2026-11-19"), ("2026-11-21", "2026-11-20"), ("2026-11-20", "2026-11-20")):
        shutil.copytree(SAMPLE / f"dt={source}", WORK / f"crawled/dt={dt}")
        trigger("crawl", dt)
        run = of_partition("nightly_neardup", dt)
        state, tries, summary, log = look("nightly_neardup", run)
        if dt != "2026-11-20":
            check(f"crawl of {dt} starts its night", (state, summary.get("status")) == ("success", "published"), brief(state, tries, summary))
            continue
        is_so = (state, tries, summary.get("exit_code")) == ("failed", 1, 64) and f"night {dt}, exit code 64: {summary['error'][:20]}" in log
        check("an earlier night fails at once and says why, in XCom and exception", is_so, brief(state, tries, summary))
    run = ended("nightly_neardup", trigger("nightly_neardup", "2026-11-20", late=True))
    state, tries, summary, _ = look("nightly_neardup", run)
    check("with `late` it is published", summary.get("stale") == ["2026-11-21"], brief(state, tries, summary))
    for dt in ("2026-11-19", "2026-11-21", "2026-11-20"):
        run = of_partition("after_night", dt)
        state, _, value, log = look("after_night", run, "look_at_night")
        check(f"downstream sees the event of {dt}", state == "success" and value["dt"] == dt and f"night {dt}: published" in log, value)
        state, _, _, log = look("after_night", run, "update_corpus")
        check(f"the corpus is brought to the state after {dt}", state == "success" and " documents in the corpus" in log, state)


def rerun():
    run = ended("nightly_neardup", trigger("nightly_neardup", "2026-11-19"))
    state, tries, summary, _ = look("nightly_neardup", run)
    check("a rerun changes nothing", (state, summary.get("status")) == ("success", "already_published"), brief(state, tries, summary))


def missing_and_empty():
    for dt, what in (("2026-11-22", "missing"), ("2026-11-23", "empty")):
        if what == "empty":
            (WORK / f"crawled/dt={dt}").mkdir(parents=True)
        trigger("crawl", dt)
        state, tries, summary, _ = look("nightly_neardup", of_partition("nightly_neardup", dt))
        check(f"{what} partition: not retried", (state, tries, summary.get("exit_code")) == ("failed", 1, 66), brief(state, tries, summary))
    run = trigger("late_crawl", dt="2026-11-24")
    until(lambda: ask(f"/api/v2/dags/late_crawl/dagRuns/{run}/taskInstances/neardup")["state"] == "up_for_retry")
    shutil.copytree(SAMPLE / "dt=2026-11-20", WORK / "documents/dt=2026-11-24")
    state, tries, summary, _ = look("late_crawl", ended("late_crawl", run))
    check("a late crawl is waited for, if asked", state == "success" and tries > 1, brief(state, tries, summary))


def without_date():
    run = ended("nightly_neardup_cron", trigger("nightly_neardup_cron"))
    state, tries, summary, _ = look("nightly_neardup_cron", run)
    is_today = summary.get("dt") == run["run_after"][:10]
    # Today may be one of the nights of this trial.
    has_documents = (WORK / f"documents/dt={run['run_after'][:10]}").exists()
    is_as_meant = state == "success" if has_documents else (state, summary.get("exit_code")) == ("failed", 66)
    check("a run without logical date is for the day of its trigger", is_as_meant and is_today, brief(state, tries, summary))
    run = ended("nightly_neardup_cron", trigger("nightly_neardup_cron", dt="2026-11-19"))
    state, tries, summary, _ = look("nightly_neardup_cron", run)
    check("or for the night of its parameter", (state, summary.get("dt")) == ("success", "2026-11-19"), brief(state, tries, summary))


def nearprints():
    """The processes of tasks here."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"nearprint") and os.fsencode(WORK / "locked.toml") in words:
            found.append(int(process.name))
    return found


def killed():
    shutil.copytree(SAMPLE / "dt=2026-11-20", WORK / "documents/dt=2026-11-25")
    with open(WORK / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = trigger("killed", dt="2026-11-25")
        [process] = until(nearprints)
        os.kill(process, signal.SIGKILL)
        until(lambda: process not in nearprints())
    state, tries, summary, _ = look("killed", ended("killed", run))
    check("a killed task is tried again", (state, tries, summary.get("status")) == ("success", 2, "published"), brief(state, tries, summary))


def twice():
    shutil.copytree(SAMPLE / "dt=2026-11-19", WORK / "documents/dt=2026-11-26")
    before = commit()
    runs = [trigger("twice", dt="2026-11-26") for _ in range(2)]
    seen = [look("twice", ended("twice", run)) for run in runs]
    summaries = [summary for _, _, summary, _ in seen]
    said = [f"{summary['status']} as commit {summary['commit']}" for summary in summaries]
    is_one = {summary["commit"] for summary in summaries} == {before + 1} and commit() == before + 1
    check("two runs at once make one commit", is_one, ", ".join(said))


def commit():
    info = subprocess.run(["nearprint", "store", "info", str(WORK / "out/store"), "--json"], capture_output=True, check=True, text=True)
    return json.loads(info.stdout.splitlines()[-1])["commit"]


started = time.monotonic()
until(lambda: ask("/api/v2/monitor/health")["scheduler"]["status"] == "healthy")
token = ask("/auth/token")["access_token"]
WANTED = {"crawl", "nightly_neardup", "nightly_neardup_cron", "after_night", "late_crawl", "killed", "twice"}
until(lambda: WANTED <= {dag["dag_id"] for dag in ask("/api/v2/dags")["dags"]})
print(f"Airflow {ask('/api/v2/version')['version']} is up after {time.monotonic() - started:.0f} s", flush=True)
for part in (partitions_out_of_order, rerun, missing_and_empty, without_date, killed, twice):
    part()
print(f"{len(failures)} failures after {time.monotonic() - started:.0f} s")
sys.exit(1 if failures else 0)
