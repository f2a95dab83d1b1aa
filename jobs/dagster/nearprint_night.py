"""A night as an asset of Dagster, with a partition for each night. What the run does is in the job file, not here."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg

CONFIG = os.environ.get("NEARPRINT_CONFIG", "/opt/nearprint/jobs/nightly.toml")
FIRST_NIGHT = os.environ.get("NEARPRINT_FIRST_NIGHT", "2026-11-19")
# More arguments of `nearprint run`. {dt} in them is the night.
RUN_ARGS = os.environ.get("NEARPRINT_RUN_ARGS", "")
RETRIES = int(os.environ.get("NEARPRINT_RETRIES", "12"))
RETRY_SECONDS = float(os.environ.get("NEARPRINT_RETRY_SECONDS", "600"))

# Usage, bad data or a breaker, no input, a bug, published with other content, no permission, bad configuration: a retry ends in the same way.
PERMANENT_EXIT_CODES = {64, 65, 66, 70, 73, 77, 78}


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


# The night of a day is run on that day, and not when it is over.
nights = dg.DailyPartitionsDefinition(start_date=FIRST_NIGHT, end_offset=1)


# A backfill runs each night after the one before it: nights build on each other.
the_night_before = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)


@dg.asset(partitions_def=nights, group_name="nearprint", deps=[dg.AssetDep("near_duplicates", partition_mapping=the_night_before)])
def near_duplicates(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The decisions of a night: which documents stay, and which of them represents each other one."""
    dt = context.partition_key
    with TemporaryDirectory() as temporary:
        file = Path(temporary, "summary.json")
        command = ["nearprint", "run", "--config", CONFIG, "--dt", dt, "--summary-file", str(file), "--late-exit-code", "75"]
        more = [argument.replace("{dt}", dt) for argument in shlex.split(RUN_ARGS)]
        code = follow([*command, *more], context.log.info)
        summary = json.loads(file.read_bytes()) if file.exists() else {}
    numbers = {name: value for name, value in summary.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
    if code == 0:
        return dg.MaterializeResult(metadata={**numbers, "status": summary["status"], "summary": dg.MetadataValue.json(summary)})
    reason = f"night {dt}, exit code {code}: {summary.get('error', 'no summary, see the log above')}"
    if code in PERMANENT_EXIT_CODES:
        raise dg.Failure(reason, metadata=numbers, allow_retries=False)
    raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=RETRY_SECONDS) from dg.Failure(reason)


# It runs as soon as the code is loaded; without the status somebody would have to start it first.
@dg.schedule(
    job=dg.define_asset_job("nightly", [near_duplicates], partitions_def=nights),
    cron_schedule="30 2 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def every_night(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """The night of the day on which the schedule ticks, in UTC."""
    return dg.RunRequest(partition_key=context.scheduled_execution_time.strftime("%Y-%m-%d"))


defs = dg.Definitions(assets=[near_duplicates], schedules=[every_night])
