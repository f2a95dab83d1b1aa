#!/usr/bin/env python3
"""corpus.py: makes a corpus of which all near-duplicates are known, for programs.py. Needs Python 3.11, numpy and pyarrow.

    corpus.py --texts SET... --out FOLDER --documents 200000 [--night 200000] [--seed 1]

A SET is a folder with docs.jsonl or docs.parquet, of English texts. A Markov chain over their words writes the documents, about 2.4 kB each,
and an eighth of the words of a document (or of a group) are invented ones of its own:

- 65 % are single;
- 30 % are in groups of 2 to 6: an original and its variants. A tenth of the variants are exact copies, the others are edited: single words
  all over the text (scattered), one passage that is replaced, put in or cut (block), or both (mixed). How much is edited is chosen so that the Jaccard
  similarity to the original, of sets of 3 words, is spread over .5 to 1;
- 5 % are pages of templates, ten pages each, with a similarity of about .25 to .48.

FOLDER/documents/dt=2026-01-01 gets Parquet files with `id` and `text`, FOLDER/truth/dt=2026-01-01 the tables groups.parquet (`id`, `group`,
`kind`) and pairs.parquet (`id_a`, `id_b`, `jaccard`, `kind`): every pair within a group, with its exact similarity. `--night` adds dt=2026-01-02, where
15 % are variants of single documents of the first night (`of_earlier`, with which they are in pairs.parquet) and 15 % are in groups of their
own. Documents of a group are dealt to different files. The same seed gives the same rows.
"""

import argparse
import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BATCH = 20_000
FILE_ROWS = 25_000
WORD = re.compile(r"\w+[.,;:!?]?")
N_INVENTED = 200_000
OWN_WORDS = 40
OWN_SHARE = 0.125
JUMP_SHARE = 0.1
PAGES = 10
FIXED = 12


