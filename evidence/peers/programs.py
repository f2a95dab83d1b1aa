#!/usr/bin/env python3
"""programs.py: runs nearprint and published programs on corpora of corpus.py and on labelled sets, and measures what they cost, find and lose.

    programs.py first --corpus FOLDER --work FOLDER --nearprint FILE [--rounds 2] [--results FILE.jsonl] PROGRAM...
    programs.py night --corpus FOLDER --work FOLDER --nearprint FILE [--rounds 2] [--results FILE.jsonl] PROGRAM...
    programs.py labelled --nearprint FILE [--results FILE.jsonl] SET...
    programs.py tables --results FILE.jsonl

`first` gives each program the first night of the corpus, as it is after corpus.py; `night` the second one after the first, which is prepared
before and not measured. The interpreter that runs this file runs the programs (programs_requirements.txt); datatrove and text_dedup have one
of their own, `--datatrove` and `--text-dedup`. Programs run one after another, in each round once, each as a whole process from Parquet
files to the ids that are dropped. Prints a JSON object a line, and appends it to the results:

- wall_seconds, cpu_seconds: of the process and its children. cpu_seconds is the figure to compare where others use the machine (`load`).
- peak_mb: the largest sum of the proportional set sizes (PSS) of these processes, looked at four times a second. written_mb: what they left on disk.
- by band of Jaccard similarity of the true pairs, in [from, below): `together`, the share whose documents the program's pairs connect; `found`, the
  share that are pairs of the program (not where it gives clusters, or a forest of its pairs); `one_goes`, the share of which at least one
  document is dropped.
- connected_below_half: of the pairs of documents of one group that are connected, the share with a similarity below .5. across: connected pairs of
  documents of different groups.
- lost_mean: mean share of a dropped document's runs of three words that no kept document of its group has. lost_tenth, lost_fifth: dropped documents that
  lose more than .1 and .2. dropped_single: dropped documents that are in no group.
"""

import argparse
import ctypes
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
FIRST, NIGHT = "dt=2026-01-01", "dt=2026-01-02"
BANDS = [(0.25, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01)]
WORD = re.compile(r"\w+")
PR_SET_CHILD_SUBREAPER = 36
# Lines of a job file beside the folders.
NEARPRINT = {
    "nearprint": [],
    "nearprint_one_thread": ["[resources]", "threads = 1"],
    "nearprint_all_pairs": ['pairs = "all"'],
    "nearprint_any_loss": ['pairs = "all"', "max_lost_share = 1"],
    "nearprint_strict": ['pairs = "all"', "max_lost_share = 0.04"],
    "nearprint_component": ['pairs = "all"', 'clusters = "component"'],
    "nearprint_no_judge": ['pairs = "all"', "[judge]", "max_looks = 0"],
}
NEARPRINT_LABELLED = {"nearprint": [], "nearprint_no_judge": ["--set", "judge.max_looks=0"]}
# What writes only enough pairs to connect all that belong together.
FORESTS = ("nearprint", "nearprint_one_thread")
CLUSTERS_ONLY = ("datatrove", "text_dedup")
# Labelled sets that the mean leaves out: a sample of another set, texts below the floor, and labels by other rules.
APART = ("laws_zh", "reviews_zh", "people_bills_v", "people_short_v")
PEERS = ["rensa_deduplicator", "rensa_shingles", "gaoya", "gaoya_shingles", "datasketch_shingles", "datatrove", "text_dedup"]
NIGHTLY = ["nearprint", "nearprint_all_pairs", "nearprint_any_loss", "rensa_deduplicator", "rensa_pickle"]
ONE_THREAD = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"], "1")


