"""Measures the wheel of the Python package beside the command and the Rust call; appends JSON lines and prints a table in Markdown.

    cargo build --release -p nearprint-bench
    python3 evidence/benchmarks/python.py --wheel FILE.whl --folder /a/disk/with/2GB --results evidence/benchmarks/python.jsonl [part ...]
    python3 evidence/benchmarks/python.py --results evidence/benchmarks/python.jsonl --table

Needs python3 with pyarrow and numpy (for make_documents.py), GNU time, the network for pyarrow, and for pairs_within a release build of
nearprint-bench below target/ or CARGO_TARGET_DIR. The wheel is installed into a fresh venv below --folder. Parts:

- install: bytes of the wheel; seconds of `pip install WHEEL pyarrow`, without pip's cache, and then of the first example of README.md.
- fingerprint: a process that reads a Parquet file with pyarrow, calls `fingerprint`, and writes ids and fingerprints with pyarrow, beside
  `nearprint fingerprint` of the same wheel, both with all cores. They alternate. The process reads the whole table first, or, as `batches`,
  it takes batches from a pyarrow dataset, which reads ahead. Each runs on a small and on a large file; documents per
  second are those of the difference, so starting a process does not count. `whole` counts it. With the default profile both compute
  sketches too; the command also writes them.
- pairs_within: `pairs_within(column, 3, threads=1)` of 2^23 uniform values beside `pairs_within` of the Rust library, which
  `nearprint-bench self` calls on the same values, and beside its join of distinct values, which knows no rows. They alternate; seconds are
  those of the call alone, by their own clocks, from the values in memory to the pairs.
- threads: four Python threads that call `fingerprint` at once, beside the same calls one after another.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/nearprint-bench"
PYARROW = "pyarrow==26.0.1"

FINGERPRINT = """
import sys, time
import nearprint, pyarrow as pa, pyarrow.parquet as pq
_, source, target, profile, threads = sys.argv
table = pq.read_table(source)
started = time.perf_counter()
fingerprints = nearprint.fingerprint(table["text"], profile, threads=int(threads))
seconds = time.perf_counter() - started
pq.write_table(pa.table({"doc_id": table["id"], "fingerprint": pa.array(fingerprints)}), target)
print('{"seconds": %r, "version": "%s"}' % (seconds, nearprint.__version__))
"""

BATCHES = """
import sys, time
import nearprint, pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq
_, source, target, profile, threads = sys.argv
seconds = 0
with pq.ParquetWriter(target, pa.schema([("doc_id", pa.string()), ("fingerprint", pa.uint64())])) as writer:
    for batch in ds.dataset(source).to_batches(columns=["id", "text"], batch_size=16_384):
        started = time.perf_counter()
        fingerprints = nearprint.fingerprint(batch["text"], profile, threads=int(threads))
        seconds += time.perf_counter() - started
        writer.write_batch(pa.record_batch({"doc_id": batch["id"], "fingerprint": pa.array(fingerprints)}))
print('{"seconds": %r, "version": "%s"}' % (seconds, nearprint.__version__))
"""

PAIRS = """
import json, sys, time
import nearprint, pyarrow as pa
with open(sys.argv[1], "rb") as file:
    values = file.read()
column = pa.Array.from_buffers(pa.uint64(), len(values) // 8, [None, pa.py_buffer(values)])
started, cpu_started = time.perf_counter(), time.process_time()
pairs = nearprint.pairs_within(column, 3, threads=1)
seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "n_pairs": len(pairs), "n_rows": len(column)}))
"""

THREADS = """
import json, sys, threading, time
import nearprint, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
quarter = table.num_rows // 4
columns = [table["text"].slice(i * quarter, quarter).combine_chunks() for i in range(4)]
limit = int(sys.argv[2]) or None

def call(column):
    nearprint.fingerprint(column, threads=limit)

def in_turn():
    for column in columns:
        call(column)

