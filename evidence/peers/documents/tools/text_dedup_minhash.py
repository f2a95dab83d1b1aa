"""text-dedup, the command of its README (`python -m text_dedup.minhash`), with --debug, which writes the clusters."""

import pickle

from text_dedup.minhash import main


def clusters(path, threshold=0.7):
    main.main([
        "--path", "parquet", "--data_files", str(path), "--split", "train", "--cache_dir", "cache", "--output", "output",
        "--column", "text", "--idx_column", "id", "--batch_size", "10000", "--threshold", str(threshold),
        "--num_proc", "1", "--debug",
    ], standalone_mode=False)
    with open("output/uf.pkl", "rb") as file:
        found = pickle.load(file)
    members = {}
    for id in list(found.parent):
        members.setdefault(found.find(id), []).append(id)
    return members.values()
