"""Measures what each choice of the profile `han-bigrams`, the default until November 2026, is worth: `nearprint evaluate` on labelled sets, one change at a time.

    python3 evidence/accuracy/sensitivity.py --output evidence/accuracy/results.jsonl SET...
    python3 evidence/accuracy/sensitivity.py --tables evidence/accuracy/results.jsonl

A SET is a folder with docs.jsonl, pairs.tsv and, where pages are to be left out, ignore_ids.txt; its name is the set's. The second
command prints a results file as the tables of evidence/accuracy.

The first line of a results file names the sets and seeds. The others have a `part`:

profile     a profile, under `arguments`, at `max_distance`
change      likewise, with one thing changed from the default; `difference` has mean and standard deviation, over the seeds, of macro
            F1 less the default's of the same seed; `same_on` the sets where no score differs at any distance
sketch      the default at each `max_sketch_distance`, null for no second look
candidates  without a sketch: `share` of the negative pairs within `max_distance`, by set
left_out    the best macro F1 on all sets but one, scored on that one: `of` the distances (max_distance up to 8), or `of` the changes
other_seeds the default with seeds that chose nothing
floor       on --short-texts, whose KEY is that of tokenize.min_features: `unlike` pairs found, neither pos nor gray, all seeds together

`f1` has macro F1 as mean, smallest and largest over the seeds; `f1_by_set`, `precision` and `recall` are means over the seeds. Profiles
whose hash has no seed are measured once.
"""

import argparse
import json
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LONGEST = 12
CURVE = list(range(3, LONGEST + 1))
SKETCH_DISTANCES = list(range(16, 68, 4))
LEFT_OUT_UP_TO = 8
OWN, NO_SKETCH = 8, ["--profile", "paper"]


def sets(*settings):
    return [part for setting in settings for part in ("--set", setting)]


KIND, WEIGHT = "tokenize.tokenizer.kind=", "tokenize.features.weight="
BIGRAMS, LOG = sets(KIND + "bigrams"), sets(WEIGHT + "log_count")

# (name, arguments, distances)
PROFILES = [
    ("default", [], CURVE),
    ("default, mixed (jieba) for bigrams", sets(KIND + "mixed"), CURVE),
    ("default, words (single characters) for bigrams", sets(KIND + "words"), CURVE),
    ("default, count for log_count", sets(WEIGHT + "count"), CURVE),
    ("default without sketch", [*NO_SKETCH, *BIGRAMS, *LOG], CURVE),
    ("default without sketch, mixed for bigrams", [*NO_SKETCH, *LOG], CURVE),
    ("default without sketch, words for bigrams", [*NO_SKETCH, *LOG, *sets(KIND + "words")], CURVE),
    ("default without sketch, set for log_count", [*NO_SKETCH, *BIGRAMS, *sets(WEIGHT + "set")], CURVE),
    ("default without sketch, count for log_count", [*NO_SKETCH, *BIGRAMS], CURVE),
    ("paper", NO_SKETCH, CURVE),
]
PUBLISHED = ["java", "hanlp-java", "python-simhash", "seomoz", "cppjieba", "gaoya", "simhash-crate", "sing1ee", "mllearning", "mllearning-bytes2"]
PROFILES += [(name, ["--profile", name], [3, 6]) for name in PUBLISHED]

# (group, name, arguments)
CHANGES = [
    ("sketch", "sketch ≤ 32", sets("join.max_sketch_distance=32")),
    ("sketch", "sketch ≤ 36", sets("join.max_sketch_distance=36")),
    ("sketch", "sketch ≤ 44", sets("join.max_sketch_distance=44")),
    ("sketch", "sketch ≤ 48", sets("join.max_sketch_distance=48")),
    ("sketch", "sketch of tokens (shingle 1)", sets("sketch.shingle=1")),
    ("sketch", "sketch of 3-shingles", sets("sketch.shingle=3")),
    ("sketch", "no sketch", [*NO_SKETCH, *BIGRAMS, *LOG]),
    ("features", "weight set", sets(WEIGHT + "set")),
    ("features", "weight count", sets(WEIGHT + "count")),
    ("features", "weight capped_count (6)", sets(WEIGHT + "{ capped_count = { cap = 6 } }")),
    ("features", "features of 2 tokens", sets("tokenize.features.shingle=2")),
    ("tokenizer", "mixed (jieba)", sets(KIND + "mixed")),
    ("tokenizer", "mixed, hmm", sets(KIND + "mixed", "tokenize.tokenizer.hmm=true")),
    ("tokenizer", "words (single Han characters)", sets(KIND + "words")),
    ("tokenizer", "char_ngrams (4)", sets(KIND + "char_ngrams")),
    ("tokenizer", "symbols kept", sets("tokenize.tokenizer.drop_tokens_without_alphanumeric=false")),
    ("tokenizer", "built-in stop words dropped", sets("tokenize.stop_words.builtin=true")),
    ("floor", "no floor", sets("tokenize.min_features.han=1", "tokenize.min_features.other=1")),
    ("floor", "floor Han 8", sets("tokenize.min_features.han=8")),
    ("floor", "floor Han 12", sets("tokenize.min_features.han=12")),
    ("floor", "floor other 6", sets("tokenize.min_features.other=6")),
    ("floor", "floor other 10", sets("tokenize.min_features.other=10")),
    ("normalisation", "no nfkc", sets("tokenize.normalize.nfkc=false")),
    ("normalisation", "no case_fold", sets("tokenize.normalize.case_fold=false")),
    ("normalisation", "no html_entities", sets("tokenize.normalize.html_entities=false")),
    ("normalisation", "no control_characters", sets("tokenize.normalize.control_characters=false")),
    ("normalisation", "no white_space", sets("tokenize.normalize.white_space=false")),
    ("normalisation", "special_characters", sets("tokenize.normalize.special_characters=true")),
]
CHANGED_DISTANCES = [7, 9]

