"""Measures the share of pairs that is found, by their exact resemblance, and sets it beside the computed curves of MinHash LSH.

    python3 evidence/accuracy/resemblance.py --results evidence/accuracy/resemblance.jsonl --plot evidence/accuracy/resemblance.svg \\
        --page evidence/accuracy/resemblance.md SET...

A SET is a folder with docs.jsonl or docs.parquet, pairs.tsv and, where pages are to be left out, ignore_ids.txt; its name is the set's.
Without sets, the results file is read instead of written. --page replaces the tables of that page between its comments, --plot needs
matplotlib. Of --profile NAME=ARGUMENTS, which may be repeated, each is one curve; without it, those below are measured.

The first line of a results file names the sets. Each other line is one profile: `rows` and `by_hundredth` are those of `nearprint
evaluate --by-resemblance --json`, added up over the sets, and `sets` has the rows of each set. The interval of a row is made like
evaluate's, from the components of all sets together. `computed` has, for each configuration of MinHash LSH, the share of the same pairs
that it would be expected to find: the mean of 1 - (1 - J^r)^b over their resemblances J, to a hundredth. The first profile is also
measured with other seeds of its hashes: `over_seeds` has the mean, the smallest and the largest share.
"""

import argparse
import json
import random
import re
import shlex
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SKETCHES_ALONE = "--set judge.max_looks=0"
PROFILES = {
    "default": SKETCHES_ALONE,
    "max_distance 11": f"{SKETCHES_ALONE} --set join.max_distance=11",
    "max_distance 10": f"{SKETCHES_ALONE} --set join.max_distance=10",
    "han-bigrams": "--profile han-bigrams",
    "paper": "--profile paper",
}

# name: bands, rows in a band
MINHASH = {"datatrove": (14, 8), "NeMo Curator": (20, 13), "Lance": (16, 8), "text-dedup": (12, 9), "datasketch": (5, 25)}
SHOWN = ["datatrove", "NeMo Curator", "Lance", "datasketch"]
COLOURS = {"datatrove": "#0072B2", "NeMo Curator": "#D55E00", "Lance": "#009E73", "datasketch": "#CC79A7"}
DRAWS = 1000
STEP = 2


def found_by(bands, rows, resemblance):
    return 1 - (1 - resemblance**rows) ** bands


