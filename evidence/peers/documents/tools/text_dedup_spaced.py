"""text-dedup as in text_dedup_minhash, on texts with a blank around each Chinese and Japanese character: it cuts tokens at blanks only."""

import pickle

import pyarrow.compute as pc
import pyarrow.parquet as pq
from text_dedup.minhash import main


def clusters(path, threshold=0.7):
    table = pq.read_table(path)
    spaced = pc.replace_substring_regex(table["text"], r"([\x{3040}-\x{30ff}\x{3400}-\x{9fff}])", r" \1 ")
    spaced = pc.replace_substring_regex(spaced, r"\s+", " ")
    pq.write_table(table.set_column(1, "text", spaced), "spaced.parquet")
    main.main([
        "--path", "parquet", "--data_files", "spaced.parquet", "--split", "train", "--cache_dir", "cache", "--output", "output",
        "--column", "text", "--idx_column", "id", "--batch_size", "10000", "--threshold", str(threshold),
        "--num_proc", "1", "--debug",
    ], standalone_mode=False)
    with open("output/uf.pkl", "rb") as file:
        found = pickle.load(file)
    members = {}
    for id in list(found.parent):
        members.setdefault(found.find(id), []).append(id)
    return members.values()
