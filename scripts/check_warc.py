"""Compares the records that nearprint-warc reads with a list made by warcio.

Usage: check_warc.py LIST_RECORDS FOLDER

LIST_RECORDS is the program of `cargo build -p nearprint-warc --example list_records`. FOLDER has WARC files and
`expected_warcio.json`: for each file the counts of records by type, and for each response and resource its URI, status,
and length and SHA-1 of the decoded body.
"""

import collections
import json
import pathlib
import subprocess
import sys


def check(program, folder, name, expected):
    """Returns what differs between the records of a file and what was expected of it."""
    listed = subprocess.run([program, str(folder / name)], capture_output=True, text=True, check=True).stdout
    listed = [json.loads(line) for line in listed.splitlines()]
    records = [record for record in listed if "type" in record]
    notes = [f"{r.get('broken', r.get('error'))} at {r.get('at')}" for r in listed if "type" not in r]
    types = dict(collections.Counter(record["type"] for record in records))
    differences = [] if types == expected["record_types"] else [f"types {types}, expected {expected['record_types']}"]
    keys = ("type", "uri", "status", "decoded_len", "decoded_sha1")
    bodies = [r for r in records if r["type"] in ("response", "resource", "revisit", "conversion")]
    if expected["n_records_listed"] != len(bodies):
        differences.append(f"{len(bodies)} records, expected {expected['n_records_listed']}")
    for ours, theirs in zip(bodies, expected["records"] or []):
        differences += [f"{key} {ours[key]}, expected {theirs[key]}" for key in keys if (ours[key] if theirs[key] is not None else None) != theirs[key]]
    return differences, notes


def main(program, folder):
    folder = pathlib.Path(folder)
    for name, expected in json.loads((folder / "expected_warcio.json").read_text()).items():
        differences, notes = check(program, folder, name, expected)
        print(f"{name}: {'; '.join(differences) or 'equal'}{''.join(f' [{note}]' for note in notes)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