class Language:
    """A Markov chain over the words of texts, and invented words beside them."""

    def __init__(self, folders, rng):
        tokens = [word for folder in folders for text in texts_of(folder) for word in WORD.findall(text)]
        known, stream = np.unique(np.array(tokens, dtype=object).astype(str), return_inverse=True)
        self.n_known = len(known)
        self.unigrams = stream.astype(np.int32)
        order = np.argsort(stream[:-1], kind="stable")
        self.next = stream[1:][order].astype(np.int32)
        counts = np.bincount(stream[:-1], minlength=self.n_known)
        self.first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.counts = np.maximum(counts, 1)
        self.words = [*known.tolist(), *invented(rng)]
        lower = {}
        plain = [lower.setdefault(word.lower().rstrip(".,;:!?"), len(lower)) for word in self.words]
        self.plain = np.array(plain, dtype=np.uint64)

    def write(self, n, rng):
        """`n` words of the chain."""
        lanes = max(1, min(4000, n // 50))
        steps = -(-n // lanes)
        out = np.empty((steps, lanes), dtype=np.int32)
        state = rng.choice(self.unigrams, lanes)
        for step in range(steps):
            out[step] = state
            at = self.first[state] + (rng.random(lanes) * self.counts[state]).astype(np.int64)
            state = np.where(rng.random(lanes) < JUMP_SHARE, rng.choice(self.unigrams, lanes), self.next[np.minimum(at, len(self.next) - 1)])
        return np.ascontiguousarray(out.T).reshape(-1)[:n]

    def documents(self, lengths, rng):
        """Documents of these numbers of words, each with words of its own."""
        n = int(lengths.sum())
        out = self.write(n, rng)
        document = np.repeat(np.arange(len(lengths)), lengths)
        pools = rng.integers(self.n_known, len(self.words), (len(lengths), OWN_WORDS), dtype=np.int32)
        own = np.flatnonzero(rng.random(n) < OWN_SHARE)
        out[own] = pools[document[own], (rng.random(len(own)) ** 2 * OWN_WORDS).astype(np.int64)]
        return np.split(out, np.cumsum(lengths)[:-1])

    def text(self, ids):
        return " ".join(map(self.words.__getitem__, ids.tolist()))

    def shingles(self, ids):
        plain = self.plain[ids]
        return np.unique((plain[:-2] << np.uint64(42)) | (plain[1:-1] << np.uint64(21)) | plain[2:])


def texts_of(folder):
    if (folder / "docs.jsonl").exists():
        return [json.loads(line)["text"] for line in (folder / "docs.jsonl").read_text(encoding="utf-8").splitlines()]
    return pq.read_table(folder / "docs.parquet")["text"].to_pylist()


def invented(rng):
    """Words of two to four syllables, each once."""
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "on", "us")]
    words = {}
    while len(words) < N_INVENTED:
        picks = rng.integers(0, len(syllables), (N_INVENTED, 4))
        sizes = rng.integers(2, 5, N_INVENTED)
        words.update(dict.fromkeys("".join(syllables[i] for i in row[:size]) for row, size in zip(picks.tolist(), sizes.tolist())))
    return list(words)[:N_INVENTED]


class Fresh:
    """Words that no document has had yet, for edits."""

    def __init__(self, language, rng):
        self.language, self.rng, self.rest = language, rng, np.empty(0, dtype=np.int32)

    def take(self, n):
        if len(self.rest) < n:
            self.rest = self.language.write(max(n, 400_000), self.rng)
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken


def lengths_of(n, rng):
    return np.clip(rng.lognormal(np.log(345), 0.45, n), 80, 1500).astype(np.int64)


def scattered(ids, share, fresh, rng):
    """Replaces single words until about this share of the runs of three words is another one."""
    n = int(round(-np.log1p(-min(share, 0.9)) * len(ids) / 3))
    ids = ids.copy()
    ids[rng.choice(len(ids), min(n, len(ids)), replace=False)] = fresh.take(min(n, len(ids)))
    return ids


def block(ids, jaccard, fresh, rng):
    """Replaces, puts in or cuts one passage."""
    way, n = rng.integers(0, 3), len(ids)
    size = max(1, int([n * (1 - jaccard) / (1 + jaccard) - 2, n * (1 / jaccard - 1) - 2, n * (1 - jaccard)][way]))
    at = int(rng.integers(0, max(1, n - size + 1)))
    cut = 0 if way == 1 else size
    put = fresh.take(0 if way == 2 else size)
    return np.concatenate([ids[:at], put, ids[at + cut :]])


def variant(ids, fresh, rng):
    """A copy of a document, mostly with edits."""
    if rng.random() < 0.1:
        return ids
    jaccard = rng.uniform(0.5, 0.995)
    way = ("scattered", "block", "mixed")[rng.integers(0, 3)]
    changed = (1 - jaccard) / (1 + jaccard)
    if way == "scattered":
        return scattered(ids, changed, fresh, rng)
    if way == "block":
        return block(ids, jaccard, fresh, rng)
    return block(scattered(ids, changed / 2, fresh, rng), 1 - (1 - jaccard) / 2, fresh, rng)


def pages(ids, fresh, rng):
    """Pages of one template: passages of FIXED words that all have, and others between them."""
    jaccard = rng.uniform(0.25, 0.48)
    share = 2 * jaccard / (1 + jaccard)
    free = max(1, int(round((FIXED - 2) / share)) - FIXED)
    n = max(3, len(ids) // (FIXED + free))
    fixed = np.resize(ids, n * FIXED).reshape(n, FIXED)
    return [np.concatenate([fixed, fresh.take(n * free).reshape(n, free)], axis=1).reshape(-1) for _ in range(PAGES)]


def group_sizes(n, rng):
    """Sizes of 2 to 6 whose sum is n."""
    sizes = []
    while n >= 2:
        size = min(int(rng.integers(2, 7)), n)
        size += 1 if n - size == 1 else 0
        sizes.append(size)
        n -= size
    return sizes


class Batch:
    """Documents of a batch: words, group (-1: single) and kind; and the pairs of its groups."""

    def __init__(self, first_group):
        self.documents, self.groups, self.kinds, self.pairs, self.next_group = [], [], [], [], first_group

    def add_group(self, language, members, kind, group=None, original=None):
        """Adds the members of a group; `original` is (id, words) of a document of an earlier night."""
        group, start = self.next_group if group is None else group, len(self.documents)
        self.next_group += 1
        self.documents += members
        self.groups += [group] * len(members)
        self.kinds += [kind] * len(members)
        sets = [language.shingles(ids) for ids in members]
        names = list(range(start, start + len(members)))
        if original:
            names.append(original[0])
            sets.append(language.shingles(original[1]))
        for i, j in combinations(range(len(names)), 2):
            common = len(np.intersect1d(sets[i], sets[j], assume_unique=True))
            self.pairs.append((names[i], names[j], common / (len(sets[i]) + len(sets[j]) - common), kind))


def make_batch(language, n, rng, first_group, olds):
    """A batch of n documents. With `olds`, half of the documents of groups are variants of these (id, group, words)."""
    batch, fresh = Batch(first_group), Fresh(language, rng)
    n_pages = n // 20 // PAGES * PAGES
    n_old = n * 15 // 100 if olds else 0
    sizes = group_sizes(n * 30 // 100 - n_old, rng)
    n_single = n - n_pages - n_old - sum(sizes)
    bases = language.documents(lengths_of(n_single + len(sizes) + n_pages // PAGES, rng), rng)
    batch.documents = bases[:n_single]
    batch.groups, batch.kinds = [-1] * n_single, ["single"] * n_single
    for ids, size in zip(bases[n_single:], sizes):
        batch.add_group(language, [ids] + [variant(ids, fresh, rng) for _ in range(size - 1)], "variants")
    for ids in bases[n_single + len(sizes) :]:
        batch.add_group(language, pages(ids, fresh, rng), "template")
    for old, group, ids in olds[:n_old]:
        batch.add_group(language, [variant(ids, fresh, rng)], "of_earlier", group, (old, ids))
    return batch


class Writer:
    """Deals documents to files, and keeps the truth."""

    def __init__(self, out, dt, n, prefix, rng):
        self.documents, self.truth = out / "documents" / f"dt={dt}", out / "truth" / f"dt={dt}"
        for folder in (self.documents, self.truth):
            folder.mkdir(parents=True)
        schema = pa.schema([("id", pa.string()), ("text", pa.string())])
        self.files = [pq.ParquetWriter(self.documents / f"part-{i:05}.parquet", schema, compression="zstd") for i in range(-(-n // FILE_ROWS))]
        self.ids = [f"{prefix}{number:08}" for number in rng.permutation(n)]
        self.rows, self.pairs, self.n, self.schema = [], [], 0, schema

    def add(self, batch, language, rng):
        ids = self.ids[self.n : self.n + len(batch.documents)]
        self.n += len(ids)
        texts = [language.text(words) for words in batch.documents]
        order = rng.permutation(len(ids))
        for writer, rows in zip(self.files, np.array_split(order, len(self.files))):
            writer.write_table(pa.table([[ids[i] for i in rows], [texts[i] for i in rows]], schema=self.schema))
        self.rows += zip(ids, batch.groups, batch.kinds)
        name = lambda x: ids[x] if isinstance(x, int) else x  # noqa: E731
        self.pairs += [(name(a), name(b), jaccard, kind) for a, b, jaccard, kind in batch.pairs]
        return ids

    def close(self):
        for writer in self.files:
            writer.close()
        for name, columns, rows in (("groups", ("id", "group", "kind"), self.rows), ("pairs", ("id_a", "id_b", "jaccard", "kind"), self.pairs)):
            pq.write_table(pa.table(dict(zip(columns, map(list, zip(*rows))))), self.truth / f"{name}.parquet", compression="zstd")


def make(language, out, dt, n, seed, prefix, olds=(), keep=0):
    """Writes a night, and gives (id, group, words) of as many single documents as `keep` says."""
    rng = np.random.default_rng([seed, 0])
    writer, group, kept = Writer(out, dt, n, prefix, rng), 0, []
    n_batches = -(-n // BATCH)
    for number in range(n_batches):
        size = min(BATCH, n - number * BATCH)
        rng = np.random.default_rng([seed, number + 1])
        mine = list(olds[number * BATCH * 15 // 100 :])[: size * 15 // 100]
        batch = make_batch(language, size, rng, group if not olds else group + 10_000_000, mine)
        ids = writer.add(batch, language, rng)
        group += batch.next_group
        want = -(-keep // n_batches)
        kept += [(ids[i], 20_000_000 + len(kept) + i, batch.documents[i]) for i in range(min(want, batch.groups.count(-1)))]
    writer.close()
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="+", type=Path, required=True, metavar="SET")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--night", type=int, default=0, metavar="DOCUMENTS")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    language = Language(args.texts, np.random.default_rng(args.seed))
    olds = make(language, args.out, "2026-01-01", args.documents, args.seed, "a", keep=args.night * 15 // 100)
    if args.night:
        make(language, args.out, "2026-01-02", args.night, args.seed + 1_000_000, "b", olds)


if __name__ == "__main__":
    main()
