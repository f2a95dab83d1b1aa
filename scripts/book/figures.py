"""figures.py: draws the pictures of the book into docs/book. Needs Python 3.11 alone."""
import math
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#B8B8B8", "#222222"


def svg(name, width, height, title, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'font-family="sans-serif" font-size="13"><title>{title}</title><rect width="100%" height="100%" fill="#ffffff"/>')
    (DOCS / "book" / f"{name}.svg").write_text("\n".join([head, *parts, "</svg>", ""]), encoding="utf-8")


def text(x, y, words, anchor="start", fill=INK, more=""):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}" {more}>{words}</text>'


def line(x1, y1, x2, y2, stroke=INK, more=""):
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" {more}/>'


def rect(x, y, width, height, fill, stroke=INK):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="{stroke}"/>'


def chance():
    """Pairs of 10^6 new and 10^9 existing random fingerprints within k, on a scale of powers of ten."""
    def x(k):
        return 70 + k * 30

    def y(exponent):
        return 250 - (exponent + 6) * 12

    parts = [line(70, 250, 560, 250), line(70, 250, 70, 25)]
    for exponent in range(-6, 13, 3):
        label = text(62, y(exponent) + 4, f'10<tspan dy="-5" font-size="9">{exponent}</tspan>', "end")
        parts += [line(70, y(exponent), 560, y(exponent), "#e2e2e2"), label]
    for k in range(0, 17):
        pairs = 1e15 * sum(math.comb(64, i) for i in range(k + 1)) / 2**64
        height = y(math.log10(pairs))
        parts.append(rect(x(k) + 6, height, 18, 250 - height, BLUE if k == 12 else GREY, "none"))
        parts.append(text(x(k) + 15, 268, k, "middle"))
    parts += [text(315, 290, "k: the most bits that may differ", "middle"),
              text(80, 18, "unrelated pairs within k: a million new fingerprints, a thousand million existing ones")]
    svg("chance", 580, 300, "Unrelated pairs within k by chance, for k from 0 to 16", parts)


def tables():
    parts, differing = [], {9, 20, 58}
    for row, name in enumerate(["new", "existing"]):
        parts.append(text(10, 52 + 50 * row, name))
        for bit in range(64):
            is_one = (bit * 2654435761 >> 7) & 1
            is_one ^= row == 1 and bit in differing
            fill = ORANGE if bit in differing else BLUE if is_one else "#DCE9F2"
            parts.append(rect(80 + bit * 8 + bit // 16 * 8, 35 + 50 * row, 8, 24, fill, "#ffffff"))
    for block, words in enumerate(["1 differs", "1 differs", "equal: found in table 3", "1 differs"]):
        parts.append(text(80 + block * 136 + 64, 25, f"block {block + 1}", "middle"))
        parts.append(text(80 + block * 136 + 64, 132, words, "middle", BLUE if block == 2 else ORANGE))
    parts.append(text(80, 160, "Three differing bits cannot be in all four blocks: at least one block is equal, always."))
    svg("tables", 640, 175, "Two fingerprints of four blocks differ in three bits, so one block is equal", parts)


def sketch():
    parts = [text(10, 22, "elements"), text(380, 60, "256 bins, by the leading 8 bits of the hash")]
    for at, (element, bin_at) in enumerate([("the", 1), ("quick", 3), ("brown", 1), ("the quick brown", 5), ("quick brown fox", 3)]):
        is_least = at in (0, 1, 3)
        parts += [text(10, 46 + 22 * at, element),
                  line(130, 42 + 22 * at, 270 + 45 * bin_at, 180, BLUE if is_least else GREY, 'stroke-width="1.5"')]
    for bin_at in range(8):
        is_full, x = bin_at in (1, 3, 5), 250 + 45 * bin_at
        parts += [rect(x, 180, 40, 34, "#DCE9F2" if is_full else "#ffffff"),
                  text(x + 20, 201, "least" if is_full else "lent", "middle", BLUE if is_full else GREY, 'font-size="11"'),
                  line(x + 20, 214, x + 20, 236), rect(x, 236, 40, 26, BLUE if (bin_at * 5 + 3) % 8 < 4 else "#ffffff")]
    parts += [text(160, 254, "256 bits"), text(10, 290, "Texts that share most elements have the same least element in most bins, and so mostly the same bits.")]
    svg("sketch", 640, 305, "Hashes of elements fall into bins; the least hash of each bin gives a bit", parts)


def star():
    parts = []
    for left, title, kept in [(20, "One of each component", {0}), (340, "Star", {0, 2})]:
        parts.append(text(left, 25, title, more='font-weight="bold"'))
        parts += [line(left + 40 + 90 * at, 80, left + 130 + 90 * at, 80, INK, 'stroke-width="2"') for at in range(2)]
        for at, name in enumerate("abc"):
            fill = BLUE if at in kept else "#ffffff"
            parts.append(f'<circle cx="{left + 40 + 90 * at}" cy="80" r="20" fill="{fill}" stroke="{INK}"/>')
            parts.append(text(left + 40 + 90 * at, 85, name, "middle", "#ffffff" if at in kept else INK))
            parts.append(text(left + 40 + 90 * at, 120, "keep" if at in kept else "drop", "middle"))
    parts += [text(20, 150, "c is dropped for a, though the two are no pair", fill=ORANGE), text(340, 150, "b is dropped for a; c has no kept neighbour, and stays")]
    svg("star", 660, 170, "A chain of three documents, decided by component and by star", parts)


if __name__ == "__main__":
    for draw in (chance, tables, sketch, star):
        draw()
