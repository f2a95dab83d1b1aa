"""What the judge costs a first night: CPU, time and memory with and without it, in turns.

    python3 evidence/judge/cost.py --work cost-work --nearprint target/release/nearprint
    python3 evidence/judge/cost.py --work cost-work --nearprint target/release/nearprint --documents 1000000 --rounds 1
    python3 evidence/judge/cost.py --work cost-work --nearprint target/release/nearprint --template 100000

Documents have 300 words of a vocabulary of 50,000, of which the word at rank r occurs 1 / r times as often as the first. Three in ten are copies of another one, with none to a
fifth of their words replaced. With --template, so many more documents are pages of one template of 270 words with 30 of
their own.
"""

import argparse
import json
import math
import os
import random
import resource
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet as parquet

WORDS = 300
VOCABULARY = 50_000
PER_FILE = 1 << 14
JOB = 'documents = "crawl"\nstore = "store"\noutput = "results"\ncreate_store = true\n'


def documents(n, n_template):
    """The words of each document, as places in the vocabulary."""
    draw = numpy.random.default_rng(7)

    def words(shape):
        return (VOCABULARY ** draw.random(shape)).astype(numpy.uint16) - 1

    texts = numpy.empty((n + n_template, WORDS), numpy.uint16)
    for at in range(n):
        if at and draw.random() < 0.3:
            texts[at] = texts[draw.integers(at)]
            replaced = draw.choice(WORDS, draw.integers(WORDS // 5 + 1), replace=False)
            texts[at][replaced] = words(len(replaced))
        else:
            texts[at] = words(WORDS)
    texts[n:] = words(WORDS)
    texts[n:, 135:165] = words((n_template, 30))
    return texts


def write(folder, n, n_template):
    folder.mkdir(parents=True)
    draw = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    # The more often a word occurs, the shorter it is, as in a language.
    lengths = [2 + int(math.log2(1 + rank / 8)) for rank in range(VOCABULARY)]
    vocabulary = ["".join(draw.choices(letters, k=min(10, length))) for length in lengths]
    texts = documents(n, n_template)
    for number, start in enumerate(range(0, len(texts), PER_FILE)):
        rows = texts[start : start + PER_FILE].tolist()
        table = {
            "id": [f"doc-{at:09}" for at in range(start, start + len(rows))],
            "text": [" ".join(map(vocabulary.__getitem__, row)) for row in rows],
        }
        parquet.write_table(pyarrow.table(table), folder / f"part-{number:04}.parquet", compression="zstd")


def measure(work, nearprint, more):
    for folder in ("store", "results"):
        shutil.rmtree(work / folder, ignore_errors=True)
    (work / "job.toml").write_text(JOB + more)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [nearprint, "run", "--config", "job.toml", "--dt", "2026-11-20", "--json", "--no-breakers", "--threads", "2"]
    run = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout.splitlines()[-1])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = summary.get("peak_memory_bytes") or (summary.get("resources") or {}).get("peak_memory_bytes")
    return {"cpu_s": cpu, "s": time.monotonic() - began, "peak_memory_bytes": peak, "judge": summary.get("judge")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--nearprint", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=1 << 17)
    parser.add_argument("--template", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    crawl = options.work / f"crawl-{options.documents}-{options.template}"
    if not crawl.exists():
        write(crawl / "dt=2026-11-20", options.documents, options.template)
    link = options.work / "crawl"
    link.unlink(missing_ok=True)
    link.symlink_to(crawl.name)
    runs = {"without": [], "with": []}
    nearprint = os.path.abspath(options.nearprint)
    for _ in range(options.rounds):
        runs["without"].append(measure(options.work, nearprint, "[judge]\nmax_looks = 0\n"))
        runs["with"].append(measure(options.work, nearprint, ""))
    for name, measured in runs.items():
        for run in measured:
            print(name, json.dumps(run))
    ratios = {}
    for key in ("cpu_s", "s"):
        without, with_judge = (statistics.median(run[key] for run in runs[name]) for name in ("without", "with"))
        ratios[key] = (round(without, 2), round(with_judge, 2), round(with_judge / without, 3))
    print("without, with, ratio:", json.dumps(ratios))


if __name__ == "__main__":
    main()
