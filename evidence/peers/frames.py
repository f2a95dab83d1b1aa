#!/usr/bin/env python3
"""frames.py: measures what it costs to find out which rows of a pandas frame stay, with nearprint.dedup and with other Python packages.

    frames.py measure --corpus FOLDER --work FOLDER [--rounds 2] [--results FILE.jsonl] PROGRAM...
    frames.py tables --results FILE.jsonl

The corpus is one of corpus.py, and its first night is the frame, with the columns `id` and `text`. Each program is a process of its own. The process
imports the package, reads the Parquet files into a frame, and finds the frame of the rows that stay; then it writes the ids of the others. Programs
run one after another, in each round once, with the interpreter that runs this file (frames_requirements.txt). Prints a JSON object a line, and appends
it to the results:

- cpu_seconds, wall_seconds: from the frame to the rows that stay. cpu_seconds is the figure to compare where others use the machine (`load`).
- whole_cpu_seconds, whole_wall_seconds: of the whole process, with imports, reading and writing.
- above_frame_mb: the largest resident memory (RSS) of the process and its children from the frame on, less what the process has when the frame is
  ready (frame_mb). peak_mb: that memory in all. It is looked at 20 times a second.
- disk_mb: the most that the temporary folder held.
- n_dropped, dropped_single, bands (`one_goes`), lost_mean, lost_tenth, lost_fifth: as in programs.py.
- thresholds: for each similarity `at`, how well the rows that stay stand for all rows. precision: the share of dropped rows that have a similarity of at
  least `at` to a row that stays. recall: of the true pairs with at least `at`, the share of which at least one goes. Both are 1 if no two rows that
  stay are so near, and each dropped row is near to one that stays. f1: their harmonic mean.
"""

import argparse
import gc
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import program_tools as tools
import pyarrow as pa
from programs import BANDS, FIRST, ONE_THREAD, Truth, children_cpu, figure, print_table, report, seconds, size, tree

if TYPE_CHECKING:
    import pandas as pd

THRESHOLDS = (0.5, 0.6, 0.7, 0.8)
PAGE = os.sysconf("SC_PAGE_SIZE")


