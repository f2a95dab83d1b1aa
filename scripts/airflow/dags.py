"""DAGs beside those of jobs/airflow, for check.py: a crawl that the nights wait for, and runs that meet trouble."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset, CronPartitionTimetable, task

from nearprint_operator import NIGHT, PARAMS, NearprintOperator

# The folder of the job file, in which check.sh has everything.
FOLDER = Path(os.environ["NEARPRINT_CONFIG"]).parent

with DAG(dag_id="crawl", schedule=CronPartitionTimetable("0 0 1 1 *", timezone="UTC", key_format="%Y-%m-%d"), catchup=False):

    @task(outlets=[Asset("crawl")])
    def crawl(dag_run=None):
        night = f"dt={dag_run.partition_key}"
        if (FOLDER / "crawled" / night).exists():
            shutil.copytree(FOLDER / "crawled" / night, FOLDER / "documents" / night, dirs_exist_ok=True)

    crawl()

PATIENT = {"retries": 5, "retry_delay": timedelta(seconds=3), "outlets": [NIGHT]}

# The crawl comes after the first try.
with DAG(dag_id="late_crawl", schedule=None, params=PARAMS):
    NearprintOperator(task_id="neardup", retry_missing_input=True, **PATIENT)

# Waits for a lock, and is killed meanwhile.
with DAG(dag_id="killed", schedule=None, params=PARAMS):
    NearprintOperator(task_id="neardup", config=str(FOLDER / "locked.toml"), **PATIENT)

# Runs that meet.
with DAG(dag_id="twice", schedule=None, params=PARAMS, max_active_runs=2):
    NearprintOperator(task_id="neardup", **PATIENT)
