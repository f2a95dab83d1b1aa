"""An example of a DAG that starts when a night is published, for the same partition. It reads what the run says of the night."""

from airflow.sdk import DAG, PartitionedAssetTimetable, task

from nearprint_operator import NIGHT

with DAG(dag_id="after_night", schedule=PartitionedAssetTimetable(assets=NIGHT), catchup=False):

    @task
    def look_at_night(dag_run=None, triggering_asset_events=None):
        event = triggering_asset_events[NIGHT][-1]
        summary = event.extra
        print(f"night {dag_run.partition_key}: {summary['status']}, {summary['n_drop']} of {summary['n_documents']} dropped")
        # Later nights that were made without this one: a DAG of yours may run them again with `replace`.
        return {"dt": summary["dt"], "stale": summary["stale"]}

    look_at_night()
