"""What `nearprint review` estimates, beside the truth: a labelled set becomes a night, its truth answers the pairs that are drawn, and
precision and recall by the answers are compared with those of all pairs of both kinds.

review.py BINARY SET [SET ...] [--sample N] [--seeds N]: a SET is a folder with docs.jsonl (id, text) and pairs.tsv (id_a, id_b, label).
Prints a line of JSON for each set and seed.
"""

from __future__ import annotations

import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

NIGHT = "2026-11-20"
JOB = 'documents = "crawl"\nstore = "store"\noutput = "results"\n'


def truth(path: pathlib.Path) -> dict[frozenset[str], str]:
    """The labels of pairs. A pair that is not listed is negative."""
    with path.open(encoding="utf-8") as file:
        return {frozenset((row["id_a"], row["id_b"])): row["label"] for row in csv.DictReader(file, delimiter="\t")}


def answered(folder: pathlib.Path, binary: pathlib.Path, labels: dict[frozenset[str], str], sample: int, seed: int) -> tuple[dict, list[dict]]:
    """Draws pairs, answers them by the truth, and returns the summary of `review` and the pairs."""
    answers = folder / f"answers-{sample}-{seed}.jsonl"
    command = [binary, "review", "--config", "job.toml", "--answers", answers.name, "--dt", NIGHT, "--sample", str(sample), "--seed", str(seed), "--json"]

    def run() -> dict:
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return json.loads(done.stdout.splitlines()[-1])

    run()
    pairs = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    for pair in pairs:
        label = labels.get(frozenset((pair["doc_id"], pair["other_id"])), "neg")
        pair["answer"] = {"pos": "same", "gray": "skipped"}.get(label, "different")
    answers.write_text("".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs), encoding="utf-8")
    return run(), pairs


def exact(pairs: list[dict]) -> dict[str, float | int | None]:
    """Precision and recall of all pairs of both kinds."""
    count = {(is_drop, answer): 0 for is_drop in (True, False) for answer in ("same", "different")}
    for pair in pairs:
        if pair["answer"] != "skipped":
            count[pair["is_drop"], pair["answer"]] += 1
    same, dropped = count[True, "same"], count[True, "same"] + count[True, "different"]
    all_same = same + count[False, "same"]
    return {"n_drops": dropped, "n_kept": sum(not pair["is_drop"] for pair in pairs), "precision": ratio(same, dropped), "recall": ratio(same, all_same)}


def ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("sets", type=pathlib.Path, nargs="+")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    for place in args.sets:
        labels = truth(place / "pairs.tsv")
        with tempfile.TemporaryDirectory() as temp:
            folder = pathlib.Path(temp)
            night = folder / "crawl" / f"dt={NIGHT}"
            night.mkdir(parents=True)
            (night / "docs.jsonl").symlink_to((place / "docs.jsonl").resolve())
            (folder / "job.toml").write_text(JOB, encoding="utf-8")
            binary = args.binary.resolve()
            run = [binary, "run", "--config", "job.toml", "--dt", NIGHT, "--create-store", "--no-breakers", "-q"]
            subprocess.run(run, cwd=folder, check=True, capture_output=True)
            _, everything = answered(folder, binary, labels, 1_000_000, 0)
            whole = exact(everything)
            for seed in range(1, args.seeds + 1):
                summary, pairs = answered(folder, binary, labels, args.sample, seed)
                of = summary["nights"][0] if summary["nights"] else {}
                got = {key: of.get(key) for key in ("precision", "precision_ci", "recall", "recall_ci")}
                drawn = {"n_pairs": len(pairs), "n_skipped": sum(pair["answer"] == "skipped" for pair in pairs)}
                print(json.dumps({"set": place.name, "seed": seed, **drawn, "estimate": got, "all": whole}), flush=True)


if __name__ == "__main__":
    main()
