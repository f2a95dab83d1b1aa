#!/usr/bin/env python3
"""Reads the published tables with the engines that people use, and compares their row counts with the manifests.

    python3 -m venv venv && venv/bin/pip install -r evidence/tables/requirements.txt
    venv/bin/python evidence/tables/engines.py target/release/nearprint

After each thing that happens to a night (published, replaced, late, documents forgotten, collected, dropped) every engine
has to count the rows of every table by night as the manifests do, also from a checkpoint alone, without the versions
before it, and nearprint has to read a log after another program wrote a checkpoint of its own. Engines that read no log
are asked where the docs say that a glob is right; Spark is one of them, if pyspark and Java are installed. Prints the
bytes of log that a night takes. With --kills N, runs that replace a night are killed at random times, and each engine has to
see one state of it, whole. With --nights N, prints the seconds that each engine takes to open a table of N versions.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.dataset as ds
from deltalake import DeltaTable

try:
    from pyspark.sql import SparkSession
except ImportError:
    SparkSession = None

TABLES = ["pairs", "decisions", "superseded", "skipped", "quarantine", "redecided", "stubs", "hosts"]
JOB = 'documents = "crawl"\nstore = "store"\noutput = "results"\ncreate_store = true\nmax_bad_rows = 9\n'


def words(seed: int, n: int = 60) -> str:
    draw = random.Random(seed)
    return " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(n))


def deltalake(root: Path, table: str) -> Counter:
    files = DeltaTable(root / table)
    return Counter(str(dt) for dt in files.to_pyarrow_table(columns=["dt"])["dt"].to_pylist())


def polars(root: Path, table: str) -> Counter:
    counts = pl.scan_delta(str(root / table)).group_by("dt").len().collect()
    return Counter({str(dt): n for dt, n in counts.rows()})


def duckdb_delta(root: Path, table: str) -> Counter:
    rows = duckdb.sql(f"SELECT dt, count(*) FROM delta_scan('{root / table}') GROUP BY dt").fetchall()
    return Counter({str(dt): n for dt, n in rows})


def duckdb_glob(root: Path, table: str) -> Counter:
    glob = f"{root / table}/*/*.parquet"
    rows = duckdb.sql(f"SELECT dt, count(*) FROM read_parquet('{glob}', hive_partitioning = true) GROUP BY dt").fetchall()
    return Counter({str(dt): n for dt, n in rows})


def pyarrow(root: Path, table: str) -> Counter:
    files = ds.dataset(root / table, partitioning="hive", format="parquet")
    return Counter(str(dt) for dt in files.to_table(columns=["dt"])["dt"].to_pylist())


def spark_glob(root: Path, table: str) -> Counter:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    files = [str(path) for path in root.glob(f"{table}/*/*.parquet")]
    if not files:
        return Counter()
    rows = session.read.option("basePath", str(root / table)).parquet(*files).groupBy("dt").count().collect()
    return Counter({str(row["dt"]): row["count"] for row in rows})


LOGS = {"deltalake": deltalake, "polars": polars, "duckdb delta": duckdb_delta}
GLOBS = {"duckdb glob": duckdb_glob, "pyarrow": pyarrow} | ({"spark": spark_glob} if SparkSession else {})


class Night:
    def __init__(self, nearprint: Path, folder: Path):
        self.nearprint, self.folder, self.results = nearprint, folder, folder / "results"
        (folder / "job.toml").write_text(JOB)

    def command(self, *args: str) -> dict:
        ran = subprocess.run([self.nearprint, *args, "--json"], cwd=self.folder, capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"nearprint {' '.join(args)}: {ran.stderr}")
        return json.loads(ran.stdout.splitlines()[-1])

    def write(self, dt: str, rows: list[tuple[str, str]]) -> None:
        place = self.folder / f"crawl/dt={dt}/pages.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": name, "text": text}) for name, text in rows] + ["no document"]
        place.write_text("\n".join(lines) + "\n")

    def run(self, dt: str, rows: list[tuple[str, str]], *more: str) -> None:
        self.write(dt, rows)
        self.command("run", "--config", "job.toml", "--dt", dt, *more)

    def manifests(self, table: str) -> Counter:
        counts: Counter = Counter()
        for night in self.command("store", "info", "store")["nights"]:
            again = self.command("report", "--config", "job.toml", "--dt", night["dt"])
            manifest = self.results / f"_nearprint/dt={night['dt']}/gen={again['generation']}/manifest.json"
            files = json.loads(manifest.read_text())["files"]
            counts[night["dt"]] = sum(f["rows"] for f in files if f["name"].startswith(f"{table}/"))
        return +counts


def compare(night: Night, what: str, engines: dict) -> bool:
    good = True
    for table in TABLES:
        expected = night.manifests(table)
        for name, read in engines.items():
            found = +read(night.results, table)
            if found != expected:
                good = False
                print(f"{what}: {table}: {name} counts {dict(found)}, the manifests {dict(expected)}")
    print(f"{what}: {', '.join(engines)}: {'as the manifests say' if good else 'DIFFERENT'}")
    return good


def killed(night: Night, engines: dict, n_kills: int) -> bool:
    """Kills replacements of a night at random times; each engine has to see the night of before or the new one, whole."""
    draw = random.Random(7)
    dt, good, seen = "2026-11-19", True, Counter()
    # Two states of the night in turn: so many documents, and rows of its tables.
    states = [[(f"k{i}", words(i)) for i in range(n)] for n in (5, 9)]
    night.run(dt, states[0], "--no-breakers")
    began = time.monotonic()
    night.run(dt, states[1], "--replace", "--no-breakers")
    seconds = time.monotonic() - began
    for number in range(n_kills):
        rows = states[number % 2]
        night.write(dt, rows)
        run = subprocess.Popen(
            [night.nearprint, "run", "--config", "job.toml", "--dt", dt, "--replace", "--no-breakers"],
            cwd=night.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        time.sleep(draw.uniform(0.6, 1.6) * seconds)
        run.kill()
        run.wait()
        counts = {read(night.results, "decisions")[dt] for read in engines.values()}
        if len(counts) != 1 or not counts <= {5, 9}:
            good = False
            print(f"kill {number}: the engines count {counts} decisions")
        seen[counts.pop() == len(rows)] += 1
        for table in TABLES:
            for read in engines.values():
                read(night.results, table)
        night.run(dt, rows, "--replace", "--no-breakers")
    print(f"{n_kills} kills: {seen[False]} times the night of before, {seen[True]} times the new one: {'whole' if good else 'NOT WHOLE'}")
    return good


def many(night: Night, n: int) -> None:
    dates = [f"{2020 + i // 336}-{1 + i // 28 % 12:02}-{1 + i % 28:02}" for i in range(n)]
    began = time.monotonic()
    for i, dt in enumerate(dates):
        if i == n - 1:
            print(f"{i} nights in {time.monotonic() - began:.0f} s")
            began = time.monotonic()
        night.run(dt, [(f"a{i}", words(i)), (f"b{i}", words(i))])
    print(f"the {n}th night in {time.monotonic() - began:.2f} s")
    log = list((night.results / "decisions/_delta_log").iterdir())
    print(f"{len(log)} versions, {sum(f.stat().st_size for f in log)} bytes of log of one table")
    for name, read in (LOGS | GLOBS).items():
        began = time.monotonic()
        read(night.results, "decisions")
        print(f"{name}: {time.monotonic() - began:.2f} s to open and count")


def checkpoints(night: Night, engines: dict) -> bool:
    """Nights enough for a checkpoint; then the versions before it are gone for a while."""
    for i in range(12):
        dt = f"2026-10-{i + 1:02}"
        night.run(dt, [(f"a{i}", words(100 + i)), (f"b{i}", words(100 + i))], "--no-breakers")
    night.run("2026-10-03", [("c", words(200))], "--replace", "--no-breakers")
    good = compare(night, "checkpoint", engines)
    logs = [night.results / table / "_delta_log" for table in TABLES]
    old = [version for log in logs for version in sorted(log.glob("*.json"))[:10]]
    for version in old:
        version.rename(version.with_suffix(".aside"))
    good &= compare(night, "checkpoint alone", engines)
    for version in old:
        version.with_suffix(".aside").rename(version)
    for table in TABLES:
        DeltaTable(night.results / table).create_checkpoint()
    night.run("2026-10-13", [("d", words(201)), ("e", words(201))], "--no-breakers")
    good &= compare(night, "after the checkpoint of another program", engines)
    status = night.command("check", "--config", "job.toml")["status"]
    print(f"nearprint check: {status}")
    return good and status == "sound"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nearprint", type=lambda p: Path(p).resolve())
    parser.add_argument("--nights", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0, help="kill so many runs that replace a night, at random times")
    parser.add_argument("--delta-extension", metavar="FILE", help="DuckDB's extension delta, if it cannot be fetched")
    options = parser.parse_args()
    engines = dict(LOGS)
    try:
        duckdb.sql(f"LOAD '{options.delta_extension}'" if options.delta_extension else "INSTALL delta; LOAD delta")
    except duckdb.Error as error:
        print(f"no extension delta of DuckDB, left out: {str(error).splitlines()[0]}")
        del engines["duckdb delta"], LOGS["duckdb delta"]
    with tempfile.TemporaryDirectory() as folder:
        night = Night(options.nearprint, Path(folder))
        same = words(1)
        night.run("2026-11-19", [("a", same), ("b", same), ("c", words(2)), ("s", "short"), ("e", " ")])
        fuller = words(2) + " " + words(12, 30)
        night.run("2026-11-20", [("d", same), ("f", words(3)), ("g", words(3)), ("h", words(4)), ("i", fuller)])
        good = compare(night, "published", engines | GLOBS)
        night.run("2026-11-20", [("d", words(5)), ("f", words(6)), ("g", words(7)), ("j", fuller)], "--replace")
        good &= compare(night, "replaced", engines)
        night.run("2026-11-18", [("z", words(8)), ("y", words(9))], "--late")
        good &= compare(night, "late", engines)
        before = DeltaTable(night.results / "decisions", version=1).to_pyarrow_table()
        print(f"time travel to before the replacement: {before.num_rows} rows, 10 expected")
        good &= before.num_rows == 10
        (night.folder / "ids").write_text("a\nf\nnobody\n")
        print(night.command("store", "forget", "store", "--ids", "ids"))
        good &= compare(night, "forgotten", engines)
        night.command("store", "gc", "--config", "job.toml", "--grace-hours", "0")
        good &= compare(night, "collected", engines | GLOBS)
        night.command("store", "drop-night", "store", "--dt", "2026-11-19")
        good &= compare(night, "dropped", engines)
        signed = pl.scan_delta(str(night.results / "decisions")).collect_schema()
        print(f"types in Polars: {dict(signed)}")
        good &= not any(str(kind).startswith("UInt") for kind in signed.values())
        for table in TABLES:
            sizes = [f.stat().st_size for f in sorted((night.results / table / "_delta_log").iterdir())]
            print(f"{table}: versions of {sizes} bytes")
    with tempfile.TemporaryDirectory() as folder:
        good &= checkpoints(Night(options.nearprint, Path(folder)), engines)
    if options.kills:
        with tempfile.TemporaryDirectory() as folder:
            good &= killed(Night(options.nearprint, Path(folder)), engines, options.kills)
    if options.nights:
        with tempfile.TemporaryDirectory() as folder:
            many(Night(options.nearprint, Path(folder)), options.nights)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
