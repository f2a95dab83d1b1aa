"""found.py: writes the computed table of evidence/peers/README.md. Needs Python 3.11 alone.

The table has, for each tool, the mean chance that MinHash LSH finds a pair, over the same pairs as evidence/accuracy/resemblance.md.
"""
import json
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Bands and rows, as evidence/accuracy/resemblance.md says where they come from.
TOOLS = {"datatrove": (14, 8), "NeMo Curator": (20, 13), "text-dedup": (12, 9), "duplodocus": (20, 5), "Lance": (16, 8)}
ROWS = [("0.4 to 0.5", 40, 50), ("0.5 to 0.6", 50, 60), ("0.6 to 0.7", 60, 70), ("0.7 to 0.8", 70, 80), ("0.8 to 0.9", 80, 90), ("0.9 to 1", 90, 100)]


def found(hundredths, low, high, shape):
    """The mean of 1 - (1 - J^rows)^bands over the pairs from `low` to `high` hundredths."""
    bands, rows = shape
    inside = [h for h in hundredths if low <= h["hundredth"] < high]
    chances = [h["n_pairs"] * (1 - (1 - ((h["hundredth"] + 0.5) / 100) ** rows) ** bands) for h in inside]
    return sum(chances) / sum(h["n_pairs"] for h in inside)


def table():
    lines = (HERE.parent / "accuracy/resemblance.jsonl").read_text(encoding="utf-8").splitlines()
    default = next(part for part in map(json.loads, lines) if part.get("name") == "default")
    measured = {f"{row['from']:g} to {row['below']:g}": row["share"] for row in default["rows"] if row["below"]}
    shapes = [f"{name} ({bands} × {rows})" for name, (bands, rows) in TOOLS.items()]
    rows = ["| resemblance | nearprint, measured | " + " | ".join(shapes) + " |", "|---" * (2 + len(TOOLS)) + "|"]
    for name, low, high in ROWS:
        cells = [measured[name], *(found(default["by_hundredth"], low, high, shape) for shape in TOOLS.values())]
        rows.append(f"| {name} | " + " | ".join(f"{cell:.3f}".removeprefix("0") for cell in cells) + " |")
    page = HERE / "README.md"
    whole = re.sub(r"(<!-- table found -->\n).*?(<!-- end -->)", lambda m: m[1] + "\n".join(rows) + "\n" + m[2], page.read_text(encoding="utf-8"), flags=re.S)
    page.write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    table()