def evaluate(nearprint, folder, arguments):
    documents = next(path for name in ("docs.jsonl", "docs.parquet") if (path := folder / name).exists())
    command = [nearprint, "evaluate", "--json", "--by-resemblance", "--documents", documents, "--truth", folder / "pairs.tsv"]
    if (folder / "ignore_ids.txt").exists():
        command += ["--ignore", folder / "ignore_ids.txt"]
    done = subprocess.run([*map(str, command), *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["by_resemblance"]


def interval(components, share):
    """The middle 95 % of the shares of resampled components, as in evaluate. `components` counts (pairs, found)."""
    n = sum(components.values())
    if n < 2 and 0 < share < 1:
        return None
    kinds, weights, draw = list(components), list(components.values()), random.Random(1)
    shares = []
    for _ in range(DRAWS):
        drawn = draw.choices(kinds, weights, k=n)
        shares.append(sum(found for _, found in drawn) / sum(pairs for pairs, _ in drawn))
    shares.sort()
    low, high = min(shares[DRAWS // 40], share), max(shares[-1 - DRAWS // 40], share)
    exact = 0.025 ** (1 / n)
    return [min(low, exact) if share == 1 else low, max(high, 1 - exact) if share == 0 else high]


def computed(hundredths, row):
    """The mean over the pairs of a row; those of a hundredth count as its middle, but the same texts as 1."""
    inside = [h for h in hundredths if row["from"] * 100 - 1e-6 < h["hundredth"] and (row["below"] is None or h["hundredth"] < row["below"] * 100 - 1e-6)]
    n = sum(h["n_pairs"] for h in inside)

    def mean(bands, rows):
        return sum(h["n_pairs"] * found_by(bands, rows, min(h["hundredth"] + 0.5, 100) / 100) for h in inside) / n

    return {name: round(mean(*shape), 4) for name, shape in MINHASH.items()} if n else None


def pooled(summaries):
    hundredths = Counter()
    for summary in summaries:
        for h in summary["by_hundredth"]:
            hundredths[h["hundredth"], "n_pairs"] += h["n_pairs"]
            hundredths[h["hundredth"], "n_found"] += h["n_found"]
    by_hundredth = [{"hundredth": h, "n_pairs": hundredths[h, "n_pairs"], "n_found": hundredths[h, "n_found"]} for h in sorted({h for h, _ in hundredths})]
    rows = []
    for same in zip(*(summary["rows"] for summary in summaries), strict=True):
        row = {key: same[0][key] for key in ("from", "below")}
        row |= {key: sum(r[key] for r in same) for key in ("n_pairs", "n_found", "n_components")}
        components = Counter()
        for c in (c for r in same for c in r["components"]):
            components[c["n_pairs"], c["n_found"]] += c["n_components"]
        share = row["n_found"] / row["n_pairs"] if row["n_pairs"] else None
        row |= {"share": share, "ci": interval(components, share) if components else None, "computed": computed(by_hundredth, row)}
        rows.append(row)
    return rows, by_hundredth


def pooled_shares(summaries):
    counts = [[sum(r[key] for r in same) for key in ("n_found", "n_pairs")] for same in zip(*(summary["rows"] for summary in summaries), strict=True)]
    return [found / pairs if pairs else None for found, pairs in counts]


def measure(arguments):
    yield {"part": "sets", "sets": [folder.resolve().name for folder in arguments.sets]}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, given in arguments.profiles.items():
            summaries = list(pool.map(lambda folder: evaluate(arguments.nearprint, folder, shlex.split(given)), arguments.sets))  # noqa: B023  (done within the round)
            rows, by_hundredth = pooled(summaries)
            if name == next(iter(arguments.profiles)):
                seeded = [pooled_shares(list(pool.map(lambda folder: evaluate(arguments.nearprint, folder, [*shlex.split(given), "--seed", str(seed)]), arguments.sets)))  # noqa: B023
                          for seed in arguments.seeds]
                rows = [row | {"over_seeds": [sum(shares) / len(shares), min(shares), max(shares)] if None not in shares else None} for row, shares in zip(rows, zip(*seeded, strict=True), strict=True)]
            sets = {folder.resolve().name: [{key: row[key] for key in ("from", "n_pairs", "n_found", "ci")} for row in summary["rows"]]
                    for folder, summary in zip(arguments.sets, summaries, strict=True)}
            yield {"part": "profile", "name": name, "arguments": given, "rows": rows, "by_hundredth": by_hundredth, "sets": sets}


def figure(value):
    """.982, or 1.000; tiny shares as 3e-06."""
    if value is None:
        return "-"
    return f"{value:.0e}" if 0 < value < 0.0005 else f"{value:.3f}".removeprefix("0")


def range_of(row):
    if row["below"] is None:
        return "1"
    return f"below {figure(row['below'])[:2]}" if row["from"] == 0 else f"{figure(row['from'])[:2]} to {figure(row['below']).removesuffix('00').removesuffix('.0')}"


def seeds_of(row):
    return "{} ({} to {})".format(*map(figure, row["over_seeds"])) if row["over_seeds"] else ""


def share_of(row):
    return figure(row["share"]) + (f" [{figure(row['ci'][0])} {figure(row['ci'][1])}]" if row["ci"] else "")


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]).replace("| --- ", "|---").replace("|--- |", "|---|")


def found_table(profiles):
    own = profiles[0]["rows"]
    head = ["resemblance", "pairs", "clusters", *(f"`{p['name']}`" if " " not in p["name"] else p["name"] for p in profiles)]
    return table(head, [[range_of(row), f"{row['n_pairs']:,}", f"{row['n_components']:,}" if row["n_components"] else "",
                         *(share_of(p["rows"][i]) for p in profiles)] for i, row in enumerate(own)])


def computed_table(profiles):
    rows = [row for row in profiles[0]["rows"] if row["from"] > 0]
    head = ["resemblance", f"nearprint, {profiles[0]['name']}", "mean over seeds", *(f"{name} ({b} × {r})" for name, (b, r) in MINHASH.items())]
    return table(head, [[range_of(row), figure(row["share"]), seeds_of(row), *(figure((row["computed"] or {}).get(name)) for name in MINHASH)] for row in rows])


def sets_table(profiles):
    def cell(row):
        return f"{figure(row['n_found'] / row['n_pairs'])} of {row['n_pairs']:,}" if row["n_pairs"] else ""

    starts = [row for row in profiles[0]["rows"] if row["from"] > 0]
    return table(["set", *map(range_of, starts)], [[f"`{name}`", *(cell(row) for row in rows if row["from"] > 0)] for name, rows in profiles[0]["sets"].items()])


TABLES = {"found": found_table, "computed": computed_table, "sets": sets_table}


def write_page(page, profiles):
    text = page.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        block = rf"(<!-- table {name} -->\n).*?(<!-- end -->)"
        assert re.search(block, text, re.DOTALL), f"{page} has no place for the table {name}"
        text = re.sub(block, lambda found, make=make: found[1] + make(profiles) + "\n" + found[2], text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")


def plot(path, profile):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "nearprint", "axes.grid": True, "grid.alpha": 0.3, "font.size": 9})
    figure_, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    xs = [x / 200 for x in range(80, 201)]
    for name in SHOWN:
        b, r = MINHASH[name]
        axes.plot(xs, [found_by(b, r, x) for x in xs], "--", color=COLOURS[name], linewidth=1.2, label=f"{name}, computed: {b} bands of {r}")
    steps = {}
    for h in profile["by_hundredth"]:
        n, found = steps.get(h["hundredth"] // STEP, (0, 0))
        steps[h["hundredth"] // STEP] = (n + h["n_pairs"], found + h["n_found"])
    points = [(1.0 if step * STEP == 100 else (step + 0.5) * STEP / 100, found / n) for step, (n, found) in sorted(steps.items())]
    axes.plot(*zip(*points, strict=True), "o-", color="black", markersize=3, linewidth=1.5, label=f"nearprint, {profile['name']}, measured")
    for row in profile["rows"]:
        if row["ci"]:
            middle, reach = (row["from"] + 0.05, 0.05) if row["below"] else (1.0, 0.004)
            axes.fill_between([middle - reach, middle + reach], *([end, end] for end in row["ci"]), color="black", alpha=0.12, linewidth=0)
    axes.set(xlim=(0.4, 1.005), ylim=(-0.02, 1.03), xlabel="exact resemblance (Jaccard similarity of shingles)", ylabel="share of pairs found")
    axes.legend(loc="upper left", fontsize=8)
    figure_.savefig(path, metadata={"Date": None})
    plt.close(figure_)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET", help="folder with documents and pairs.tsv")
    parser.add_argument("--results", type=Path, required=True, help="results file to write, or without sets to read")
    parser.add_argument("--nearprint", default="target/release/nearprint", help="the binary")
    parser.add_argument("--profile", action="append", default=[], metavar="NAME=ARGUMENTS", help="a profile; the first is the one that is drawn")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(6)), help="seeds of the hashes, for the first profile")
    parser.add_argument("--jobs", type=int, default=1, help="evaluations at a time")
    parser.add_argument("--plot", type=Path, help="SVG file to draw")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced")
    arguments = parser.parse_args()
    arguments.profiles = dict(text.split("=", 1) for text in arguments.profile) or PROFILES
    if arguments.sets:
        lines = list(measure(arguments))
        arguments.results.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    lines = [json.loads(text) for text in arguments.results.read_text(encoding="utf-8").splitlines()]
    profiles = [line for line in lines if line["part"] == "profile"]
    for name, make in TABLES.items():
        print(f"{name}\n\n{make(profiles)}\n")
    if arguments.page:
        write_page(arguments.page, profiles)
    if arguments.plot:
        plot(arguments.plot, profiles[0])


if __name__ == "__main__":
    main()
