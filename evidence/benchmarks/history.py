#!/usr/bin/env python3
"""How a store's history grows: nights of one document, and what commits, a night and `check` take after each so many.

usage: history.py NEARPRINT [NIGHTS [EVERY]]     (default: 1000 nights, a line every 100)

Prints a table: nights, bytes of all commits and their pages, bytes of the newest commit, seconds of that night, seconds and peak MiB of
`check`; last the bytes after `store gc`.
"""

import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time


def run(*command):
    began = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return time.monotonic() - began, json.loads(done.stdout.splitlines()[-1])


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main():
    nearprint = pathlib.Path(sys.argv[1]).resolve()
    n_nights, every = (int(given) if given else default for given, default in zip(sys.argv[2:4] + ["", ""], (1000, 100)))
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        job = place / "job.toml"
        places = [f'{key} = "{place}/{key}"' for key in ("documents", "store", "output")]
        # Releases before `create_store` do not know the key.
        knows = "--create-store" in subprocess.run([nearprint, "run", "--help"], capture_output=True, text=True).stdout
        job.write_text("\n".join(places + ["create_store = true"] * knows) + "\n")
        print("nights  commits, bytes  newest, bytes  a night, s  check, s  check, MiB")
        for i in range(n_nights):
            dt = datetime.date(2024, 1, 1) + datetime.timedelta(days=i)
            folder = place / "documents" / f"dt={dt}"
            folder.mkdir(parents=True)
            words = " ".join(f"w{i * 31 + j * j}" for j in range(20))
            (folder / "pages.jsonl").write_text(json.dumps({"id": f"d{i}", "text": words}) + "\n")
            seconds, _ = run(nearprint, "run", "--config", job, "--dt", dt, "--json")
            if (i + 1) % every == 0:
                commits = place / "store" / "_commits"
                newest = max(commits.glob("*.json"))
                bytes_ = size(commits) + size(place / "store" / "pages")
                check_seconds, checked = run(nearprint, "check", "--config", job, "--json")
                mib = checked["peak_rss_bytes"] / 2**20
                print(f"{i + 1:6}  {bytes_:14,}  {newest.stat().st_size:13,}  {seconds:10.2f}  {check_seconds:8.1f}  {mib:10.0f}", flush=True)
        run(nearprint, "store", "gc", "--config", job, "--grace-hours", 0, "--json")
        print(f"after store gc: {size(place / 'store' / '_commits') + size(place / 'store' / 'pages'):,} bytes")


main()
