"""An example of a DAG that starts when a night is published, for the same partition. It keeps a corpus, a table in a DuckDB file, up to date:
it takes away and adds what the night changed. Needs the package duckdb, and documents in Parquet files."""

import json
import os
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from airflow.sdk import DAG, PartitionedAssetTimetable, task

from nearprint_operator import CONFIG, FOLDER, NIGHT

# The file of the corpus.
CORPUS = os.environ.get("NEARPRINT_CORPUS", "/var/lib/nearprint/corpus.duckdb")


def filtered(output, *what):
    """Writes documents below `output`, and returns the summary and the files."""
    command = ["nearprint", "filter", "--config", CONFIG, *what, "--output", str(output), "--json"]
    done = subprocess.run(command, cwd=FOLDER, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout), [str(file) for file in output.glob("dt=*/**/*.parquet")]


def update(dt):
    """Brings the corpus to the state after a night, in one transaction. The changes of a night follow on those of the night before it, so
    a night out of order, or a published one that came again, takes the whole corpus anew."""
    with TemporaryDirectory() as folder, closing(duckdb.connect(CORPUS)) as corpus:
        corpus.execute("CREATE TABLE IF NOT EXISTS documents (id VARCHAR, text VARCHAR)")
        corpus.execute("CREATE TABLE IF NOT EXISTS state (dt VARCHAR)")
        newest = corpus.execute("SELECT max(dt) FROM state").fetchone()[0]
        new = Path(folder, "new")
        summary, files = filtered(new, "--new", "--dt", dt)
        corpus.begin()
        if summary.get("previous") == newest:
            corpus.execute("DELETE FROM documents WHERE id IN (SELECT doc_id FROM read_parquet(?))", [str(new / "_removed/*.parquet")])
        else:
            dt = max(dt, newest or dt)
            _, files = filtered(Path(folder, "corpus"), "--corpus", "--dt", dt)
            corpus.execute("DELETE FROM documents")
        if files:
            corpus.execute("INSERT INTO documents SELECT id, text FROM read_parquet(?)", [files])
        corpus.execute("DELETE FROM state")
        corpus.execute("INSERT INTO state VALUES (?)", [dt])
        corpus.commit()
        return corpus.execute("SELECT count(*) FROM documents").fetchone()[0]


with DAG(dag_id="after_night", schedule=PartitionedAssetTimetable(assets=NIGHT), catchup=False, max_active_runs=1):

    @task
    def look_at_night(dag_run=None, triggering_asset_events=None):
        event = triggering_asset_events[NIGHT][-1]
        summary = event.extra
        print(f"night {dag_run.partition_key}: {summary['status']}, {summary['n_drop']} of {summary['n_documents']} dropped")
        # Later nights that were made without this one: a DAG of yours may run them again with `replace`.
        return {"dt": summary["dt"], "stale": summary["stale"]}

    @task(retries=2)
    def update_corpus(night):
        print(f"{update(night['dt'])} documents in the corpus after {night['dt']}")

    update_corpus(look_at_night())
