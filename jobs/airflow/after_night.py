"""An example of a DAG that starts when a night is published, for the same partition. It keeps a corpus, a table in a DuckDB file, up to date:
it follows the table `changes` of the results. Needs the packages duckdb and deltalake, and documents in Parquet files, each id once a night."""

import os
import tomllib
from contextlib import closing
from pathlib import Path

import duckdb
from airflow.sdk import DAG, PartitionedAssetTimetable, task
from deltalake import DeltaTable

from nearprint_operator import CONFIG, NIGHT

# The file of the corpus.
CORPUS = os.environ.get("NEARPRINT_CORPUS", "/var/lib/nearprint/corpus.duckdb")

# Of each document, the last change since the set that was taken last, and the newest night that has it. A night that was late or replaced, or
# dropped since, has sets of its own.
CHANGED = """
CREATE TEMP TABLE changed AS SELECT c.doc_id, c.decision, d.dt, c.change_set
FROM (SELECT *, row_number() OVER (PARTITION BY doc_id ORDER BY change_set DESC) AS newest FROM read_parquet(?) WHERE change_set > ?) c
LEFT JOIN (SELECT doc_id, max(dt) AS dt FROM read_parquet(?, hive_partitioning = true, union_by_name = true)
           WHERE reason <> 'stub' GROUP BY doc_id) d ON d.doc_id = c.doc_id
WHERE c.newest = 1
"""


def place(path) -> str:
    """Relative paths begin at the folder of the job file. Those with `://`, as on S3, are as they stand."""
    return path.rstrip("/") if "://" in path else str(Path(CONFIG).parent / path)


def update():
    """Brings the corpus to the newest state of the store, in one transaction."""
    job = tomllib.loads(Path(CONFIG).read_text())
    documents, results = (place(job[key]) for key in ("documents", "output"))
    with closing(duckdb.connect(CORPUS)) as corpus:
        corpus.execute("CREATE TABLE IF NOT EXISTS documents (id VARCHAR, text VARCHAR)")
        corpus.execute("CREATE TABLE IF NOT EXISTS state (change_set BIGINT)")
        last = corpus.execute("SELECT coalesce(max(change_set), 0) FROM state").fetchone()[0]
        corpus.begin()
        changes, decisions = (DeltaTable(f"{results}/{table}").file_uris() for table in ("changes", "decisions"))
        corpus.execute(CHANGED, [changes, last, decisions])
        corpus.execute("DELETE FROM documents WHERE id IN (SELECT doc_id FROM changed)")
        nights = corpus.execute("SELECT DISTINCT dt FROM changed WHERE decision = 'keep'").fetchall()
        for (dt,) in nights:
            folder = f"{documents}/dt={dt}/"
            found = corpus.execute("SELECT file FROM glob(?)", [f"{folder}**/*.parquet"]).fetchall()
            # nearprint passes over names that begin with _ or a dot.
            files = [file for (file,) in found if not any(name[:1] in ("_", ".") for name in file[len(folder) :].split("/"))]
            kept = "SELECT doc_id FROM changed WHERE decision = 'keep' AND dt = ?"
            n_kept = corpus.execute(f"SELECT count(*) FROM ({kept})", [dt]).fetchone()[0]
            texts = "SELECT CAST(id AS VARCHAR), text FROM read_parquet(?) WHERE CAST(id AS VARCHAR)"
            n_found = corpus.execute(f"INSERT INTO documents {texts} IN ({kept})", [files, dt]).fetchone()[0]
            if n_found != n_kept:
                # Nothing is committed.
                raise ValueError(f"{dt}: {n_kept} documents are kept, and {folder} has {n_found} of them")
        corpus.execute("INSERT INTO state SELECT max(change_set) FROM changed HAVING count(*) > 0")
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
        print(f"{update()} documents in the corpus after {night['dt']}")

    update_corpus(look_at_night())
