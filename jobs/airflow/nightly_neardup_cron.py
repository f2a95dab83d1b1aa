"""Airflow 3.0 and 3.1, which have no partitions: the night is the day on which the schedule fires, in UTC."""

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG
from airflow.timetables.trigger import CronTriggerTimetable

from nearprint_operator import NIGHT, PARAMS, NearprintOperator

with DAG(
    dag_id="nightly_neardup_cron",
    # After the crawl has closed its partition. A bare "30 2 * * *" would mean the day before where `create_cron_data_intervals` is set.
    schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC"),
    start_date=datetime(2026, 11, 1, tzinfo=timezone.utc),
    catchup=False,
    # Nights build on each other. Two runs at once are safe, but one of them would work for nothing.
    max_active_runs=1,
    params=PARAMS,
):
    NearprintOperator(
        task_id="neardup",
        outlets=[NIGHT],
        # For what passes: store not reachable, throttled, disk full. A rerun of a published night changes nothing.
        retries=int(os.environ.get("NEARPRINT_RETRIES", 3)),
        retry_delay=timedelta(seconds=float(os.environ.get("NEARPRINT_RETRY_SECONDS", 300))),
        # On timeout nearprint gets SIGTERM and publishes nothing.
        execution_timeout=timedelta(hours=6),
    )