def nearprint(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The three lines of docs/python.md."""
    import nearprint

    decided = nearprint.dedup(frame)
    return decided[decided["decision"] == "keep"]


def slices(frame: "pd.DataFrame") -> Any:
    """Lists of ids and texts, as program_tools.documents gives them."""
    for at in range(0, len(frame), tools.SLICE):
        part = frame[at : at + tools.SLICE]
        yield part["id"].tolist(), part["text"].tolist()


def rensa(frame: "pd.DataFrame") -> "pd.DataFrame":
    """rensa, its README: words between white space, threshold .8, 128 hashes."""
    from rensa import RMinHashDeduplicator

    dedup, kept = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True), []
    for ids, texts in slices(frame):
        kept += dedup.add_pairs((id, text.split()) for id, text in zip(ids, texts))
    return frame[kept]


def datasketch(frame: "pd.DataFrame") -> "pd.DataFrame":
    """datasketch: runs of three words, MinHashLSH(threshold=0.7, num_perm=128), no second look."""
    dropped, _ = tools.greedy(*tools.datasketch_pairs(slices(frame), tools.shingles, 0.7))
    return frame[~frame["id"].isin(dropped)]


def semhash_model() -> Any:
    """Semhash's own kind of encoder with the vectors and tokens that the package wordllama ships: the default model is on a hub."""
    import numpy as np
    from model2vec import StaticModel
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(str(metadata.distribution("wordllama").locate_file("wordllama")))
    vectors = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    return StaticModel(vectors.astype(np.float32), tokenizer)


def semhash(frame: "pd.DataFrame") -> "pd.DataFrame":
    """semhash with its defaults but for the model: threshold .9, usearch."""
    from semhash import SemHash

    found = SemHash.from_records(frame["text"].tolist(), model=semhash_model()).self_deduplicate()
    return frame[frame["text"].isin(set(found.selected))].drop_duplicates("text")


def pandas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """No program: the copy of the rows that stay, with which all others end, here of all rows but each eighth."""
    return frame[frame.index % 8 != 0]


PROGRAMS: dict[str, Callable[["pd.DataFrame"], "pd.DataFrame"]] = {
    "nearprint": nearprint,
    "rensa": rensa,
    "datasketch": datasketch,
    "semhash": semhash,
    "pandas": pandas,
}
# As in programs.py: these have one thread. The others have their defaults.
SINGLE = ("rensa", "datasketch")


def own_cpu() -> float:
    """Processor seconds of this process, and of its children that have ended."""
    return time.process_time() + children_cpu()


def rss(process: int) -> int:
    """Resident memory in bytes; 0 if the process is gone."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def one(name: str, folder: Path, place: Path) -> None:
    """The process that is measured."""
    import pandas as pd

    importlib.import_module(name)
    frame = pd.read_parquet(folder)[["id", "text"]]
    gc.collect()
    pa.default_memory_pool().release_unused()
    mark = {"at": time.monotonic(), "cpu": own_cpu(), "rss": rss(os.getpid())}
    kept = PROGRAMS[name](frame)
    line = {"wall_seconds": round(time.monotonic() - mark["at"], 2), "cpu_seconds": round(own_cpu() - mark["cpu"], 2), "n_documents": len(frame)}
    (place / "marks.json").write_text(json.dumps({"mark": mark, "line": line}), encoding="utf-8")
    tools.write(place, frame.loc[~frame["id"].isin(kept["id"]), "id"].tolist())


def measured(args: argparse.Namespace, name: str) -> tuple[dict[str, Any], set[str]]:
    """Runs a program on the frame, and gives its figures and the ids that it drops."""
    place = args.work / name
    shutil.rmtree(place, ignore_errors=True)
    (place / "tmp").mkdir(parents=True)
    folder = (args.corpus / "documents" / FIRST).resolve()
    environment = {**os.environ, **(ONE_THREAD if name in SINGLE else {}), "TMPDIR": str(place / "tmp")}
    load, cpu, looks, disk = os.getloadavg()[0], children_cpu(), [], 0
    with open(place / "log", "w", encoding="utf-8") as log:
        began = time.monotonic()
        command = [sys.executable, str(Path(__file__).resolve()), "one", "--corpus", str(folder), "--work", str(place), name]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        while process.poll() is None:
            looks.append((time.monotonic(), sum(map(rss, tree(process.pid)))))
            disk = max(disk, folder_size(place / "tmp"))
            time.sleep(0.05)
        wall = time.monotonic() - began
    if process.returncode:
        sys.exit(f"{name}: exit {process.returncode}\n{(place / 'log').read_text(encoding='utf-8')[-3000:]}")
    marks = json.loads((place / "marks.json").read_text(encoding="utf-8"))
    mark, line = marks["mark"], marks["line"]
    peak = max(mark["rss"], *(bytes for at, bytes in looks if mark["at"] <= at <= mark["at"] + line["wall_seconds"]))
    line |= {"whole_wall_seconds": round(wall, 2), "whole_cpu_seconds": round(children_cpu() - cpu, 2)}
    line |= {"frame_mb": round(mark["rss"] / 1e6), "above_frame_mb": round((peak - mark["rss"]) / 1e6), "peak_mb": round(peak / 1e6)}
    line |= {"disk_mb": round(disk / 1e6), "load": round(load, 1)}
    dropped = set(tools.pq.read_table(place / "dropped.parquet")["id"].to_pylist())
    shutil.rmtree(place)
    return line, dropped


def folder_size(folder: Path) -> int:
    """Bytes in a folder from which files vanish; 0 if one does at this moment."""
    try:
        return size(folder)
    except OSError:
        return 0


def threshold_line(truth: Truth, dropped: set[str], at: float) -> dict[str, float | int]:
    """Precision of the dropped rows and recall of the true pairs at a similarity."""
    pairs = [(a, b) for a, b, jaccard in truth.pairs if jaccard >= at]
    near_kept = {a for a, b in pairs if b not in dropped} | {b for a, b in pairs if a not in dropped}
    precision = len(dropped & near_kept) / max(len(dropped), 1)
    recall = sum(a in dropped or b in dropped for a, b in pairs) / max(len(pairs), 1)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"at": at, "n_pairs": len(pairs), "precision": round(precision, 4), "recall": round(recall, 4), "f1": round(f1, 4)}


def versions(name: str) -> dict[str, str]:
    """The version of a program, and of the model that it has."""
    return {"version": metadata.version(name)} | ({"model": f"wordllama {metadata.version('wordllama')}"} if name == "semhash" else {})


def measure(args: argparse.Namespace) -> None:
    """All rounds of the programs on one corpus. Quality is in the first line of each."""
    truth, scored = None, set()
    for number in range(args.rounds):
        for name in args.names:
            line, dropped = measured(args, name)
            quality: dict[str, Any] = {}
            if name not in scored and name != "pandas" and not args.cost_only:
                truth = truth or Truth(args.corpus, FIRST)
                quality = truth.score(dropped, None, ["one_goes"]) | {"thresholds": [threshold_line(truth, dropped, at) for at in THRESHOLDS]}
            scored.add(name)
            report(args, {"program": name, **versions(name), "round": number + 1, **line, **quality})


def tables(args: argparse.Namespace) -> None:
    """The tables of the README, of each number of documents."""
    lines = [json.loads(line) for line in args.results.read_text(encoding="utf-8").splitlines()]
    for n in sorted({line["n_documents"] for line in lines}):
        programs: dict[str, list[dict[str, Any]]] = {}
        for line in lines:
            if line["n_documents"] == n:
                programs.setdefault(f"{line['program']} {line['version']}", []).append(line)
        print(f"\n## {n:,} documents")
        cost, memory = ("cpu_seconds", "wall_seconds", "whole_cpu_seconds", "whole_wall_seconds"), ("above_frame_mb", "peak_mb", "disk_mb")
        rows = [[name, *(seconds(of, key) for key in cost), *(f"{max(line[key] for line in of):,}" for key in memory)] for name, of in programs.items()]
        print_table(["program", *cost, *memory], rows)
        good = {name: next((line for line in of if "thresholds" in line), None) for name, of in programs.items()}
        scored = [(name, line) for name, line in good.items() if line]
        parts = [f"{key} at {at}" for at in THRESHOLDS for key in ("precision", "recall", "f1")]
        rows = [[name, *(figure(at[key]) for at in line["thresholds"] for key in ("precision", "recall", "f1"))] for name, line in scored]
        print_table(["program", *parts], rows)
        keys = ("n_dropped", "lost_mean", "lost_tenth", "lost_fifth", "dropped_single")
        rows = [[name, *(figure(line[key]) if isinstance(line[key], float) else f"{line[key]:,}" for key in keys)] for name, line in scored]
        print_table(["program", *keys], rows)
        rows = [[name, *(figure(band["one_goes"]) for band in line["bands"])] for name, line in scored]
        print_table(["one goes", *(f"{low} to {min(high, 1)}" for low, high in BANDS)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["measure", "tables", "one"], help="`one` is the process that is measured")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "frames")
    parser.add_argument("--cost-only", action="store_true", help="do not read the truth")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--results", type=Path)
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    args = parser.parse_intermixed_args()
    if unknown := set(args.names) - PROGRAMS.keys():
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    args.work = args.work.resolve()
    if args.part == "tables":
        tables(args)
    elif args.part == "one":
        one(args.names[0], args.corpus, args.work)
    else:
        measure(args)


if __name__ == "__main__":
    main()
