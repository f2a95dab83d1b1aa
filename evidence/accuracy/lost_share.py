"""Measures what near-duplicates lose when they are dropped, and how well nearprint estimates it, as shown in evidence/accuracy.

    python3 evidence/accuracy/lost_share.py --nearprint target/release/nearprint SET...

A SET is a folder with docs.jsonl or docs.parquet. Its documents become two nights, whose ids differ: ids `CRAWL|URL` by their crawl, the
first one and the second; ids `PATH@REVISION` by their revisions, the earlier half of each page and the later half. Each configuration
runs both nights in a store of its own. `before` is the rule of earlier releases: no keep order, and any lost share.

For the near-duplicates that the second night drops, the table has how many are longer by more than 2 % than the document that stays (in
characters, white space as one blank), how many lose at least a tenth of their distinct word 3-grams, how many documents are kept as
`fuller`, and the mean of `lost_share`. The second table compares `lost_share` of the drops of `before`, which are all pairs that the
rule looks at, with the exact share of the features that the sketch sees, and with that of word 3-grams. Words are runs of letters and
digits, and single characters of scripts without spaces.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import pyarrow.parquet as parquet

NIGHTS = ["2026-11-19", "2026-11-20"]
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w)+")
MAX_OCCURRENCE = 4


def documents(folder):
    if (folder / "docs.jsonl").exists():
        rows = map(json.loads, (folder / "docs.jsonl").open())
    else:
        rows = parquet.read_table(folder / "docs.parquet", columns=["id", "text"]).to_pylist()
    return {row["id"]: row["text"] for row in rows}


def nights(ids):
    """The ids of the first night and of the second."""
    if all("|" in name for name in ids):
        first = min(name.split("|")[0] for name in ids)
        return [[name for name in ids if name.startswith(first + "|")], [name for name in ids if not name.startswith(first + "|")]]
    pages = {}
    for name in ids:
        page, revision = name.rsplit("@", 1)
        pages.setdefault(page, []).append((revision, name))
    halves = [], []
    for revisions in pages.values():
        revisions.sort()
        for place, (_, name) in enumerate(revisions):
            halves[2 * place >= len(revisions)].append(name)
    return halves


def words(text):
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def shingles(text):
    own = words(text)
    return {tuple(own[at : at + 3]) for at in range(len(own) - 2)}


def features(text):
    """What the sketch sees: the first occurrences of each word, and the shingles."""
    counts = {}
    seen = set()
    for word in words(text):
        counts[word] = counts.get(word, 0) + 1
        if counts[word] <= MAX_OCCURRENCE:
            seen.add((word, counts[word]))
    return seen | shingles(text)


def lost(own, keepers):
    return len(own - keepers) / len(own) if own else 0.0


def length(text):
    return len(" ".join(text.split()))


def run(nearprint, texts, split, job):
    """The decisions and superseded rows of the second night."""
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        places = 'documents = "documents"\nstore = "store"\noutput = "results"\ncreate_store = true\n'
        (folder / "job.toml").write_text(job + places)
        for dt, ids in zip(NIGHTS, split):
            (folder / f"documents/dt={dt}").mkdir(parents=True)
            lines = (json.dumps({"id": name, "text": texts[name]}) + "\n" for name in ids)
            (folder / f"documents/dt={dt}/pages.jsonl").write_text("".join(lines))
            command = [nearprint, "run", "--config", "job.toml", "--dt", dt, "--no-breakers"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        night = folder / f"results/dt={NIGHTS[1]}"
        generation = night / (night / "_current").read_text().strip()
        return [parquet.read_table(generation / name).to_pylist() for name in ("decisions", "superseded")]


def measure(texts, decisions, superseded):
    near = [row for row in decisions if row["reason"] == "near"]
    pairs = [(row, texts[row["doc_id"]], texts[row["canonical_id"]]) for row in near]
    return {
        "n_documents": len(decisions),
        "n_kept": sum(row["decision"] == "keep" for row in decisions),
        "n_near": len(near),
        "n_longer": sum(length(own) > 1.02 * length(keeper) for _, own, keeper in pairs),
        "n_losing": sum(lost(shingles(own), shingles(keeper)) >= 0.1 for _, own, keeper in pairs),
        "n_fuller": sum(row["reason"] == "fuller" for row in decisions),
        "n_superseded": len(superseded),
        "mean_lost_share": statistics.fmean(row["lost_share"] for row in near) if near else 0.0,
    }


def errors(texts, decisions):
    """The estimate less the exact share, of the sketch's features and of word 3-grams, for each near-duplicate."""
    for row in decisions:
        if row["reason"] == "near":
            own, keeper = texts[row["doc_id"]], texts[row["canonical_id"]]
            yield [row["lost_share"] - lost(cut(own), cut(keeper)) for cut in (features, shingles)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearprint", default="target/release/nearprint", help="the binary")
    parser.add_argument("--limits", type=float, nargs="*", default=[0.03, 0.04, 0.05, 0.1, 0.15], help="values of max_lost_share")
    parser.add_argument("sets", type=Path, nargs="+", metavar="SET", help="folders of documents")
    args = parser.parse_args()
    nearprint = Path(args.nearprint).resolve()
    jobs = {"before": "keep = []\nmax_lost_share = 1\n"} | {str(limit): f"max_lost_share = {limit}\n" for limit in args.limits}
    off = []
    print("| set | `max_lost_share` | documents | kept | near drops | longer | lose a tenth | `fuller` | `superseded` | mean `lost_share` |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for folder in args.sets:
        texts = documents(folder)
        split = nights(texts)
        for name, job in jobs.items():
            decisions, superseded = run(nearprint, texts, split, job)
            row = measure(texts, decisions, superseded)
            shown = [f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()]
            print(f"| `{folder.name}` | {name} | {' | '.join(shown)} |", flush=True)
            if name == "before":
                off.extend(errors(texts, decisions))
    print("\n| compared with | pairs | within .05 | mean error | largest |")
    print("|---|---|---|---|---|")
    for name, of in zip(("features of the sketch", "word 3-grams"), zip(*off)):
        within = sum(abs(error) <= 0.05 for error in of) / len(of)
        print(f"| {name} | {len(of)} | {within:.3f} | {statistics.fmean(of):+.4f} | {max(map(abs, of)):.3f} |")


if __name__ == "__main__":
    main()
