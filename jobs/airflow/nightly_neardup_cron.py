"""Airflow 3 DAG: one `nearprint run` a night. What the run does is in the job file, not here."""

import json
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

CONFIG = "/opt/nearprint/jobs/nightly.toml"

# Usage, bad data or a breaker, no input, published with other content, bad configuration: the same again in five minutes.
PERMANENT_EXIT_CODES = (64, 65, 66, 73, 78)


class NearprintOperator(BashOperator):
    """Fails at once on a permanent exit code, so that no retry is spent on it."""

    def execute(self, context):
        # BashOperator tells exit codes apart in one way only: those to be skipped. Here they are the permanent ones.
        try:
            return super().execute(context)
        except AirflowSkipException as error:
            raise AirflowFailException("permanent exit code, see the log above: no retry would help") from error


with DAG(
    dag_id="nightly_neardup",
    # UTC, after the crawl has closed its partition.
    schedule="30 2 * * *",
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=False,
    # Nights build on each other. Two runs at once are safe, but one of them would work for nothing.
    max_active_runs=1,
):
    NearprintOperator(
        task_id="neardup",
        # In Airflow 3 `ds` is the day on which the run fires: at 02:30 on the 20th it is the 20th. Airflow 2 gave the 19th.
        # If the crawl of the 19th is meant, write {{ macros.ds_add(ds, -1) }}.
        bash_command=f"nearprint run --config {CONFIG} --dt {{{{ ds }}}} --json",
        # The summary is the last line of the output, and becomes the task's XCom as an object.
        output_processor=json.loads,
        skip_on_exit_code=PERMANENT_EXIT_CODES,
        # For what passes: store not reachable, throttled, disk full. A rerun of a published night changes nothing.
        retries=3,
        retry_delay=timedelta(minutes=5),
        # On timeout nearprint gets SIGTERM and publishes nothing.
        execution_timeout=timedelta(hours=6),
    )