CANDIDATES = [("bigrams", BIGRAMS), ("mixed", sets(KIND + "mixed")), ("words", sets(KIND + "words"))]
CANDIDATE_DISTANCES = [3, 6, 7, 8]
FLOORS = [2, 4, 6, 8, 9, 10, 12]
OTHER_SEEDS, FLOOR_SEEDS = list(range(6, 18)), list(range(12))


class Set:
    """A labelled set, and how many of its pairs are negative."""

    def __init__(self, folder):
        self.folder, self.name = folder, folder.resolve().name
        ignored = folder / "ignore_ids.txt"
        self.arguments = ["--documents", folder / "docs.jsonl", "--truth", folder / "pairs.tsv"]
        if ignored.exists():
            self.arguments += ["--ignore", ignored]

    def n_negative(self, score):
        n = score["n_documents"] - score["n_ignored"]
        skip = set()
        if (self.folder / "ignore_ids.txt").exists():
            skip = set((self.folder / "ignore_ids.txt").read_text(encoding="utf-8").split())
        rows = [line.split("\t") for line in (self.folder / "pairs.tsv").read_text(encoding="utf-8").splitlines()]
        a, b, label = (rows[0].index(name) for name in ("id_a", "id_b", "label"))
        other = sum(row[label] in ("pos", "gray") and row[a] not in skip and row[b] not in skip for row in rows[1:])
        return n * (n - 1) // 2 - other


class Runner:
    """Runs `nearprint evaluate` and remembers."""

    def __init__(self, nearprint, sets, seeds, jobs, pool=None):
        self.nearprint, self.sets, self.seeds, self.known = nearprint, sets, seeds, {}
        self.pool = pool or ThreadPoolExecutor(jobs)

    def evaluate(self, labelled, arguments, seed, max_distance=LONGEST):
        command = [self.nearprint, "evaluate", *labelled.arguments, "--max-distance", str(max_distance), "--threads", "1", "--json"]
        command += [] if "--profile" in arguments else ["--profile", "han-bigrams"]
        command += [*arguments, *([] if seed is None else ["--seed", str(seed)])]
        done = subprocess.run(command, capture_output=True, text=True, env={"NEARPRINT_LOG": "error"})
        summary = json.loads(done.stdout.splitlines()[-1])
        if done.returncode:
            raise SystemExit(f"{labelled.name}: {' '.join(arguments)}: {summary['error']}")
        return summary

    def seeds_of(self, arguments):
        """The seeds, or none for profiles whose hash has none."""
        own = arguments[arguments.index("--profile") + 1] if "--profile" in arguments else "default"
        return [None] if own in PUBLISHED else self.seeds

    def scores(self, arguments):
        """[seed][set] -> summary."""
        key = tuple(arguments)
        if key not in self.known:
            seeds = self.seeds_of(arguments)
            jobs = [(labelled, arguments, seed) for seed in seeds for labelled in self.sets]
            flat = list(self.pool.map(lambda job: self.evaluate(*job), jobs))
            self.known[key] = [flat[i : i + len(self.sets)] for i in range(0, len(flat), len(self.sets))]
        return self.known[key]


def at(summary, distance):
    return next(row for row in summary["by_max_distance"] if row["max_distance"] == distance)


def mean(values):
    return statistics.fmean(values)


def rounded(values):
    return [round(v, 5) for v in values]