def at_once():
    threads = [threading.Thread(target=call, args=(column,)) for column in columns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started

seconds(in_turn)
times = [(seconds(in_turn), seconds(at_once)) for _ in range(int(sys.argv[3]))]
print(json.dumps({"n_documents": 4 * quarter, "in_turn_seconds": [t[0] for t in times], "at_once_seconds": [t[1] for t in times]}))
"""


class Results:
    """A file of JSON lines; each line names its part."""

    def __init__(self, path, part):
        self.path, self.part = path, part

    def add(self, **fields):
        line = json.dumps({"part": self.part, "load": round(os.getloadavg()[0], 1), **fields})
        print(line, flush=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def run(*arguments):
    """Runs a command; gives its last line of JSON with its seconds, its processor seconds and its peak memory."""
    started = time.monotonic()
    done = subprocess.run(["/usr/bin/time", "-f", "%U %S %M", *map(str, arguments)], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    user, system, rss = done.stderr.strip().splitlines()[-1].split()
    return (lines[-1] if lines else {}) | {"whole": seconds, "cpu": float(user) + float(system), "rss_kib": int(rss)}


def spread(values):
    return {"median": statistics.median(values), "smallest": min(values), "largest": max(values)}


def python_of(args):
    """The interpreter of the venv with the wheel."""
    python = args.folder / "venv/bin/python"
    if not python.exists():
        sys.exit(f"{python} does not exist: run the part install first")
    return python


def install(results, args):
    place = args.folder / "venv"
    shutil.rmtree(place, ignore_errors=True)
    venv_seconds = run(sys.executable, "-m", "venv", place)["whole"]
    pip_seconds = run(place / "bin/pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", args.wheel, PYARROW)["whole"]
    example = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
    started = time.monotonic()
    done = subprocess.run([place / "bin/python", "-c", example], cwd=ROOT, capture_output=True, text=True, check=True)
    first_seconds = time.monotonic() - started
    with zipfile.ZipFile(args.wheel) as wheel:
        unpacked = sum(member.file_size for member in wheel.infolist())
    results.add(
        wheel=args.wheel.name, wheel_bytes=args.wheel.stat().st_size, unpacked_bytes=unpacked, venv_seconds=venv_seconds, pip_seconds=pip_seconds,
        first_pairs_seconds=first_seconds, seconds=pip_seconds + first_seconds, output=done.stdout.strip(), python=platform.python_version(),
        processor=next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), ""),
        cores=os.cpu_count(),
    )


def documents(args):
    """A small and a large file of documents from templates, of 200 words each."""
    files = []
    for count in (args.documents // 10, args.documents):
        place = args.folder / f"documents-{count}"
        if not place.exists():
            make = [ROOT / "scripts/make_documents.py", "--templates", 1000, "--count", count, "--out", place]
            subprocess.run([sys.executable, *map(str, make)], check=True, stdout=subprocess.DEVNULL)
        files.append((count, place / "part-00000.parquet"))
    return files


def fingerprint(results, args):
    python, threads = python_of(args), os.cpu_count()
    (few, small), (many, large) = documents(args)
    out = args.folder / "fingerprints"

    def whole(program, source, profile):
        shutil.rmtree(out, ignore_errors=True)
        if program:
            out.mkdir()
            return run(python, "-c", program, source, out / "out.parquet", profile, threads)
        command = ["fingerprint", "--documents", source, "--profile", profile, "--output", out, "--threads", threads]
        return run(python.with_name("nearprint"), *command)

    programs = {"command": None, "table": FINGERPRINT, "batches": BATCHES}
    for profile in ("default", "paper"):
        runs = {name: [] for name in programs}
        for number in range(args.rounds + 1):
            for name in list(programs)[:: 1 if number % 2 else -1]:
                first, second = whole(programs[name], small, profile), whole(programs[name], large, profile)
                if number > 0:
                    runs[name].append((first, second))
        rate = {name: spread([(many - few) / (b["whole"] - a["whole"]) for a, b in runs[name]]) for name in runs}
        cpu_rate = {name: spread([(many - few) / (b["cpu"] - a["cpu"]) for a, b in runs[name]]) for name in runs}
        wholes = {name: spread([b["whole"] for _, b in runs[name]]) for name in runs}
        for name in ("table", "batches"):
            results.add(
                profile=profile, program=name, threads=threads, n_documents=many, small_documents=few, rounds=args.rounds,
                documents_per_second=rate[name], command_documents_per_second=rate["command"],
                ratio=rate[name]["median"] / rate["command"]["median"],
                documents_per_cpu_second=cpu_rate[name], command_documents_per_cpu_second=cpu_rate["command"],
                cpu_ratio=cpu_rate[name]["median"] / cpu_rate["command"]["median"],
                call_documents_per_second=spread([many / b["seconds"] for _, b in runs[name]]),
                whole_seconds=wholes[name], command_whole_seconds=wholes["command"],
                rss_kib=max(b["rss_kib"] for _, b in runs[name]), command_rss_kib=max(b["rss_kib"] for _, b in runs["command"]),
            )
    shutil.rmtree(out, ignore_errors=True)


def pairs_within(results, args):
    python, raw = python_of(args), args.folder / "self.u64"
    ours, theirs = [], []
    for number in range(args.rounds + 1):
        bench, line = run(BENCH, "self", "--log-rows", args.log_rows, "--raw", raw), run(python, "-c", PAIRS, raw)
        if line["n_pairs"] != bench["n_pairs"]:
            sys.exit(f"{line['n_pairs']} pairs, and {bench['n_pairs']} of nearprint-bench")
        if number > 0:
            ours.append(line)
            theirs.append(bench)
    raw.unlink()
    seconds, rust = spread([run["seconds"] for run in ours]), spread([run["row_seconds"] for run in theirs])
    results.add(
        log_rows=args.log_rows, max_distance=3, threads=1, rounds=args.rounds, n_pairs=line["n_pairs"], seconds=seconds, rust_seconds=rust,
        ratio=rust["median"] / seconds["median"], ratio_of_smallest=rust["smallest"] / seconds["smallest"],
        distinct_seconds=spread([run["seconds"] for run in theirs]),
        cpu_seconds=spread([run["cpu_seconds"] for run in ours]), whole_seconds=spread([run["whole"] for run in ours]),
        rss_kib=max(run["rss_kib"] for run in ours), rust_rss_kib=max(run["rss_kib"] for run in theirs),
    )


def threads(results, args):
    python, (_, (_, large)) = python_of(args), documents(args)
    for limit in (1, 0):
        line = run(python, "-c", THREADS, large, limit, args.rounds)
        in_turn, at_once = (spread(line[key]) for key in ("in_turn_seconds", "at_once_seconds"))
        results.add(
            limit=limit or "all cores", cores=os.cpu_count(), n_documents=line["n_documents"], rounds=args.rounds, in_turn_seconds=in_turn,
            at_once_seconds=at_once, times_faster=in_turn["median"] / at_once["median"],
        )


PARTS = {part.__name__: part for part in (install, fingerprint, pairs_within, threads)}


def range_of(value, form):
    return f"{value['median']:{form}} ({value['smallest']:{form}} to {value['largest']:{form}})"


def print_table(results):
    """The last line of each measurement."""
    last = {}
    for line in map(json.loads, results.read_text(encoding="utf-8").splitlines()):
        if line["part"] in PARTS:
            last[line["part"], line.get("profile"), line.get("program", "table"), line.get("limit")] = line
    print("| what | Python | beside it | ratio | goal |\n|---|---|---|---|---|")
    for line in last.values():
        for row in ROWS[line["part"]](line):
            print("| " + " | ".join(row) + " |")


def install_rows(line):
    parts = f"{line['pip_seconds']:.1f} s of pip, {line['first_pairs_seconds']:.1f} s"
    yield "`pip install`, then the first pairs", f"**{line['seconds']:.1f} s**", parts, "", "60 s"
    yield "size of the wheel", f"{line['wheel_bytes'] / 2**20:.1f} MiB", f"{line['unpacked_bytes'] / 2**20:.1f} MiB unpacked", "", ""


def fingerprint_rows(line):
    whole = "the whole table" if line.get("program", "table") == "table" else "batches"
    what = f"`fingerprint` of {whole}, profile {line['profile']}, {line['threads']} threads, documents/s"
    ours, command = (range_of(line[key], ",.0f") for key in ("documents_per_second", "command_documents_per_second"))
    yield what, ours, f"the command: {command}", f"**{line['ratio']:.2f}**", "0.95"
    ours, command = (range_of(line[key], ",.0f") for key in ("documents_per_cpu_second", "command_documents_per_cpu_second"))
    yield "the same, documents per second of a core", ours, command, f"**{line['cpu_ratio']:.2f}**", ""
    whole, command = line["whole_seconds"], line["command_whole_seconds"]
    what = f"the same, whole process, {line['n_documents']:,} documents"
    yield what, range_of(whole, ".2f") + " s", range_of(command, ".2f") + " s", f"{command['median'] / whole['median']:.2f}", ""
    yield "the same, the call alone, documents/s", range_of(line["call_documents_per_second"], ",.0f"), "", "", ""


def pairs_within_rows(line):
    what = f"`pairs_within`, 2^{line['log_rows']} uniform values, k = 3, one thread"
    ours, rust = (range_of(line[key], ".3f") + " s" for key in ("seconds", "rust_seconds"))
    ratio = f"**{line['ratio']:.2f}**, of the smallest {line['ratio_of_smallest']:.2f}"
    yield what, ours, f"Rust: {rust}", ratio, "0.95"


def threads_rows(line):
    at_once, in_turn = (range_of(line[key], ".2f") + " s" for key in ("at_once_seconds", "in_turn_seconds"))
    what = f"four calls of `fingerprint` at once, `threads`: {line['limit']}"
    yield what, at_once, f"one after another: {in_turn}", f"{line['times_faster']:.2f}", ""


ROWS = {"install": install_rows, "fingerprint": fingerprint_rows, "pairs_within": pairs_within_rows, "threads": threads_rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5, help="after one that does not count")
    parser.add_argument("--documents", type=int, default=200_000, help="of the large file; the small one has a tenth")
    parser.add_argument("--log-rows", type=int, default=23, help="binary logarithm of the values of pairs_within")
    parser.add_argument("--table", action="store_true", help="only print the table of the results")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    args = parser.parse_args()
    if not args.table:
        if not (args.wheel and args.folder):
            parser.error("--wheel and --folder are needed to measure")
        args.folder = args.folder.resolve()
        args.folder.mkdir(parents=True, exist_ok=True)
        for part in args.parts or PARTS:
            PARTS[part](Results(args.results, part), args)
    print_table(args.results)


if __name__ == "__main__":
    main()
