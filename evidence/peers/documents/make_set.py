#!/usr/bin/env python3
"""Makes a labelled set of documents, real and made ones, for compare.py.

    make_set.py --sets FOLDER --out FOLDER [--documents 50000] [--seed 1]

--sets is a folder of labelled sets: FOLDER/NAME with docs.jsonl or docs.parquet, pairs.tsv and, where pages are to be left out,
ignore_ids.txt. Sets named in --leave-out are left out (laws_zh is a sample of laws_zh_full). Writes below --out:

    documents/dt=2026-01-01/part-00000.parquet   id, text: first the real documents, then the made ones
    pairs.tsv                                    id_a, id_b, indel_sim, label (pos, gray), origin; every other pair is a negative
    set.json                                     counts and the seed

Real documents keep their texts; their id is NAME/id. Made ones fill the set up:

- two fifths are edits of a real document (20 to 400 tokens): tokens are replaced, inserted and deleted in runs of 1 to 8, with runs of
  other documents of the same set. The share of edited tokens is drawn log-uniformly between 0.3 and 30 %. One document may be edited often;
- the others are unrelated: runs of 5 to 15 tokens from eight documents of one set, as many tokens as a document of this set has.

Labels: pairs of one real set have the label that was published with it. For all other pairs (real documents of different sets, and
whatever has a made document), the Indel similarity 2 LCS / (n + m) is computed over tokens (single Han, Hiragana and Katakana characters and
other runs of \\w, lower-cased, as in crawl_seatunnel): from 0.90 on a positive, from 0.75 gray. The list is complete: pairs are only left out
where their counts of common tokens do not allow 0.75. Needs numpy, pyarrow, rapidfuzz and scipy. Same sets and seed, same bytes.
"""

import argparse
import json
import random
import re
import time
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rapidfuzz.distance import Indel
from scipy.spatial.distance import cdist

CHARACTER = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
TOKEN = re.compile(rf"{CHARACTER}|(?:(?!{CHARACTER})\w)+")
POSITIVE, GRAY = 0.90, 0.75
# Counts of tokens are compared in so many buckets first; those that share a bucket only make the first look more generous.
BUCKETS = 128
ROWS = 512


def real_documents(folder, left_out):
    """(set, id, text) of every document, in the order of the sets' names."""
    for place in sorted(path.parent for path in folder.glob("*/pairs.tsv") if path.parent.name not in left_out):
        ignored = place / "ignore_ids.txt"
        ignored = set(ignored.read_text(encoding="utf-8").split("\n")) if ignored.exists() else set()
        if (place / "docs.parquet").exists():
            rows = pq.read_table(place / "docs.parquet", columns=["id", "text"]).to_pylist()
        else:
            with open(place / "docs.jsonl", encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines]
        for row in rows:
            if row["id"] not in ignored:
                yield place.name, row["id"], row["text"]