def tree(root):
    """The process and all below it."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def pss(process):
    """Proportional set size in bytes; 0 if the process is gone."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return 1024 * int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) if "Pss:" in text else 0


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(command, log, environment=None):
    """Runs a command to its end, and to the end of what it started."""
    load, peak, cpu = os.getloadavg()[0], 0, children_cpu()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with open(log, "w", encoding="utf-8") as out:
        began = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=out, env={**os.environ, **(environment or {})})
        while True:
            ended, status = os.waitpid(process.pid, os.WNOHANG)
            if ended:
                break
            peak = max(peak, sum(map(pss, tree(process.pid))))
            time.sleep(0.25)
        wall = time.perf_counter() - began
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"{command[0]}: exit {code}\n{Path(log).read_text(encoding='utf-8')[-3000:]}")
    return {"wall_seconds": round(wall, 2), "cpu_seconds": round(children_cpu() - cpu, 2), "peak_mb": round(peak / 1e6), "load": round(load, 1)}


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def job(args, place, more):
    lines = [f'documents = "{(args.corpus / "documents").resolve()}"', f'store = "{place}/store"', f'output = "{place}/output"', *more]
    (place / "job.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def nearprint_command(args, place, dt):
    command = [args.nearprint, "run", "--config", place / "job.toml", "--dt", dt.removeprefix("dt="), "--json"]
    return command + (["--create-store"] if dt == FIRST else [])


def peer_command(args, name, place, folders):
    python = {"datatrove": args.datatrove, "text_dedup": args.text_dedup}.get(name, sys.executable)
    return [python, HERE / "program_tools.py", name, place, *folders]


def column(path, name):
    return pq.read_table(path, columns=[name])[name].to_pylist()


def nearprint_results(place, dt):
    """What a night dropped, and its pairs."""
    night = place / "output/decisions" / dt
    rows = pq.read_table(night, columns=["doc_id", "decision"]).to_pylist()
    pairs = pq.read_table(place / "output/pairs" / dt, columns=["id_a", "id_b"])
    return {row["doc_id"] for row in rows if row["decision"] == "drop"}, list(zip(pairs["id_a"].to_pylist(), pairs["id_b"].to_pylist()))


def peer_results(place):
    found = place / "found.parquet"
    return set(column(place / "dropped.parquet", "id")), list(zip(column(found, "id_a"), column(found, "id_b"))) if found.exists() else None


def once(args, name, dt):
    """Runs a program on a night in an empty folder, or in one where the first night is done, and gives its figures and results."""
    place = args.work / name
    if dt == NIGHT:
        prepare(args, name, place)
    else:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    before = size(place)
    if name in NEARPRINT:
        job(args, place, NEARPRINT[name])
        line = measured(nearprint_command(args, place, dt), place / "log")
        results = nearprint_results(place, dt)
    else:
        nights = [FIRST, NIGHT] if dt == NIGHT and name == "rensa_deduplicator" else [dt]
        folders = [(args.corpus / "documents" / night).resolve() for night in nights]
        line = measured(peer_command(args, name, place, folders), place / "log", ONE_THREAD if name != "datatrove" else {})
        results = peer_results(place)
    line["written_mb"] = round((size(place) - before) / 1e6, 1) if name != "rensa_pickle" else round(size(place) / 1e6, 1)
    return line, results


def prepare(args, name, place):
    """The state after the first night: made once, and copied for each round."""
    done = args.work / f"{name}.first"
    if not done.exists():
        done.mkdir(parents=True)
        line = {}
        if name in NEARPRINT:
            job(args, done, NEARPRINT[name])
            line = measured(nearprint_command(args, done, FIRST), done / "log")
        elif name == "rensa_pickle":
            line = measured(peer_command(args, "rensa_index", done, [args.corpus / "documents" / FIRST]), done / "log", ONE_THREAD)
        if line:
            kept = {"kept_mb": round(size(done / "store" if name in NEARPRINT else done) / 1e6, 1)}
            report(args, {"part": "prepared", "program": name, **versions(args, name), **line, **kept})
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(done, place)


def versions(args, name):
    if name in NEARPRINT:
        given = subprocess.run([args.nearprint, "--version"], capture_output=True, text=True, check=True).stdout.split()
        return {"version": given[1]}
    if name in CLUSTERS_ONLY:
        python = args.datatrove if name == "datatrove" else args.text_dedup
        code = f"from importlib.metadata import version; print(version('{name.replace('_', '-')}'))"
        return {"version": subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()}
    return {"version": metadata.version(name.split("_")[0])}


def roots(pairs):
    """Of each document in a pair, one document that stands for all that are connected with it."""
    parent = {}

    def root(x):
        while parent.setdefault(x, x) != x:
            parent[x] = x = parent[parent[x]]
        return x

    for a, b in pairs:
        parent[root(a)] = root(b)
    return {x: root(x) for x in list(parent)}


class Shingles:
    """The runs of three words of texts, as numbers."""

    def __init__(self):
        self.numbers = {}

    def __call__(self, text):
        words = [self.numbers.setdefault(word, len(self.numbers)) for word in WORD.findall(text.lower())]
        words = np.array(words, dtype=np.uint64)
        return np.unique((words[:-2] << np.uint64(42)) | (words[1:-1] << np.uint64(21)) | words[2:])


def keys_of(name, pairs):
    """What there is to say of a band."""
    if pairs is None:
        return ["one_goes"]
    if name in FORESTS + CLUSTERS_ONLY:
        return ["together", "one_goes"]
    return ["found", "together", "one_goes"]


def band_line(band, keys):
    return {"from": band["from"], "below": min(band["below"], 1), "n": band["n"]} | {key: round(band[key] / max(band["n"], 1), 4) for key in keys}


class Truth:
    """The true pairs of a night, and the shingles of the documents in them."""

    def __init__(self, corpus, dt):
        rows = pq.read_table(corpus / "truth" / dt / "pairs.parquet").to_pylist()
        self.pairs = [(row["id_a"], row["id_b"], row["jaccard"]) for row in rows]
        self.group = roots((a, b) for a, b, _ in self.pairs)
        nights = [corpus / "documents" / night for night in ((FIRST, NIGHT) if dt == NIGHT else (FIRST,))]
        self.shingles, self.mine, shingles = {}, set(), Shingles()
        for night in nights:
            for path in sorted(night.glob("*.parquet")):
                table = pq.read_table(path)
                ids = table["id"].to_pylist()
                if night == nights[-1]:
                    self.mine.update(ids)
                for id, text in zip(ids, table["text"].to_pylist()):
                    if id in self.group:
                        self.shingles[id] = shingles(text)
        self.members = {}
        for id, group in self.group.items():
            self.members.setdefault(group, []).append(id)

    def score(self, dropped, pairs, keys):
        dropped = dropped & self.mine
        bands = [{"from": low, "below": high, "n": 0, "together": 0, "found": 0, "one_goes": 0} for low, high in BANDS]
        connected = roots(pairs) if pairs is not None else {}
        direct = {frozenset(pair) for pair in pairs or []}
        for a, b, jaccard in self.pairs:
            for band in bands:
                if band["from"] <= jaccard < band["below"]:
                    band["n"] += 1
                    band["together"] += a in connected and connected[a] == connected.get(b)
                    band["found"] += frozenset((a, b)) in direct
                    band["one_goes"] += a in dropped or b in dropped
        line = {"n_true_pairs": len(self.pairs), "n_dropped": len(dropped), "dropped_single": len(dropped - self.group.keys())}
        line["bands"] = [band_line(band, keys) for band in bands]
        return line | self.losses(dropped) | (self.connected(connected) if pairs is not None else {})

    def losses(self, dropped):
        lost = []
        for id in dropped & self.group.keys():
            others = [self.shingles[other] for other in self.members[self.group[id]] if other not in dropped]
            mine = self.shingles[id]
            lost.append(1 - np.isin(mine, np.concatenate(others)).mean() if others else 1.0)
        counts = {"lost_tenth": int(sum(share > 0.1 for share in lost)), "lost_fifth": int(sum(share > 0.2 for share in lost))}
        return {"lost_mean": round(float(mean(lost)), 4) if lost else None, **counts}

    def connected(self, root):
        below = sum(jaccard < 0.5 for a, b, jaccard in self.pairs if a in root and root[a] == root.get(b))
        within = sum(a in root and root[a] == root.get(b) for a, b, _ in self.pairs)
        sizes, parts = {}, {}
        for id, top in root.items():
            sizes[top] = sizes.get(top, 0) + 1
            part = (top, self.group.get(id, id))
            parts[part] = parts.get(part, 0) + 1
        twos = lambda counts: sum(n * (n - 1) // 2 for n in counts)  # noqa: E731
        return {"connected_below_half": round(below / within, 4) if within else None, "across": twos(sizes.values()) - twos(parts.values())}


def report(args, line):
    text = json.dumps(line)
    print(text, flush=True)
    if args.results:
        with open(args.results, "a", encoding="utf-8") as file:
            file.write(text + "\n")


def corpus_part(args, dt):
    truth, scored = None if args.cost_only else Truth(args.corpus, dt), set()
    n = sum(pq.ParquetFile(path).metadata.num_rows for path in (args.corpus / "documents" / dt).glob("*.parquet"))
    for number in range(args.rounds):
        for name in args.names:
            line, results = once(args, name, dt)
            head = {"part": args.part, "program": name, **versions(args, name), "n_documents": n, "round": number + 1}
            quality = truth.score(*results, keys_of(name, results[1])) if truth and name not in scored else {}
            scored.add(name)
            report(args, head | line | quality)
            if dt == FIRST:
                shutil.rmtree(args.work / name)


def spaced(text):
    """A blank around each Han and kana character."""
    return re.sub(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])", r" \1 ", text)


def peers_on(documents):
    """The pairs of each peer on a labelled set, by name."""
    import program_tools as tools

    slices = lambda change: ([[d["id"] for d in part], [change(d["text"]) for d in part]] for part in slices_of(documents))  # noqa: E731
    same = lambda text: text  # noqa: E731
    return {
        "rensa_shingles": lambda: tools.rensa_pairs(slices(spaced), tools.shingles, 0.7, 32),
        "rensa_default": lambda: tools.rensa_pairs(slices(same), str.split, 0.8, 8),
        "datasketch_shingles": lambda: tools.datasketch_pairs(slices(spaced), tools.shingles, 0.7),
        "datasketch_default": lambda: tools.datasketch_pairs(slices(same), str.split, 0.9),
        "gaoya_shingles": lambda: tools.gaoya_pairs(slices(spaced), jaccard_threshold=0.7, num_bands=20, band_size=6, lowercase=True, ngram_range=(3, 3)),
        "gaoya_default": lambda: tools.gaoya_pairs(slices(same)),
    }


def slices_of(rows, n=2000):
    return [rows[at : at + n] for at in range(0, len(rows), n)]


def labelled_documents(folder):
    jsonl = folder / "docs.jsonl"
    if jsonl.exists():
        return jsonl, [json.loads(line) for line in jsonl.read_text(encoding="utf-8").splitlines()]
    return folder / "docs.parquet", pq.read_table(folder / "docs.parquet", columns=["id", "text"]).to_pylist()


def labels(folder, ignored):
    found = {}
    lines = (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    at = lines[0].split("\t").index("label")
    for parts in (line.split("\t") for line in lines[1:]):
        if not ignored & set(parts[:2]):
            found[frozenset(parts[:2])] = parts[at]
    return found


def scores(n_positive, n_true, n_found, n_gray):
    precision = n_true / (n_found - n_gray) if n_found > n_gray else None
    recall = n_true / n_positive
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    given = {"precision": precision, "recall": recall, "f1": f1}
    counts = {"n_positive": n_positive, "n_true": n_true, "n_found": n_found, "n_gray": n_gray}
    return counts | {key: value if value is None else round(value, 4) for key, value in given.items()}


def nearprint_labelled(args, path, folder, more):
    """Scores of `nearprint evaluate` at the distances of the profile."""
    command = [args.nearprint, "evaluate", "--documents", path, "--truth", folder / "pairs.tsv", "--json", *more]
    ignore = folder / "ignore_ids.txt"
    command += ["--ignore", ignore] if ignore.exists() else []
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout.splitlines()[-1])
    row = next(row for row in summary["by_max_distance"] if row["max_distance"] == 12)
    return scores(summary["n_positive"], row["n_true"], row["n_found"] + row["n_gray"], row["n_gray"])


def labelled(args):
    for folder in map(Path, args.names):
        path, documents = labelled_documents(folder)
        ignore = folder / "ignore_ids.txt"
        ignored = set(ignore.read_text(encoding="utf-8").split()) if ignore.exists() else set()
        documents = [row for row in documents if row["id"] not in ignored]
        label = labels(folder, ignored)
        for name, more in NEARPRINT_LABELLED.items():
            if args.nearprint is None:
                break
            given = nearprint_labelled(args, path, folder, more)
            report(args, {"part": "labelled", "set": folder.name, "program": name, **versions(args, name), **given})
        for name, run in peers_on(documents).items() if not args.nearprint_only else ():
            ids, pairs = run()
            pairs = {frozenset((ids[a], ids[b])) for a, b in pairs}
            kinds = [label.get(pair) for pair in pairs]
            given = scores(list(label.values()).count("pos"), kinds.count("pos"), len(pairs), kinds.count("gray"))
            report(args, {"part": "labelled", "set": folder.name, "program": name, **versions(args, name), **given})


def figure(value, digits=3):
    return "" if value is None else f"{value:.{digits}f}".removeprefix("0" if value < 1 else "")


def seconds(lines, key):
    """The mean, and each run where there is more than one."""
    values = [line[key] for line in lines]
    each = f" ({', '.join(f'{value:,.1f}' for value in values)})" if len(values) > 1 else ""
    return f"{mean(values):,.1f}{each}"


def print_table(head, rows):
    print("\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def corpus_tables(programs):
    """Cost, bands and losses of programs on one corpus; quality is in one line of each."""
    quality = {name: next((line for line in of if "bands" in line), None) for name, of in programs}
    cost = ("cpu_seconds", "wall_seconds")
    rows = [[name, *(seconds(of, key) for key in cost), f"{max(line['peak_mb'] for line in of):,}", f"{of[0]['written_mb']:,.0f}"] for name, of in programs]
    print_table(["program", "CPU s", "wall s", "peak MB", "written MB"], rows)
    scored = [(name, line) for name, line in quality.items() if line]
    for key in ("found", "together", "one_goes"):
        rows = [[name, *(figure(band[key]) for band in line["bands"])] for name, line in scored if key in line["bands"][0]]
        if rows:
            print_table([key, *(f"{low} to {min(high, 1)}" for low, high in BANDS)], rows)
    keys = ("n_dropped", "lost_mean", "lost_tenth", "lost_fifth", "connected_below_half", "across", "dropped_single")
    rows = [[name, *(figure(line.get(key)) if isinstance(line.get(key), float) else f"{line[key]:,}" if key in line else "" for key in keys)] for name, line in scored]
    print_table(["program", *keys], rows)


def labelled_table(lines):
    names, folders = (list(dict.fromkeys(line[key] for line in lines)) for key in ("program", "set"))
    f1 = {(line["program"], line["set"]): line["f1"] for line in lines}
    counted = [folder for folder in folders if folder not in APART]
    rows = [[f"mean of {len(counted)} sets", *(figure(mean(f1[name, folder] for folder in counted)) for name in names)]]
    print_table(["set", *names], rows + [[f"`{folder}`", *(figure(f1[name, folder]) for name in names)] for folder in folders])


def tables(args):
    lines = [json.loads(line) for line in args.results.read_text(encoding="utf-8").splitlines()]
    for part in ("first", "night"):
        for n in sorted({line["n_documents"] for line in lines if line["part"] == part}):
            programs = {}
            for line in lines:
                if (line["part"], line.get("n_documents")) == (part, n):
                    programs.setdefault(f"{line['program']} {line['version']}", []).append(line)
            print(f"\n## {part}, {n:,} documents")
            corpus_tables(list(programs.items()))
    labelled_table([line for line in lines if line["part"] == "labelled"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["first", "night", "labelled", "tables"])
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--nearprint", type=Path)
    parser.add_argument("--datatrove", type=Path, metavar="PYTHON")
    parser.add_argument("--text-dedup", type=Path, metavar="PYTHON")
    parser.add_argument("--cost-only", action="store_true", help="first, night: do not read the truth")
    parser.add_argument("--nearprint-only", action="store_true", help="labelled: leave the peers out")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--results", type=Path)
    parser.add_argument("names", nargs="*", metavar="PROGRAM|SET", help=f"first: {', '.join([*NEARPRINT, *PEERS])}; night: {', '.join(NIGHTLY)}")
    args = parser.parse_intermixed_args()
    for key in ("work", "nearprint"):
        setattr(args, key, getattr(args, key) and getattr(args, key).resolve())
    if args.part == "tables":
        tables(args)
    elif args.part == "labelled":
        labelled(args)
    else:
        corpus_part(args, FIRST if args.part == "first" else NIGHT)


if __name__ == "__main__":
    main()
