"""A night as a flow of Prefect. What the run does is in the job file, not here.

    python nearprint_night.py 2026-11-20      one night
    python nearprint_night.py                 serve the flow, which runs every night at 02:30 UTC
"""

import datetime
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from prefect import flow, get_run_logger, runtime, task

CONFIG = os.environ.get("NEARPRINT_CONFIG", "/opt/nearprint/jobs/nightly.toml")
# More arguments of `nearprint run`. {dt} in them is the night.
RUN_ARGS = os.environ.get("NEARPRINT_RUN_ARGS", "")
RETRIES = int(os.environ.get("NEARPRINT_RETRIES", "12"))
RETRY_SECONDS = float(os.environ.get("NEARPRINT_RETRY_SECONDS", "600"))

# Usage, bad data or a breaker, no input, a bug, published with other content, no permission, bad configuration: a retry ends in the same way.
PERMANENT_EXIT_CODES = {64, 65, 66, 70, 73, 77, 78}


class NightFailed(RuntimeError):
    """A night that failed, and its exit code."""

    def __init__(self, dt, exit_code, reason):
        super().__init__(f"night {dt}, exit code {exit_code}: {reason}")
        self.exit_code = exit_code


def may_pass(task, run, state) -> bool:
    """Whether a night is worth another try."""
    try:
        state.result()
    except NightFailed as failed:
        return failed.exit_code not in PERMANENT_EXIT_CODES
    except Exception:
        return True
    return False


def follow(command, log) -> int:
    """Runs a command and logs what it says, line by line. Whatever ends the wait, such as a cancelled run, ends the command too, which publishes nothing then."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        try:
            for line in process.stderr:
                log(line.rstrip())
            return process.wait()
        except BaseException:
            # SIGTERM: nearprint ends within a second.
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
            raise


@task(retries=RETRIES, retry_delay_seconds=RETRY_SECONDS, retry_condition_fn=may_pass, task_run_name="{dt}")
def near_duplicates(dt: str) -> dict:
    """Runs a night, and returns its summary."""
    with TemporaryDirectory() as temporary:
        file = Path(temporary, "summary.json")
        command = ["nearprint", "run", "--config", CONFIG, "--dt", dt, "--summary-file", str(file), "--late-exit-code", "75"]
        more = [argument.replace("{dt}", dt) for argument in shlex.split(RUN_ARGS)]
        code = follow([*command, *more], get_run_logger().info)
        summary = json.loads(file.read_bytes()) if file.exists() else {}
    if code != 0:
        raise NightFailed(dt, code, summary.get("error", "no summary, see the log above"))
    return summary


@flow(name="nearprint")
def night(dt: str | None = None) -> dict:
    """One night: the given one, or the day for which the flow was scheduled, in UTC."""
    day = runtime.flow_run.scheduled_start_time or datetime.datetime.now(datetime.timezone.utc)
    return near_duplicates(dt or day.strftime("%Y-%m-%d"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(night(sys.argv[1])))
    else:
        # One night at a time: those that are late run from the oldest on. A restart does not pause the schedule.
        night.serve(name="nightly", cron="30 2 * * *", limit=1, pause_on_shutdown=False)
