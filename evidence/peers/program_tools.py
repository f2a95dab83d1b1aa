"""program_tools.py: the published programs that programs.py runs, a function each, in the way of their README or with the settings that its name says.

    program_tools.py TOOL OUT FOLDER...

reads the Parquet files of the folders in order and writes OUT/dropped.parquet (`id`) and, if the tool says which documents belong together,
OUT/found.parquet (`id_a`, `id_b`). A document is dropped if it is near an earlier one that is kept, unless the tool decides by itself.
"""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SLICE = 2_000
WORD = re.compile(r"\w+")


def documents(folders):
    """Slices of ids and texts."""
    for folder in folders:
        for path in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(SLICE, columns=["id", "text"]):
                yield batch["id"].to_pylist(), batch["text"].to_pylist()


def shingles(text):
    """The runs of three words; all words, if there are fewer."""
    words = WORD.findall(text.lower())
    return list({" ".join(words[i : i + 3]) for i in range(len(words) - 2)}) or words


def write(out, dropped, pairs=None):
    pq.write_table(pa.table({"id": pa.array(dropped, pa.string())}), out / "dropped.parquet")
    if pairs is not None:
        names = [[pair[side] for pair in pairs] for side in (0, 1)]
        pq.write_table(pa.table({"id_a": pa.array(names[0], pa.string()), "id_b": pa.array(names[1], pa.string())}), out / "found.parquet")


def greedy(ids, pairs):
    """What to drop: in the order of the documents, each that makes a pair with one that is kept. `pairs` has (later, earlier)."""
    earlier = {}
    for a, b in pairs:
        earlier.setdefault(a, []).append(b)
    dropped = set()
    for i in sorted(earlier):
        if any(j not in dropped for j in earlier[i]):
            dropped.add(i)
    return [ids[i] for i in sorted(dropped)], [(ids[a], ids[b]) for a, b in pairs]


def rensa_deduplicator(out, folders):
    """rensa, its README: words between white space, threshold .8, 128 hashes."""
    from rensa import RMinHashDeduplicator

    dedup = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    dropped = []
    for ids, texts in documents(folders):
        kept = dedup.add_pairs((id, text.split()) for id, text in zip(ids, texts))
        dropped += [id for id, keep in zip(ids, kept) if not keep]
    write(out, dropped)


def rensa_pairs(slices, tokens, threshold, bands):
    """Pairs (later, earlier) that a band of rensa's LSH finds and whose estimated similarity is at least the threshold."""
    from rensa import RMinHash, RMinHashLSH

    lsh, hashes, pairs, names = RMinHashLSH(threshold, 128, bands), [], [], []
    for ids, texts in slices:
        new = RMinHash.from_token_sets([tokens(text) for text in texts], 128, 42)
        lsh.insert_many(new, len(hashes))
        start = len(hashes)
        hashes += new
        names += ids
        for i, found in enumerate(lsh.query_all(new), start):
            pairs += [(i, j) for j in found if j < i and hashes[i].jaccard(hashes[j]) >= threshold]
    return names, pairs


def rensa_shingles(out, folders):
    """rensa: runs of three words, threshold .7, 32 bands of 4, a second look by the estimate."""
    names, pairs = rensa_pairs(documents(folders), shingles, 0.7, 32)
    write(out, *greedy(names, pairs))


def rensa_index(out, folders):
    """The index of rensa_pickle: RMinHashLSH of words, threshold .8, 16 bands, pickled."""
    from rensa import RMinHash, RMinHashLSH

    lsh, n = RMinHashLSH(0.8, 128, 16), 0
    for ids, texts in documents(folders):
        lsh.insert_many(RMinHash.from_token_sets([text.split() for text in texts], 128, 42), n)
        n += len(ids)
    with open(out / "index.pickle", "wb") as file:
        pickle.dump((n, lsh), file)


def rensa_pickle(out, folders):
    """rensa from night to night: loads OUT/index.pickle, asks for each document, drops it or puts it in, and saves the index."""
    from rensa import RMinHash

    with open(out / "index.pickle", "rb") as file:
        n, lsh = pickle.load(file)
    dropped = []
    for ids, texts in documents(folders):
        for id, new in zip(ids, RMinHash.from_token_sets([text.split() for text in texts], 128, 42)):
            if lsh.query(new):
                dropped.append(id)
            else:
                lsh.insert(n, new)
                n += 1
    with open(out / "index.pickle", "wb") as file:
        pickle.dump((n, lsh), file)
    write(out, dropped)


