"""Draws evidence/benchmarks/*.svg from a results file. Needs matplotlib.

    python3 evidence/benchmarks/plot.py evidence/benchmarks/results.jsonl evidence/benchmarks
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

plt.rcParams.update({"svg.hashsalt": "nearprint", "axes.grid": True, "grid.alpha": 0.3, "figure.figsize": (6.4, 4)})


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def line(path, points, x_label, y_label, title, x_powers=True, log_y=True):
    """One curve for each label of `points`: {label: [(x, y)]}; x is a binary logarithm where x_powers."""
    figure, axes = plt.subplots()
    for label, curve in points.items():
        curve = sorted(curve)
        axes.plot([x for x, _ in curve], [y for _, y in curve], marker="o", label=label)
    xs = sorted({x for curve in points.values() for x, _ in curve})
    if x_powers:
        axes.set_xticks(xs, [f"$2^{{{x}}}$" for x in xs])
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title)
    if len(points) > 1:
        axes.legend()
    save(figure, path)


def main():
    results, folder = Path(sys.argv[1]), Path(sys.argv[2])
    lines = [json.loads(text) for text in results.read_text(encoding="utf-8").splitlines()]
    mapped = [r for r in lines if r["part"] == "kernels" and r["operation"] == "map" and r["kernel"] == "avx512"]
    textbook = [r for r in lines if r["part"] == "kernels" and r["operation"] == "textbook"]

    def curve(rows, x, **fixed):
        return [(r[x], r["ns_per_fingerprint"]) for r in rows if all(r[k] == v for k, v in fixed.items())]

    ns = "ns per existing fingerprint, one core"
    at = {"log_queries": 16, "max_distance": 3}
    line(folder / "ns_by_existing.svg", {"nearprint": curve(mapped, "log_existing", **at), "textbook probe": curve(textbook, "log_existing", **at)},
         "existing fingerprints", ns, "$2^{16}$ queries, k = 3, in memory")
    at = {"log_existing": 29, "max_distance": 3}
    line(folder / "ns_by_queries.svg", {"nearprint": curve(mapped, "log_queries", **at), "textbook probe": curve(textbook, "log_queries", **at)},
         "queries", ns, "$2^{29}$ existing, k = 3, in memory")
    at = {"log_existing": 29, "log_queries": 16}
    line(folder / "ns_by_distance.svg", {"nearprint": curve(mapped, "max_distance", **at)}, "k", ns,
         "$2^{29}$ existing, $2^{16}$ queries, in memory", x_powers=False)
    grown = [r for r in lines if r["part"] == "growth"]
    if grown:
        line(folder / "seconds_by_existing.svg",
             {"nearprint join": [(r["log_existing"], r["seconds"]) for r in grown],
              "reading and decoding alone": [(r["log_existing"], r["decode_seconds"]) for r in grown]},
             "existing fingerprints", "seconds, two threads", "$2^{16}$ queries, k = 3, from Parquet, warm page cache")
    for part, x, label, title in (
        ("distances", "max_distance", "k", "$2^{26}$ existing, $2^{20}$ queries, from Parquet"),
        ("queries", "log_queries", "queries", "$2^{26}$ existing, from Parquet"),
    ):
        curves = {}
        for r in (r for r in lines if r["part"] == part):
            name = f"k = {r['max_distance']}" if part == "queries" else "with sketches" if r["sketches"] else "without sketches"
            curves.setdefault(name, []).append((r[x], r["seconds"]))
            if "reference_seconds" in r:
                curves.setdefault(f"{name}, before", []).append((r[x], r["reference_seconds"]))
        if curves:
            line(folder / f"seconds_by_{part}.svg", curves, label, "seconds, two threads", title, x_powers=part == "queries")
    together = [r for r in lines if r["part"] == "together"]
    for x, label, title, rows in (
        ("log_piece", "fingerprints of a piece", "$2^{33}$ existing, $2^{20}$ queries, in memory", [r for r in together if r["log_existing"] == 33]),
        ("log_existing", "existing fingerprints", "$2^{20}$ queries, in memory, pieces of up to $2^{26}$", [r for r in together if r["log_piece"] == min(r["log_existing"], 26) and r["max_distance"] > 3]),
    ):
        curves = {}
        for r in rows:
            curves.setdefault(f"k = {r['max_distance']}", []).append((r[x], r["ns_per_fingerprint"]))
        if curves:
            line(folder / f"ns_by_{x.removeprefix('log_')}_together.svg", curves, label, "ns per existing fingerprint, two threads", title)
    runs = [r for r in lines if r["part"] == "nights" and r["operation"] == "run"]
    if runs:
        line(folder / "seconds_by_night.svg", {"nearprint run": list(enumerate(runs[-1]["seconds"], 1))[::14]}, "night", "seconds",
             "365 nights of $2^{16}$ documents, never compacted", x_powers=False, log_y=False)
    rolled = [r for r in lines if r["part"] == "rolling"]
    if rolled:
        title = "365 nights of $2^{10}$ documents, keep_nights = 90"
        mebibytes = {name: [(r["night"], r[f"{key}_bytes"] / 2**20) for r in rolled]
                     for name, key in (("store", "store"), ("results", "results"), ("of them logs", "log"))}
        line(folder / "bytes_by_rolling_night.svg", mebibytes, "night", "MiB", title, x_powers=False, log_y=False)
        line(folder / "seconds_by_rolling_night.svg", {"nearprint run": [(r["night"], r["seconds"]) for r in rolled]}, "night", "seconds", title,
             x_powers=False, log_y=False)


if __name__ == "__main__":
    main()