def spread(rows):
    """Of rows [seed][set] of scores: what a line of results says."""
    macro = [mean([s["f1"] for s in row]) for row in rows]
    by_set = [mean([row[i]["f1"] for row in rows]) for i in range(len(rows[0]))]
    over = {key: round(mean([s[key] for row in rows for s in row]), 5) for key in ("precision", "recall")}
    return macro, {"f1": rounded([mean(macro), min(macro), max(macro)]), "f1_by_set": rounded(by_set), **over}


def profiles(runner):
    for name, arguments, distances in PROFILES:
        scores = runner.scores(arguments)
        for distance in distances:
            _, line = spread([[at(s, distance) for s in row] for row in scores])
            yield {"part": "profile", "name": name, "arguments": arguments, "max_distance": distance, **line}


def counts(summary):
    return [(row["n_found"], row["n_true"], row["n_gray"]) for row in summary["by_max_distance"]]


def changes(runner):
    default = runner.scores([])
    own, line = spread([[at(s, OWN) for s in row] for row in default])
    distances = [("distance", f"k = {k}", [], k) for k in CHANGED_DISTANCES]
    for group, name, arguments, distance in distances + [(*change, OWN) for change in CHANGES]:
        scores = runner.scores(arguments)
        macro, line = spread([[at(s, distance) for s in row] for row in scores])
        less = [a - b for a, b in zip(macro, own, strict=True)]
        same = [s.name for i, s in enumerate(runner.sets) if arguments and [counts(row[i]) for row in scores] == [counts(row[i]) for row in default]]
        yield {"part": "change", "group": group, "name": name, "arguments": arguments, "max_distance": distance, **line,
               "difference": rounded([mean(less), statistics.stdev(less)]) if len(less) > 1 else None, "same_on": same}


def by_sketch(runner):
    """(max_distance, max_sketch_distance) -> scores [seed][set] of the default."""
    grid = {}
    for sketch in SKETCH_DISTANCES:
        scores = runner.scores(sets(f"join.max_sketch_distance={sketch}"))
        for distance in CURVE:
            grid[distance, sketch] = [[at(s, distance) for s in row] for row in scores]
    return grid


def sketch_curve(runner, grid):
    """In steps of 8 from the default's own summary, which goes far beyond its own distance, and of the grid between."""
    rows = {}
    for row in runner.scores([]):
        for summary in row:
            for score in summary["by_max_sketch_distance"]:
                rows.setdefault(score["max_sketch_distance"], []).append(score)
    n = len(runner.sets)
    wide = {sketch: [flat[i : i + n] for i in range(0, len(flat), n)] for sketch, flat in rows.items()}
    wide |= {sketch: grid[OWN, sketch] for sketch in SKETCH_DISTANCES}
    for sketch in sorted(wide, key=lambda d: (d is None, d)):
        yield {"part": "sketch", "max_distance": OWN, "max_sketch_distance": sketch, **spread(wide[sketch])[1]}


def left_out(runner, of, choices, own):
    """`choices` and `own`, one of them, are (name, F1 by set)."""
    for out, labelled in enumerate(runner.sets):
        def five(choice):
            return mean([f for i, f in enumerate(choice[1]) if i != out])  # noqa: B023  (done within the round)

        name, f1 = max(choices, key=five)
        yield {"part": "left_out", "of": of, "set": labelled.name, "choice": name, "f1": f1[out], "f1_default": own[out],
               "f1_best": max(f1[out] for _, f1 in choices)}


def other_seeds(runner):
    scores = Runner(runner.nearprint, runner.sets, OTHER_SEEDS, 1, runner.pool).scores([])
    for distance in (6, 7, OWN):
        _, line = spread([[at(s, distance) for s in row] for row in scores])
        yield {"part": "other_seeds", "seeds": OTHER_SEEDS, "max_distance": distance, **line}


def candidates(runner):
    for name, arguments in CANDIDATES:
        scores = runner.scores([*NO_SKETCH, *arguments, *LOG] if name != "mixed" else [*NO_SKETCH, *LOG])
        for distance in CANDIDATE_DISTANCES:
            rows = [[at(s, distance) for s in row] for row in scores]
            unlike = [mean([row[i]["n_found"] - row[i]["n_true"] for row in rows]) for i in range(len(runner.sets))]
            negative = [labelled.n_negative(s) for labelled, s in zip(runner.sets, scores[0], strict=True)]
            yield {"part": "candidates", "name": name, "max_distance": distance, "n_by_set": rounded(unlike),
                   "share_by_set": [float(f"{u / n:.3g}") for u, n in zip(unlike, negative, strict=True)]}


