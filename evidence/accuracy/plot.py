"""Draws evidence/accuracy/sensitivity.svg from a results file of sensitivity.py. Needs matplotlib.

    python3 evidence/accuracy/plot.py evidence/accuracy/results.jsonl evidence/accuracy/sensitivity.svg
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

plt.rcParams.update({"svg.hashsalt": "nearprint", "axes.grid": True, "grid.alpha": 0.3, "font.size": 9})

AIM = 0.985
LEAST = 0.968
COLOURS = {"default": "black", "distance": "tab:blue", "sketch": "tab:orange", "features": "tab:green", "tokenizer": "tab:red",
           "floor": "tab:purple", "normalisation": "tab:brown"}
CURVES = {"default": ("default", "black", "o-"), "default, mixed (jieba) for bigrams": ("mixed (jieba)", "tab:red", "s--"),
          "default, words (single characters) for bigrams": ("single characters", "tab:green", "^--"),
          "default without sketch": ("without sketch", "tab:orange", "o-"), "paper": ("paper", "tab:gray", "s-")}
SHOWN_SKETCH = 128


def dots(axes, rows):
    """One row a change: mean, range over the seeds; changes far below are named with their figure at the left edge."""
    for i, (group, _, (mean, low, high)) in enumerate(rows):
        colour = COLOURS[group]
        if mean < LEAST:
            axes.annotate(f"{mean:.3f}".lstrip("0") + f" ({low:.3f} to {high:.3f})".replace("0.", "."), (LEAST, i), color=colour, va="center",
                          xytext=(10, 0), textcoords="offset points")
            axes.plot(LEAST, i, marker="<", color=colour, clip_on=False)
            continue
        axes.plot([max(low, LEAST), high], [i, i], color=colour, linewidth=2, alpha=0.45)
        axes.plot(mean, i, "D" if group == "default" else "o", color=colour, markersize=7 if group == "default" else 5)
    axes.axvline(rows[0][2][0], color="black", linewidth=1, linestyle=":")
    axes.axvline(AIM, color="tab:red", linewidth=1, linestyle="--")
    axes.annotate(f"{AIM:.3f}".lstrip("0"), (AIM, -0.75), color="tab:red", xytext=(3, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [name for _, name, _ in rows])
    for tick, (group, _, _) in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_color(COLOURS[group])
    axes.set_ylim(len(rows) - 0.4, -1.3)
    axes.set_xlim(LEAST, 1.0005)
    axes.set_xlabel("macro F1: mean (dot) and range over six seeds (bar)")
    axes.set_title("One change at a time from the default")


def curve(axes, rows, x, label, colour, style):
    rows = sorted(rows, key=lambda r: r[x])
    xs = [r[x] for r in rows]
    mean, low, high = zip(*(r["f1"] for r in rows), strict=True)
    axes.fill_between(xs, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(xs, mean, style, color=colour, label=label, markersize=3.5)


def finish(axes, own, x_label, title):
    axes.axvline(own, color="black", linewidth=1, linestyle=":")
    axes.axhline(AIM, color="tab:red", linewidth=1, linestyle="--")
    axes.set_xlabel(x_label)
    axes.set_ylabel("macro F1")
    axes.set_title(title)


def main():
    results, path = Path(sys.argv[1]), Path(sys.argv[2])
    lines = [json.loads(text) for text in results.read_text(encoding="utf-8").splitlines()]
    profiles = [r for r in lines if r["part"] == "profile"]
    by_name = {name: [r for r in profiles if r["name"] == name] for name in CURVES}
    own = next(r for r in by_name["default"] if r["max_distance"] == 8)
    rows = [("default", "default", own["f1"])]
    rows += [(r["group"], r["name"], r["f1"]) for r in lines if r["part"] == "change"]

    figure = plt.figure(figsize=(11, 8.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1])
    dots(figure.add_subplot(grid[:, 0]), rows)

    axes = figure.add_subplot(grid[0, 1])
    for name, (label, colour, style) in CURVES.items():
        curve(axes, by_name[name], "max_distance", label, colour, style)
    axes.set_ylim(0.6, 1.01)
    axes.set_xlim(2.8, 12.2)
    axes.legend(loc="lower left", bbox_to_anchor=(0.4, 0.0), fontsize=8)
    finish(axes, 8, "max_distance (k)", "By distance of the fingerprints")

    axes = figure.add_subplot(grid[1, 1])
    sketches = [r for r in lines if r["part"] == "sketch" and (r["max_sketch_distance"] or SHOWN_SKETCH + 1) <= SHOWN_SKETCH]
    curve(axes, sketches, "max_sketch_distance", "default", "black", "o-")
    axes.set_ylim(0.9, 1.005)
    finish(axes, 40, "max_sketch_distance (of 256)", "By distance of the sketches, k = 8")

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
