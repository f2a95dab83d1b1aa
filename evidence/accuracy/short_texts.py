"""Cuts the texts of labelled sets into clauses, and labels their pairs: a set of short texts, to measure the floor with.

    python3 evidence/accuracy/short_texts.py --out short SET...

A SET is a folder with docs.jsonl. Clauses end at punctuation and line ends; of equal ones (white space and case aside) one is kept, of
those with more than --most features none. `short/docs.jsonl` has them, `short/pairs.tsv` their alike pairs: `pos` from a Jaccard
similarity of 0.7 on, `gray` from 0.5. Features are the distinct Han bigrams and other words, roughly as the default profile takes them.
"""

import argparse
import itertools
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

ALIKE, GRAY = 0.7, 0.5
END = re.compile(r"[.!?;:,。！？；：，、\n\r|]+")
HAN = "[\u3400-\u4dbf\u4e00-\u9fff]"
RUN = re.compile(rf"{HAN}+|(?:(?!{HAN})\w)+")


def features(text):
    found = set()
    for run in RUN.findall(text.casefold()):
        if re.match(HAN, run) and len(run) > 1:
            found.update(run[i : i + 2] for i in range(len(run) - 1))
        else:
            found.add(run)
    return frozenset(found)


def clauses(folders):
    for folder in folders:
        for line in (folder / "docs.jsonl").open(encoding="utf-8"):
            for clause in END.split(json.loads(line)["text"]):
                yield " ".join(clause.split())


def alike(sets):
    """Pairs of indexes that are not negative, with their similarity.

    They are found by their rarest features: two sets of similarity s share one of the rarest n - ⌈s n⌉ + 1 of each, of n.
    """
    common = Counter(itertools.chain.from_iterable(sets))
    by_feature = defaultdict(list)
    for i, mine in enumerate(sets):
        rarest = sorted(mine, key=lambda f: (common[f], f))[: len(mine) - math.ceil(GRAY * len(mine)) + 1]
        for j in sorted(set(itertools.chain.from_iterable(by_feature[f] for f in rarest))):
            similarity = len(mine & sets[j]) / len(mine | sets[j])
            if similarity >= GRAY:
                yield j, i, similarity
        for feature in rarest:
            by_feature[feature].append(i)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--most", type=int, default=16, help="features of a short text")
    arguments = parser.parse_args()
    texts = {}
    for clause in clauses(arguments.sets):
        if 2 <= len(features(clause)) <= arguments.most:
            texts.setdefault(clause.casefold(), clause)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "docs.jsonl").open("w", encoding="utf-8") as out:
        for i, text in enumerate(texts.values()):
            out.write(json.dumps({"id": f"c{i:06}", "text": text}, ensure_ascii=False) + "\n")
    pairs = sorted(alike([features(text) for text in texts.values()]))
    rows = [f"c{i:06}\tc{j:06}\t{'pos' if similarity >= ALIKE else 'gray'}\n" for i, j, similarity in pairs]
    (arguments.out / "pairs.tsv").write_text("id_a\tid_b\tlabel\n" + "".join(rows), encoding="utf-8")
    print(f"{len(texts)} short texts, {len(rows)} pairs that are not negative")


if __name__ == "__main__":
    main()
