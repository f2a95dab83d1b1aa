#!/usr/bin/env python3
"""Measures how much the star rule keeps beside a bound on what any keep order could keep. Prints a Markdown table.

usage: star.py [--nearprint FILE] [--job 'KEY = VALUE'] … NAME=FILE_OR_FOLDER …

Each NAME is a set of documents (columns id and text), which becomes a night of its own in an empty store. --job adds a line
to the job file, such as 'keep = []'.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--nearprint", default="target/release/nearprint")
    arguments.add_argument("--job", action="append", default=[], metavar="LINE")
    arguments.add_argument("sets", nargs="+", metavar="NAME=PATH")
    options = arguments.parse_args()
    print("| set | documents | kept | in vain | bound | (kept − in vain) / bound | largest cluster | kept beyond component |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    kept, bound = 0, 0
    for name, path in (each.split("=", 1) for each in options.sets):
        counts = night(options, Path(path).resolve())
        in_vain = counts["n_kept_in_vain"]
        worth = counts["n_keep"] - in_vain
        kept, bound = kept + worth, bound + counts["n_keep_bound"]
        print(f"| {name} | {counts['n_documents']:,} | {counts['n_keep']:,} | {in_vain:,} | {counts['n_keep_bound']:,} "
              f"| {share(worth, counts['n_keep_bound'])} | {counts['largest_cluster']:,} "
              f"| {counts['n_kept_beyond_component']:,} |", flush=True)
    print(f"| all | | {kept:,} without those | | {bound:,} | {share(kept, bound)} | | |")


def share(kept, bound):
    return f"{kept / bound:.4f}" if bound else ""


def night(options, documents):
    """The summary of a night with these documents alone."""
    with tempfile.TemporaryDirectory() as folder:
        job = ['store = "store"', 'output = "results"', "create_store = true", 'on_duplicate_id = "keep_first"',
               "max_bad_rows = 1000000", *options.job]
        Path(folder, "job.toml").write_text("\n".join(job) + "\n")
        files = sorted(documents.iterdir()) if documents.is_dir() else [documents]
        Path(folder, "files.txt").write_text("".join(f"{file}\n" for file in files))
        command = [str(Path(options.nearprint).resolve()), "run", "--config", "job.toml", "--dt", "2026-11-20", "--json",
                   "--no-breakers", "--files-from", "files.txt"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{documents}: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
