#!/usr/bin/env python3
"""Compares nearprint's Python package with what a Python user would take instead, on a set made by make_set.py.

    compare.py --set FOLDER --work FOLDER --wheel FILE.whl --results evidence/benchmarks/python.jsonl [TOOL ...]
    compare.py --results evidence/benchmarks/python.jsonl --table

`--choose threshold=0.6,0.7 datasketch` tries values of an argument of a tool on a set, to choose one.

Makes two venvs below --work on the first call: `tools` with requirements.txt and the wheel, and `text-dedup` with
text_dedup_requirements.txt. Each tool is a file below tools/ and runs in a process and an empty folder of its own, one after the other, told
to use one thread. Appends one JSON line a tool (part "comparison") and prints a table of the last line of each tool.

- whole_seconds: from the start of the process to its end, with writing what was found; seconds: reading the documents and finding pairs,
  without imports; cpu_seconds: processor time of the whole process and its children, which other programs disturb least. It would be above
  whole_seconds if a tool used more than the one thread that it is told to use.
- rss_kib: peak resident size of the largest process of the tool.
- precision = pos found / (found - gray found), recall = pos found / pos, over pairs of documents. Of clusters, all pairs of a cluster count.
  `real` has the same for pairs of two real documents.
- lines: those of the tool's file that are neither blank nor comments nor its first docstring.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ONE_THREAD = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS"], "1")
# name: file, package, arguments, what the table says
TOOLS = {
    "nearprint functions": ("nearprint_functions", "nearprint", {}, "`fingerprint`, `sketch`, `pairs_within(12)`, `hamming` ≤ 36"),
    "nearprint join": ("nearprint_join", "nearprint", {}, "`fingerprint`, `sketch`, `join` with its defaults"),
    "nearprint run": ("nearprint_run", "nearprint", {}, "`run`, all pairs written; decisions and store too"),
    "simhash": ("simhash_index", "simhash", {}, "`SimhashIndex(k=3)`, its tutorial's features"),
    "faiss flat": ("faiss_flat", "faiss-cpu", {"distance": 8}, "`IndexBinaryFlat` over the fingerprints of simhash, distance 8"),
    "faiss of nearprint": ("faiss_of_nearprint", "faiss-cpu", {}, "`IndexBinaryFlat` over the fingerprints of nearprint, distance 12"),
    "datasketch": ("datasketch_lsh", "datasketch", {}, "`MinHashLSH(threshold=0.5, num_perm=128)`, words (its documentation)"),
    "datasketch chosen": ("datasketch_batch", "datasketch", {"threshold": 0.7}, "the same with `update_batch`, threshold 0.7"),
    "datasketch 0.8": ("datasketch_batch", "datasketch", {"threshold": 0.8}, "the same, threshold 0.8"),
    "text-dedup": ("text_dedup_minhash", "text-dedup", {}, "`text_dedup.minhash` (its README): 5-grams, threshold 0.7"),
    "text-dedup chosen": ("text_dedup_spaced", "text-dedup", {"threshold": 0.6}, "the same, Han and kana set apart, threshold 0.6"),
}


def python_of(work, name, requirements, wheel=None):
    """The interpreter of a venv, which is made if it does not exist."""
    place = work / "venvs" / name
    python = place / "bin/python"
    if not python.exists():
        venv.create(place, with_pip=True)
        more = [wheel] if wheel else []
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", HERE / requirements, *more], check=True)
    return python


def lines_of(path):
    """Lines of code of a file, without its docstring."""
    text = path.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    lines = text.splitlines()
    if isinstance(first, ast.Expr):
        lines = lines[first.end_lineno :]
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


class Truth:
    """The labels of a set."""

    def __init__(self, folder):
        self.documents = folder / "documents/dt=2026-01-01/part-00000.parquet"
        self.summary = json.loads((folder / "set.json").read_text(encoding="utf-8"))
        self.label = {}
        for line in (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            a, b, _, label, _ = line.split("\t")
            self.label[frozenset((a, b))] = label

    def score(self, kind, found, real):
        """Precision, recall and F1 of pairs or of clusters; with real, of the pairs of two real documents."""
        keep = (lambda id: not id.startswith(("edited/", "unrelated/"))) if real else (lambda id: True)
        label = {pair: label for pair, label in self.label.items() if all(map(keep, pair))}
        if kind == "pairs":
            pairs = {frozenset(pair) for pair in found if all(map(keep, pair))}
            n_found = len(pairs)
            labels = [label[pair] for pair in pairs if pair in label]
        else:
            cluster_of = {id: number for number, cluster in enumerate(found) for id in cluster if keep(id)}
            sizes = [sum(map(keep, cluster)) for cluster in found]
            n_found = sum(n * (n - 1) // 2 for n in sizes)
            together = lambda a, b: a in cluster_of and cluster_of[a] == cluster_of.get(b)  # noqa: E731
            labels = [value for pair, value in label.items() if together(*pair)]
        n_pos = sum(value == "pos" for value in label.values())
        pos, gray = labels.count("pos"), labels.count("gray")
        precision = pos / (n_found - gray) if n_found > gray else None
        recall = pos / n_pos if n_pos else None
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
        return {
            "n_pairs": n_found, "n_pos": n_pos, "n_pos_found": pos, "n_gray_found": gray,
            "precision": precision, "recall": recall, "f1": f1,
        }


def measure(args, truth, name, more):
    """Runs a tool, and gives its line. More arguments override those of the table."""
    file, package, arguments, _ = TOOLS[name]
    arguments = arguments | more
    if package == "text-dedup":
        python = python_of(args.work, "text-dedup", "text_dedup_requirements.txt")
    else:
        python = python_of(args.work, "tools", "requirements.txt", args.wheel)
    place = args.work / "run"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    command = [python, HERE / "measured.py", HERE / f"tools/{file}.py", truth.documents.resolve(), place / "out.json", package, json.dumps(arguments)]
    load = round(os.getloadavg()[0], 1)
    environment = {**os.environ, **ONE_THREAD, "HF_HOME": str(place / "hf"), "HF_HUB_OFFLINE": "1"}
    with open(place / "log", "w", encoding="utf-8") as log:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        whole = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{name}: exit {os.waitstatus_to_exitcode(status)}\n{(place / 'log').read_text()[-3000:]}")
    done = json.loads((place / "out.json").read_text(encoding="utf-8"))
    found = done.pop("found")
    line = {
        "part": "comparison", "tool": name, **done, "arguments": arguments, "whole_seconds": whole, "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "rss_kib": usage.ru_maxrss, "lines": lines_of(HERE / f"tools/{file}.py"), "n_documents": truth.summary["n_documents"],
        "seed": truth.summary["seed"], "load": load, **truth.score(done["kind"], found, False), "real": truth.score(done["kind"], found, True),
    }
    shutil.rmtree(place)
    return rounded(line)


def rounded(line):
    if isinstance(line, dict):
        return {key: rounded(value) for key, value in line.items()}
    return round(line, 4) if isinstance(line, float) else line


def figure(value):
    return "-" if value is None else f"{value:.3f}".removeprefix("0")


def print_table(results):
    """The last line of each tool."""
    last = {}
    for line in map(json.loads, results.read_text(encoding="utf-8").splitlines()):
        if line["part"] == "comparison":
            last[line["tool"]] = line
    print("| tool | settings | processor s | documents/s of a core | by the clock, s | without imports | peak MiB | precision | recall | F1 | F1, real pairs | lines |")
    print("|" + "---|" * 12)
    for name in TOOLS:
        if line := last.get(name):
            scores = [figure(line[key]) for key in ("precision", "recall", "f1")] + [figure(line["real"]["f1"])]
            seconds = [f"{line[key]:.1f}" for key in ("whole_seconds", "seconds")]
            numbers = [f"{line['cpu_seconds']:.1f}", f"{line['n_documents'] / line['cpu_seconds']:,.0f}", *seconds, f"{line['rss_kib'] / 1024:,.0f}"]
            what = TOOLS[name][3] + (" (clusters)" if line["kind"] == "clusters" else "")
            print("| " + " | ".join([line["version"], what, *numbers, *scores, str(line["lines"])]) + " |")


def choose(args, truth):
    """Prints the scores of the tools with each value of an argument."""
    argument, values = args.choose.split("=")
    for name in args.tools:
        for value in map(json.loads, values.split(",")):
            line = measure(args, truth, name, {argument: value})
            scores = " ".join(f"{key} {figure(line[key])}" for key in ("precision", "recall", "f1"))
            print(f"{name}: {argument} {value}: {scores}, real {figure(line['real']['f1'])}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="only print the table of the results")
    parser.add_argument("--choose", metavar="ARGUMENT=A,B", help="try these values with each TOOL, and write nothing")
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    args = parser.parse_args()
    if unknown := set(args.tools) - set(TOOLS):
        parser.error(f"no tool {', '.join(unknown)}")
    if not args.table:
        if not (args.set and args.work and args.wheel):
            parser.error("--set, --work and --wheel are needed to measure")
        args.work = args.work.resolve()
        args.work.mkdir(parents=True, exist_ok=True)
        truth = Truth(args.set)
        if args.choose:
            return choose(args, truth)
        for name in args.tools or TOOLS:
            line = json.dumps(measure(args, truth, name, {}))
            print(line, flush=True)
            with open(args.results, "a", encoding="utf-8") as file:
                file.write(line + "\n")
    print_table(args.results)


if __name__ == "__main__":
    main()