def floors(runner, key, short):
    for floor in FLOORS:
        setting = sets(f"tokenize.min_features.{key}={floor}")
        scores = list(runner.pool.map(lambda seed: runner.evaluate(short, setting, seed, OWN), FLOOR_SEEDS))  # noqa: B023
        yield {"part": "floor", "set": short.name, "seeds": FLOOR_SEEDS, key: floor, "n_documents": scores[0]["n_documents"],
               "n_too_short": scores[0]["n_too_short"], "unlike": sum(s["n_found"] - s["n_true"] for s in scores),
               "gray": sum(s["n_gray"] for s in scores), "true": sum(s["n_true"] for s in scores)}


def measure(arguments):
    runner = Runner(arguments.nearprint, [Set(folder) for folder in arguments.sets], arguments.seeds, arguments.jobs)
    yield {"part": "sets", "sets": [s.name for s in runner.sets], "seeds": arguments.seeds}
    yield from profiles(runner)
    changed = list(changes(runner))
    yield from changed
    grid = by_sketch(runner)
    yield from sketch_curve(runner, grid)
    distances = [(f"k = {k}, sketch ≤ {s}", spread(scores)[1]["f1_by_set"]) for (k, s), scores in grid.items() if k <= LEFT_OUT_UP_TO]
    own = spread([[at(s, OWN) for s in row] for row in runner.scores([])])[1]["f1_by_set"]
    yield from left_out(runner, "distances", distances, own)
    rows = [("default", own)] + [(r["name"], r["f1_by_set"]) for r in changed if r["max_distance"] <= LEFT_OUT_UP_TO]
    yield from left_out(runner, "changes", rows, own)
    yield from other_seeds(runner)
    yield from candidates(runner)
    for key, folder in arguments.short_texts:
        yield from floors(runner, key, Set(Path(folder)))


def figure(value, digits=3):
    """.982, or 1.000."""
    return f"{value:.{digits}f}".removeprefix("0")


def table(head, rows):
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def tables(path):
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    names = [f"`{name}`" for name in lines[0]["sets"]]
    part = {}
    for line in lines:
        part.setdefault(line["part"], []).append(line)

    def scores(r, digits=3):
        low, high = (figure(f, digits) for f in r["f1"][1:])
        return [figure(r["f1"][0], digits), f"{low} to {high}" if low != high else "", *(figure(f, digits) for f in r["f1_by_set"])]

    head = ["macro F1", "over seeds", *names]
    table(["profile", "k", *head], [[r["name"], str(r["max_distance"]), *scores(r)] for r in part["profile"]])
    rows = [[r["name"], *scores(r, 4)[:2], "{:+.4f} ± {:.4f}".format(*r["difference"]) if r["difference"] else "", *scores(r)[2:],
             "all" if len(r["same_on"]) == len(names) else ", ".join(f"`{s}`" for s in r["same_on"])] for r in part["change"]]
    table(["change", *head[:2], "difference", *names, "same on"], rows)
    rows = [["none" if r["max_sketch_distance"] is None else f"≤ {r['max_sketch_distance']}", *scores(r), figure(r["precision"]), figure(r["recall"])]
            for r in part["sketch"]]
    table(["sketch", *head, "precision", "recall"], rows)
    rows = [[f"`{r['set']}`", r["choice"], *(figure(r[f], 4) for f in ("f1", "f1_default", "f1_best"))] for r in part["left_out"]]
    table(["left out", "best on the others", "F1 on it", "the default's", "the best there"], rows)
    table(["k", *head], [[str(r["max_distance"]), *scores(r, 4)] for r in part["other_seeds"]])
    rows = [[r["name"], str(r["max_distance"]), *(f"{n:.1f} ({s:.1e})" for n, s in zip(r["n_by_set"], r["share_by_set"], strict=True))]
            for r in part["candidates"]]
    table(["tokenizer", "k", *names], rows)
    rows = [[f"`{r['set']}`", *(str(r[f]) for f in ("han" if "han" in r else "other", "unlike", "gray", "true", "n_too_short", "n_documents"))]
            for r in part.get("floor", [])]
    table(["set", "floor", "unlike", "gray", "true", "too short", "documents"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET", help="folder with docs.jsonl and pairs.tsv")
    parser.add_argument("--nearprint", default="target/release/nearprint", help="the binary")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(6)), help="hash seeds")
    parser.add_argument("--short-texts", type=lambda text: text.split("=", 1), action="append", default=[], metavar="KEY=SET",
                        help="a set of short texts, for the floor han or other; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="evaluations at a time")
    parser.add_argument("--output", type=Path, help="results file to write")
    parser.add_argument("--tables", type=Path, metavar="RESULTS", help="print this results file instead")
    arguments = parser.parse_args()
    if arguments.tables:
        tables(arguments.tables)
        return
    if not arguments.sets or not arguments.output:
        parser.error("name labelled sets and --output, or --tables")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with arguments.output.open("w", encoding="utf-8") as out:
        for line in measure(arguments):
            out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
