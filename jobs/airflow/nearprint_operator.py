"""The task of the DAGs here: `nearprint run` for one night. What the run does is in the job file, not here."""

import json
import os
import shlex
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import Asset, BaseOperator, Param

try:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException
except ImportError:
    # Airflow 3.0 and 3.1.
    from airflow.exceptions import AirflowException, AirflowFailException

# The job file, at whose folder its relative paths begin, and the folder in which the command starts. A DAG file sees the environment of the DAG processor and of the worker.
CONFIG = os.environ.get("NEARPRINT_CONFIG", "/opt/nearprint/jobs/nightly.toml")
FOLDER = os.environ.get("NEARPRINT_FOLDER", "/")
# More arguments of `nearprint run`, as a shell would split them. {dt} in them is the night.
RUN_ARGS = os.environ.get("NEARPRINT_RUN_ARGS", "")
# 1: a night whose crawl has not arrived is tried again. A missing job file or store (66) is not.
RETRY_MISSING_INPUT = os.environ.get("NEARPRINT_RETRY_MISSING_INPUT") == "1"

# A published night. The `extra` of its events is the summary of the run.
NIGHT = Asset("nearprint_night")

# What a person who triggers a run may give.
PARAMS = {
    "dt": Param(None, type=["null", "string"], format="date", description="The night, in place of the run's own"),
    "late": Param(False, type="boolean", description="Allow a night before the store's newest"),
    "replace": Param(False, type="boolean", description="Publish the night again"),
}

# "Try again", for a crawl that is late.
LATE = 75
# Usage, bad data or a breaker, no input, a bug, published with other content, permissions, bad configuration: a retry ends in the same way.
PERMANENT_EXIT_CODES = {64, 65, 66, 70, 73, 77, 78}


def night(context) -> str:
    """The night of a run: of its parameter, of its partition, or the day for which or on which it was started."""
    dag_run = context["dag_run"]
    key = getattr(dag_run, "partition_key", None)
    day = dag_run.logical_date or dag_run.run_after
    return context["params"].get("dt") or (key[:10] if key else day.strftime("%Y-%m-%d"))


class NearprintOperator(BaseOperator):
    """Runs a night. Its XCom is the summary, after a failure too. A permanent exit code spends no retry."""

    template_fields = ("config", "args", "env")

    def __init__(self, *, config=CONFIG, folder=FOLDER, retry_missing_input=RETRY_MISSING_INPUT, args=RUN_ARGS, env=None, **kwargs):
        super().__init__(**kwargs)
        self.config, self.folder, self.args, self.env = config, folder, args, env or {}
        self.late = ["--late-exit-code", str(LATE)] if retry_missing_input else []
        self.process = SubprocessHook()

    def execute(self, context):
        dt = night(context)
        flags = [f"--{name}" for name in ("late", "replace") if context["params"].get(name)]
        flags += [argument.replace("{dt}", dt) for argument in shlex.split(self.args)]
        with TemporaryDirectory() as temporary:
            file = Path(temporary, "summary.json")
            command = ["nearprint", "run", "--config", self.config, "--dt", dt, "--summary-file", str(file), *self.late, *flags]
            code = self.process.run_command(command, env=os.environ | self.env, cwd=self.folder).exit_code
            summary = json.loads(file.read_bytes()) if file.exists() else {}
        if code != 0:
            context["ti"].xcom_push(key="return_value", value=summary)
            self.fail(dt, code, summary)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = summary
        return summary

    def fail(self, dt, code, summary):
        ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        error = AirflowFailException if code in PERMANENT_EXIT_CODES else AirflowException
        raise error(f"night {dt}, {ended}: {summary.get('error', 'no summary, see the log above')}")

    def on_kill(self):
        # nearprint ends within a second, and publishes nothing.
        self.process.send_sigterm()
