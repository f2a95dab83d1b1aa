"""Compares what finds documents of earlier nights: fingerprints, words of sketches, or both, as shown in evidence/keys.

    python3 evidence/keys/keys.py --bench target/release/nearprint-bench --work FOLDER --results evidence/keys/results.jsonl SET...
    python3 evidence/keys/keys.py --results evidence/keys/results.jsonl

A SET is a folder as evidence/judge/judges.py takes it, and the seeds and the halves are the same. A candidate is a pair of documents with
fingerprints within so many bits, or one of the first words of 64 bits of their sketches within so many. Pairs are candidates whose
sketches are within 36. Without sets, the table of the page is printed.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "judge"))

from judges import GRADES, HALVES, NEAR, PEOPLE, SEEDS, TEMPLATES, VISIBLE, Pairs, mean, short

FINGERPRINTS = [None, 7, 8, 9, 10, 12]
WORDS = [(0, 0), *((n, bits) for n in (1, 2, 3, 4) for bits in (7, 8, 9))]
SHOWN = [(12, 0, 0), (10, 0, 0), (8, 0, 0), (None, 2, 8), (7, 2, 7), (8, 1, 8), (8, 1, 9), (9, 1, 8), (8, 2, 7), (8, 2, 8), (8, 2, 9), (8, 3, 7),
         (9, 2, 8), (12, 1, 8), (12, 2, 8), (None, 4, 9)]


def measured(options, name, folder, seed):
    path = options.work / f"{name}.{seed}.tsv"
    if not path.exists():
        source = next(file for file in folder.iterdir() if file.name.startswith("docs."))
        command = [options.bench, "measures", "--documents", source, "--max-distance", "12", "--max-sketch-distance", str(NEAR)]
        with path.with_suffix(".part").open("wb") as out:
            subprocess.run([*command, "--seed", str(seed), "--threads", "2"], stdout=out, check=True)
        path.with_suffix(".part").rename(path)
    return Pairs(path, folder)


def pairs_by(fingerprint, n_words, bits):
    def rule(pairs):
        near = pairs.sketch < 0 if fingerprint is None else pairs.distance <= fingerprint
        if n_words:
            near = near | (pairs.words[:n_words].min(axis=0) <= bits)
        return near & (pairs.sketch <= NEAR)
    return rule


def of_seed(sets, rule):
    scores = {name: sets[name].score(rule(sets[name])) for name in VISIBLE}
    bills = sets["people_bills_v"]
    taken = rule(bills)
    return {
        "f1": {name: score[0] for name, score in scores.items()},
        "precision_templates": min(scores[name][1] for name in TEMPLATES),
        "bills": {grade: int((taken & (bills.grade == grade)).sum()) for grade in GRADES},
    }


def line(of_key, found):
    macro = [mean(seed["f1"].values()) for seed in found]
    f1 = {name: mean(seed["f1"][name] for seed in found) for name in VISIBLE}
    worst = min(VISIBLE, key=f1.get)
    return {
        "fingerprint": of_key[0], "words": of_key[1], "word": of_key[2], "macro_f1": [mean(macro), min(macro), max(macro)],
        "halves": {half: mean(f1[name] for name in names) for half, names in HALVES.items()}, "worst": [worst, f1[worst]],
        "precision_templates": mean(seed["precision_templates"] for seed in found),
        "bills": {grade: mean(seed["bills"][grade] for seed in found) for grade in GRADES},
    }


def table(lines):
    found = {(each["fingerprint"], each["words"], each["word"]): each for each in lines}
    print("| fingerprints | words | macro F1, least of the seeds | halves | worst set | precision of templates | almost identical, of 39 |")
    print("|---|---|---|---|---|---|---|")
    for key in SHOWN:
        each = found[key]
        by_words = f"{key[1]} within {key[2]}" if key[1] else "none"
        mean_f1, least, _ = each["macro_f1"]
        print(f"| {'none' if key[0] is None else f'within {key[0]}'} | {by_words} | {short(mean_f1, 4)}, {short(least, 4)} | "
              f"{short(each['halves']['A'], 4)}, {short(each['halves']['B'], 4)} | {short(each['worst'][1])} | "
              f"{short(each['precision_templates'])} | {each['bills']['almost']:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("sets", nargs="*", type=Path)
    options = parser.parse_args()
    if options.sets:
        folders = {folder.name: folder for folder in options.sets}
        options.work.mkdir(parents=True, exist_ok=True)
        found = {}
        for seed in SEEDS:
            sets = {name: measured(options, name, folders[name], seed) for name in [*VISIBLE, *PEOPLE]}
            for key in ((fingerprint, *words) for fingerprint in FINGERPRINTS for words in WORDS):
                found.setdefault(key, []).append(of_seed(sets, pairs_by(*key)))
        lines = [line(key, of_seeds) for key, of_seeds in found.items()]
        options.results.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    table([json.loads(each) for each in options.results.read_text(encoding="utf-8").splitlines()])


if __name__ == "__main__":
    main()
