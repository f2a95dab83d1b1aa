"""Chooses the default profile on all folds but one and measures the choice on that one: the protocol of evidence/accuracy.

    python3 evidence/accuracy/folds.py --output evidence/accuracy/folds.jsonl SET...
    python3 evidence/accuracy/folds.py --tables evidence/accuracy/folds.jsonl
    python3 evidence/accuracy/folds.py --changes --output evidence/accuracy/changes.jsonl SET...
    python3 evidence/accuracy/folds.py --tables evidence/accuracy/changes.jsonl --changes

A SET is a folder with docs.jsonl or docs.parquet, pairs.tsv and, where pages are to be left out, ignore_ids.txt; its name is the
set's. Sets of FOLDS that share a fold are left out together; any other set is a fold of its own.

Each line of the results is one run of `nearprint evaluate`: a `choice` (settings by name), `max_sketch_distance`, `set`, `seed`, and
for each `max_distance` the numbers of true pairs, of found ones that are not gray, and of gray ones; `n_positive` beside them. `--tables` prints the choice of
each fold, its scores on the fold left out, and the scores of the shipped profile, whose choice saw all sets.

With `--changes`, the shipped profile is measured with one thing changed at a time, by the first three seeds that report. These results
chose nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDS = {
    "streampark": ["docs_rev_en", "docs_rev_zh"],
    "laws": ["laws_zh", "laws_zh_full"],
    "fastapi, otel, helm": [
        "docs_rev_zh_fastapi", "docs_rev_zh_otel", "docs_rev_ja", "docs_rev_ko", "docs_rev_ru", "docs_rev_de", "docs_rev_pt", "docs_rev_tr_vi",
    ],
}
CHOOSING, REPORTING = range(12), range(12, 24)
DISTANCES = range(8, 13)
SKETCH_DISTANCES = [34, 36, 38, 40]
SHIPPED = ("default", 12, 36)


def sets(*settings):
    return [part for setting in settings for part in ("--set", setting)]


# By name, the settings that differ from the default profile's.
CHOICES = {
    "default": [],
    "every word whole": sets("tokenize.features.short_word=0"),
    "jieba's words": sets("tokenize.tokenizer.kind=mixed"),
}
# One thing changed at a time. `--changes` measures these, at the shipped distances unless they change them.
CHANGES = {
    "default": [],
    "every word whole (short_word 0)": sets("tokenize.features.short_word=0"),
    "words of two letters half (short_word 2)": sets("tokenize.features.short_word=2"),
    "words of four letters half (short_word 4)": sets("tokenize.features.short_word=4"),
    "no long runs (long_run 0)": sets("tokenize.tokenizer.long_run=0"),
    "weight count": sets("tokenize.features.weight=count"),
    "weight set": sets("tokenize.features.weight=set"),
    "jieba's words (mixed)": sets("tokenize.tokenizer.kind=mixed"),
    "single characters (words)": sets("tokenize.tokenizer.kind=words"),
    "pairs in Han only (bigrams)": sets("tokenize.tokenizer.kind=bigrams"),
    "sketch of pairs": sets("sketch.tokenizer=pairs"),
    "sketch of 2-shingles": sets("sketch.shingle=2"),
    "sketch of 4-shingles": sets("sketch.shingle=4"),
}
CHANGE_SEEDS = REPORTING[:3]


def documents(folder):
    return next(path for name in ("docs.jsonl", "docs.parquet") if (path := folder / name).exists())


def evaluate(nearprint, choice, limit, folder, seed):
    ignore = folder / "ignore_ids.txt"
    command = [nearprint, "evaluate", "--documents", documents(folder), "--truth", folder / "pairs.tsv", "--json", "--threads", "1"]
    command += ["--seed", str(seed), "--max-distance", str(max(DISTANCES)), *{**CHANGES, **CHOICES}[choice], *sets(f"join.max_sketch_distance={limit}")]
    command += ["--ignore", ignore] if ignore.exists() else []
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout.splitlines()[-1])
    scores = {row["max_distance"]: [row["n_true"], row["n_found"], row["n_gray"]] for row in summary["by_max_distance"]}
    return {
        "choice": choice,
        "max_sketch_distance": limit,
        "set": folder.name,
        "seed": seed,
        "n_positive": summary["n_positive"],
        "true_found_gray": {str(k): scores[k] for k in DISTANCES},
    }


def measure(arguments):
    # A choice beside the default is measured at the shipped limit only.
    work = [
        (choice, limit, folder, seed)
        for choice in CHOICES
        for limit in SKETCH_DISTANCES
        if choice == SHIPPED[0] or limit == SHIPPED[2]
        for folder in map(Path, arguments.sets)
        for seed in [*CHOOSING, *REPORTING]
    ]
    if arguments.changes:
        folders = map(Path, arguments.sets)
        work = [(change, SHIPPED[2], folder, seed) for folder in folders for seed in CHANGE_SEEDS for change in CHANGES]
    with ThreadPoolExecutor(os.cpu_count()) as pool, open(arguments.output, "w", encoding="utf-8") as out:
        for line in pool.map(lambda item: evaluate(arguments.nearprint, *item), work):
            out.write(json.dumps(line) + "\n")
            out.flush()


def f1(true, found, positive):
    precision, recall = (true / found if found else 1.0), true / positive
    return (2 * precision * recall / (precision + recall) if true else 0.0), precision, recall


def fold_of(name):
    return next((fold for fold, members in FOLDS.items() if name in members), name)


def mean(values):
    return statistics.fmean(values)


def tables(path):
    scores = {}
    for line in map(json.loads, open(path, encoding="utf-8")):
        for k, counts in line["true_found_gray"].items():
            key = (line["choice"], int(k), line["max_sketch_distance"])
            scores.setdefault(key, {}).setdefault(line["set"], {})[line["seed"]] = f1(*counts[:2], line["n_positive"])
    names = sorted(next(iter(scores.values())))

    def score(key, name, seeds, of=0):
        return mean([scores[key][name][seed][of] for seed in seeds])

    def choose(among):
        def worth(key):
            values = [score(key, name, CHOOSING) for name in among]
            return (mean(values) + min(values)) / 2

        return max(scores, key=worth)

    chosen = {fold: choose([name for name in names if fold_of(name) != fold]) for fold in sorted(set(map(fold_of, names)))}
    print("| fold left out | choice of the other folds | k | sketch |\n|---|---|---|---|")
    for fold, (choice, k, limit) in chosen.items():
        print(f"| {fold} | {choice} | {k} | ≤ {limit} |")
    print("\n| set | F1 | over seeds | precision | recall | shipped: F1 | precision | recall |\n|---|---|---|---|---|---|---|---|")
    for name in names:
        key = chosen[fold_of(name)]
        by_seed = [scores[key][name][seed][0] for seed in REPORTING]
        left_out = [score(key, name, REPORTING, of) for of in range(3)]
        shipped = [score(SHIPPED, name, REPORTING, of) for of in range(3)]
        print(
            f"| `{name}` | {left_out[0]:.4f} | {min(by_seed):.3f} to {max(by_seed):.3f} | {left_out[1]:.4f} | {left_out[2]:.4f} "
            f"| {shipped[0]:.4f} | {shipped[1]:.4f} | {shipped[2]:.4f} |"
        )
    macro = [mean([scores[chosen[fold_of(name)]][name][seed][0] for name in names]) for seed in REPORTING]
    print(f"\nfolds left out: macro F1 {mean(macro):.4f} ({min(macro):.4f} to {max(macro):.4f})")
    for choice in CHOICES:
        for k in DISTANCES:
            at = (choice, k, SHIPPED[2])
            by_seed = [mean([scores[at][name][seed][0] for name in names]) for seed in [*CHOOSING, *REPORTING]]
            worst = min(names, key=lambda name: score(at, name, REPORTING))
            print(
                f"{choice}, k = {k}, sketch ≤ {SHIPPED[2]}: {mean(by_seed[12:]):.4f} ({min(by_seed[12:]):.4f} to {max(by_seed[12:]):.4f}), "
                f"seed 0 {by_seed[0]:.4f}, median of all seeds {statistics.median(by_seed):.4f}; worst {worst} {score(at, worst, REPORTING):.4f}"
            )
    print("all folds choose", choose(names))


def changes(path):
    """Prints what each change does at each distance: macro F1 less the default's, and the worst set."""
    scores = {}
    for line in map(json.loads, open(path, encoding="utf-8")):
        for k, counts in line["true_found_gray"].items():
            of_set = scores.setdefault((line["choice"], int(k)), {}).setdefault(line["set"], [])
            of_set.append(f1(*counts[:2], line["n_positive"]))

    def row(name, key):
        sets_of = {name: [mean(column) for column in zip(*values, strict=True)] for name, values in scores[key].items()}
        macro, precision, recall = (mean(column) for column in zip(*sets_of.values(), strict=True))
        worst = min(sets_of, key=lambda name: sets_of[name][0])
        less = macro - mean([mean([value[0] for value in values]) for values in scores[SHIPPED[:2]].values()])
        print(f"| {name} | {macro:.4f} | {less:+.4f} | {precision:.4f} | {recall:.4f} | `{worst}` {sets_of[worst][0]:.3f} |")

    print("| change | macro F1 | less the default's | precision | recall | worst set |\n|---|---|---|---|---|---|")
    for change in CHANGES:
        row(change, (change, SHIPPED[1]))
    for k in reversed(DISTANCES[:-1]):
        row(f"k = {k}", (SHIPPED[0], k))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearprint", default="nearprint")
    parser.add_argument("--output", help="results, one JSON object a line")
    parser.add_argument("--tables", help="print this results file")
    parser.add_argument("--changes", action="store_true", help="measure, or print, one change at a time")
    parser.add_argument("sets", nargs="*")
    arguments = parser.parse_args()
    if arguments.tables and arguments.changes:
        changes(arguments.tables)
    elif arguments.tables:
        tables(arguments.tables)
    else:
        measure(arguments)


main()
