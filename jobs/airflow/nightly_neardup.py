"""Airflow 3.2 and later: a night is a partition. Its key is the date that `nearprint run --dt` gets."""

import os
from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, Asset, CronPartitionTimetable, PartitionedAssetTimetable

from nearprint_operator import NIGHT, PARAMS, NearprintOperator

# Where the crawl is a DAG with a partitioned asset, the name of that asset: a night then runs as soon as its crawl is there.
CRAWL = os.environ.get("NEARPRINT_CRAWL_ASSET")

with DAG(
    dag_id="nightly_neardup",
    # 02:30 UTC, after the crawl has closed its partition; the partition is the day that has just begun. `run_offset=-1` is the day before.
    schedule=PartitionedAssetTimetable(assets=Asset.ref(name=CRAWL))
    if CRAWL
    else CronPartitionTimetable("30 2 * * *", timezone="UTC", key_format="%Y-%m-%d"),
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