def published_pairs(folder, names):
    """(id, id, similarity, label) of the positive and gray pairs published with the sets."""
    for name in names:
        for line in (folder / name / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            a, b, similarity, _, label = line.split("\t")
            if label != "neg":
                yield f"{name}/{a}", f"{name}/{b}", float(similarity), label


class Source:
    """A real document cut at its tokens: piece i is token i and what stands before it."""

    def __init__(self, name, text):
        self.name = name
        ends = [match.end() for match in TOKEN.finditer(text)]
        self.pieces = [text[start:end] for start, end in zip([0, *ends], ends)]

    def run(self, draw, length):
        """So many neighbouring pieces, from anywhere."""
        start = draw.randrange(max(len(self.pieces) - length, 0) + 1)
        return self.pieces[start : start + length]


def edited(draw, source, others):
    """A text with a drawn share of edited tokens."""
    pieces = list(source.pieces)
    left = round(len(pieces) * 10 ** draw.uniform(-2.5, -0.52)) or 1
    while left > 0 and pieces:
        length = min(draw.randint(1, 8), left)
        start = draw.randrange(len(pieces))
        kind = draw.choice(["replace", "insert", "delete"])
        new = [] if kind == "delete" else draw.choice(others).run(draw, length)
        pieces[start : start + (0 if kind == "insert" else length)] = new
        left -= length
    return "".join(pieces)


def unrelated(draw, sources):
    """A text of runs from eight documents of one set."""
    length = len(draw.choice(sources).pieces)
    some = draw.choices(sources, k=8)
    pieces = []
    while len(pieces) < length:
        pieces += draw.choice(some).run(draw, draw.randint(5, 15))
    return "".join(pieces)


def made_documents(draw, real, count):
    """(kind, id, text) of so many made documents."""
    sources = [Source(name, text) for name, _, text in real]
    sources = [source for source in sources if 20 <= len(source.pieces) <= 400]
    by_set = {}
    for source in sources:
        by_set.setdefault(source.name, []).append(source)
    for number in range(count):
        source = draw.choice(sources)
        if number < count * 2 // 5:
            yield "edited", f"edited/{number:05}", edited(draw, source, by_set[source.name])
        else:
            yield "unrelated", f"unrelated/{number:05}", unrelated(draw, by_set[source.name])


def alike(texts, known):
    """(row, row, similarity) of all pairs with a similarity of at least GRAY for which known(row, row) is false."""
    tokens = [TOKEN.findall(text.lower()) for text in texts]
    lengths = np.array([len(found) for found in tokens])
    order = np.argsort(lengths, kind="stable")
    order = order[np.searchsorted(lengths[order], 1) :]
    sorted_lengths = lengths[order].astype(np.float64)
    counts = np.zeros((len(order), BUCKETS))
    for row, document in enumerate(order):
        hashes = [zlib.crc32(token.encode()) % BUCKETS for token in tokens[document]]
        counts[row] = np.bincount(hashes, minlength=BUCKETS)
    bags = [Counter(found) for found in tokens]
    for start in range(0, len(order), ROWS):
        stop = min(start + ROWS, len(order))
        # 2 min / (n + m) >= GRAY; the documents are sorted by length.
        last = np.searchsorted(sorted_lengths, sorted_lengths[stop - 1] * (2 - GRAY) / GRAY, "right")
        differing = cdist(counts[start:stop], counts[start:last], "cityblock")
        together = sorted_lengths[start:stop, None] + sorted_lengths[None, start:last]
        for i, j in zip(*np.nonzero(differing <= (1 - GRAY) * together + 1e-9)):
            if i >= j:
                continue
            a, b = sorted((int(order[start + i]), int(order[start + j])))
            n = len(tokens[a]) + len(tokens[b])
            if known(a, b) or 2 * (bags[a] & bags[b]).total() < GRAY * n - 1e-9:
                continue
            similarity = Indel.normalized_similarity(tokens[a], tokens[b], score_cutoff=GRAY)
            if similarity >= GRAY:
                yield a, b, similarity


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--leave-out", nargs="*", default=["laws_zh"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--real", type=int, help="at most so many real documents, for a trial")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    started = time.monotonic()

    draw = random.Random(args.seed)
    real = list(real_documents(args.sets, args.leave_out))
    if args.real is not None:
        real = sorted(draw.sample(real, min(args.real, len(real))))
    made = list(made_documents(draw, real, max(args.documents - len(real), 0)))
    rows = [(name, f"{name}/{id}", text) for name, id, text in real] + made
    kinds, ids, texts = zip(*rows)
    row_of = {id: row for row, id in enumerate(ids)}
    if len(row_of) < len(ids):
        parser.error("two documents of a set have one id")

    place = args.out / "documents/dt=2026-01-01"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids, "text": texts}), place / "part-00000.parquet", compression="zstd", row_group_size=10_000)

    n_real = len(real)
    names = list(dict.fromkeys(kinds[:n_real]))
    pairs = [(*pair, "published") for pair in published_pairs(args.sets, names) if pair[0] in row_of and pair[1] in row_of]
    for a, b, similarity in alike(texts, lambda a, b: b < n_real and kinds[a] == kinds[b]):
        origin = "made" if b >= n_real else "across sets"
        pairs.append((ids[a], ids[b], round(similarity, 4), "pos" if similarity >= POSITIVE else "gray", origin))
    pairs.sort(key=lambda pair: (row_of[pair[0]], row_of[pair[1]]))
    with open(args.out / "pairs.tsv", "w", encoding="utf-8") as file:
        file.write("id_a\tid_b\tindel_sim\tlabel\torigin\n")
        file.writelines("\t".join(map(str, pair)) + "\n" for pair in pairs)
    summary = {
        "seed": args.seed, "n_documents": len(ids), "n_bytes": sum(len(text.encode()) for text in texts), "n_real": n_real,
        "n_by_kind": Counter(kinds), "n_pairs": Counter(f"{label}, {origin}" for *_, label, origin in pairs),
    }
    (args.out / "set.json").write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(json.dumps(summary), f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
