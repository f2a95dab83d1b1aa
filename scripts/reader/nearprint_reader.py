"""Reads a store of nearprint and the results that it names, written from docs/store-format.md alone: nothing of nearprint is imported.

Needs pyarrow. Every digest on the way is checked. Local folders only.

    python nearprint_reader.py STORE               the nights of the newest commit, with their live rows
    python nearprint_reader.py STORE --dt DATE     the decisions of a night, as JSON lines
"""
import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DATASETS = ("fingerprints", "short", "empty", "ids", "shadows", "dependents", "families", "redecided")


class Damaged(Exception):
    """A file is not what the store says that it is."""


def expect(is_sound, file, what):
    if not is_sound:
        raise Damaged(f"{file}: {what}; `nearprint check` says more")


def newest_commit(store):
    """The commit with the highest number: no other one counts."""
    names = [path for path in Path(store, "_commits").iterdir() if re.fullmatch(r"[0-9]{8}\.json", path.name)]
    expect(names, store, "no commit, so this is no store")
    newest = max(names)
    line = newest.read_bytes()
    commit = json.loads(line)
    expect(commit["version"] == 2, newest, f"format version {commit['version']}, and this reader knows 2")
    # `sha256` is the last field, and is of the line without it.
    own = line.replace(b',"sha256":"%s"' % commit["sha256"].encode(), b"")
    expect(hashlib.sha256(own).hexdigest() == commit["sha256"], newest, "its SHA-256 is another")
    return commit


def page(store, digest):
    path = Path(store, "pages", f"{digest}.json")
    line = path.read_bytes()
    expect(hashlib.sha256(line).hexdigest()[:32] == digest, path, "its digest is another")
    return json.loads(line)


def nights(store):
    """All nights of the newest commit by date: those on its pages, then those that it holds itself."""
    commit = newest_commit(store)
    on_pages = [night for digest in commit["pages"] for night in page(store, digest)["nights"]]
    return on_pages + commit["nights"]


def table(path, entry):
    """A Parquet file of which a commit or manifest says `rows`, `bytes` and `sha256`."""
    content = Path(path).read_bytes()
    expect(len(content) == entry["bytes"], path, f"{len(content)} bytes, not {entry['bytes']}")
    expect(hashlib.sha256(content).hexdigest() == entry["sha256"], path, "its SHA-256 is another")
    read = pq.read_table(pa.BufferReader(content))
    expect(read.num_rows == entry["rows"], path, f"{read.num_rows} rows, not {entry['rows']}")
    return read


def run_files(store, night):
    """The tables of a night's run files, by name. `dependents` is not in runs of 0.2.0, `families` and `redecided` only if they have rows."""
    folder = Path(store, "runs", night["run"]["digest"])
    entries = {entry["name"].split("/")[0]: entry for entry in night["run"]["files"]}
    return {name: table(folder / entries[name]["name"], entries[name]) for name in DATASETS if name in entries}


def live_rows(store, until="9999-12-31"):
    """By date of the nights up to `until`: the live rows of `fingerprints`, `short` and `empty`.

    A shadow counts if both run files, the one with the row and the one that hides it, take part. The same holds for a row
    that was decided again, unless its night was made again since, and of several decisions the one of the latest night.
    """
    taking_part = [night for night in nights(store) if night["dt"] <= until]
    runs = {night["run"]["digest"]: run_files(store, night) for night in taking_part}
    hidden = {digest: set() for digest in runs}
    for own, tables in runs.items():
        for shadow in tables["shadows"].to_pylist():
            if (shadow["by"] or own) in runs and (shadow["run"] or own) in runs:
                hidden[shadow["run"] or own].add(shadow["row"])
    dates = {night["run"]["digest"]: night["dt"] for night in taking_part}
    overruled = {night["run"]["digest"]: night.get("overruled", []) for night in taking_part}
    again = {digest: {} for digest in runs}
    for own, tables in runs.items():
        for row in tables["redecided"].to_pylist() if "redecided" in tables else []:
            run, by = row["run"] or own, row["by"] or own
            if run in runs and by in runs and dates[run] not in overruled[by]:
                by_night = (dates[by], row["canonical_id"])
                again[run][row["row"]] = max(again[run].get(row["row"], ("",)), by_night, key=lambda said: said[0])
    return {dates[digest]: _live(runs[digest], hidden[digest], again[digest]) for digest in runs}


def _live(tables, hidden, again):
    """Rows are numbered through `fingerprints`, `short` and `empty`."""
    live, start = {}, 0
    for name in ("fingerprints", "short", "empty"):
        rows = tables[name]
        if name != "empty":
            ids = rows["canonical_id"].to_pylist()
            ids = [again[start + row][1] if start + row in again else id for row, id in enumerate(ids)]
            rows = rows.set_column(rows.schema.get_field_index("canonical_id"), "canonical_id", pa.array(ids, pa.string()))
        live[name] = rows.filter(pa.array([start + row not in hidden for row in range(rows.num_rows)], pa.bool_()))
        start += rows.num_rows
    return live


def results(store, dt, dataset):
    """A published dataset of a night, such as `decisions`, by the night's manifest."""
    night = next((night for night in nights(store) if night["dt"] == dt), None)
    expect(night, store, f"no night of {dt}")
    path = Path(night["output"], f"gen={night['gen']}", "manifest.json")
    line = path.read_bytes()
    expect(hashlib.sha256(line).hexdigest() == night["manifest_sha256"], path, "its SHA-256 is another")
    root, tables = path.parents[3], []
    for entry in json.loads(line)["files"]:
        name, part = entry["name"].split("/")
        if name == dataset:
            tables.append(table(root / name / f"dt={dt}" / part.replace(".parquet", f"-{night['gen']}.parquet"), entry))
    return pa.concat_tables(tables)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--dt", metavar="DATE", help="a night, whose decisions are written")
    arguments = parser.parse_args()
    if arguments.dt:
        rows = results(arguments.store, arguments.dt, "decisions").to_pylist()
    else:
        live = live_rows(arguments.store)
        rows = [{"dt": dt} | {name: rows.num_rows for name, rows in tables.items()} for dt, tables in live.items()]
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    try:
        main()
    except Damaged as damaged:
        sys.exit(f"nearprint_reader: {damaged}")