def gaoya_pairs(slices, **settings):
    from gaoya.minhash import MinHashStringIndex

    index, names, pairs = MinHashStringIndex(**settings), [], []
    for ids, texts in slices:
        for id, text in zip(ids, texts):
            pairs += [(len(names), j) for j in index.query(text)]
            index.insert_document(len(names), text)
            names.append(id)
    return names, pairs


def gaoya(out, folders):
    """gaoya with its defaults: words, 20 bands of 5, threshold .75."""
    write(out, *greedy(*gaoya_pairs(documents(folders))))


def gaoya_shingles(out, folders):
    """gaoya: runs of three words in lower case, threshold .7, 20 bands of 6."""
    settings = {"jaccard_threshold": 0.7, "num_bands": 20, "band_size": 6, "lowercase": True, "ngram_range": (3, 3)}
    write(out, *greedy(*gaoya_pairs(documents(folders), **settings)))


def datasketch_pairs(slices, tokens, threshold):
    from datasketch import MinHash, MinHashLSH

    lsh, names, pairs = MinHashLSH(threshold=threshold, num_perm=128), [], []
    for ids, texts in slices:
        for id, text in zip(ids, texts):
            new = MinHash(num_perm=128)
            new.update_batch([token.encode() for token in tokens(text)])
            pairs += [(len(names), j) for j in lsh.query(new)]
            lsh.insert(len(names), new)
            names.append(id)
    return names, pairs


def datasketch_shingles(out, folders):
    """datasketch: runs of three words, MinHashLSH(threshold=0.7, num_perm=128)."""
    write(out, *greedy(*datasketch_pairs(documents(folders), shingles, 0.7)))


def chained(members):
    """Each member of a cluster with its first."""
    return [(other, cluster[0]) for cluster in members for other in cluster[1:]]


def datatrove(out, folders):
    """datatrove: stages 1 to 3 of MinHash with its defaults (5-grams, 14 buckets of 8), two workers."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupSignature
    from datatrove.pipeline.readers import ParquetReader

    files = sorted(folders[0].glob("*.parquet"))
    reader = ParquetReader(str(folders[0]), text_key="text", id_key="id")
    stages = [
        (len(files), [reader, MinhashDedupSignature(output_folder=str(out / "signatures"))]),
        (14, [MinhashDedupBuckets(input_folder=str(out / "signatures"), output_folder=str(out / "buckets"))]),
        (1, [MinhashDedupCluster(input_folder=str(out / "buckets"), output_folder=str(out / "remove"), save_cluster_id=True)]),
    ]
    for number, (tasks, pipeline) in enumerate(stages):
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=2, logging_dir=str(out / f"logs{number}")).run()
    dropped, members = [], {}
    for number, path in enumerate(files):
        ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
        dropped += [ids[i] for i in numbers(out / f"remove/{number:06}.remove")]
        rows = numbers(out / f"remove/{number:06}.clusters")
        for document, cluster in zip(rows[::2], rows[1::2]):
            members.setdefault(cluster, []).append(ids[document])
    write(out, dropped, chained(members.values()))


def numbers(path):
    """Little-endian integers of 32 bits."""
    return memoryview(path.read_bytes()).cast("I").tolist() if path.exists() else []


def text_dedup(out, folders):
    """text-dedup: the command of its README, 5-grams, threshold .7, one process."""
    arguments = {
        "--path": "parquet", "--data_files": f"{folders[0]}/*.parquet", "--split": "train", "--cache_dir": out / "cache", "--output": out / "output",
        "--column": "text", "--idx_column": "id", "--batch_size": "10000", "--threshold": "0.7", "--num_proc": "1",
    }
    command = [sys.executable, "-m", "text_dedup.minhash", *(str(part) for item in arguments.items() for part in item), "--debug"]
    subprocess.run(command, check=True, cwd=out)
    with open(out / "output/uf.pkl", "rb") as file:
        found = pickle.load(file)
    members = {}
    for id in list(found.parent):
        members.setdefault(found.find(id), []).append(id)
    write(out, [id for cluster in members.values() for id in cluster if id != found.find(id)], chained(members.values()))


if __name__ == "__main__":
    tool, to, *names = sys.argv[1:]
    globals()[tool](Path(to), [Path(name) for name in names])
