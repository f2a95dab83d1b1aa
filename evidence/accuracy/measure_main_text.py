"""Measures main texts against known ones, beside trafilatura and readability (pip install trafilatura readability-lxml lxml_html_clean).

Usage: measure_main_text.py PAGE_TEXT FOLDER [NAME=PROGRAM…]

PAGE_TEXT is the program of `cargo build --release --manifest-path crates/html/Cargo.toml --example page_text`; each PROGRAM is another one that
is called like it. FOLDER has NAME.html.gz files and `ground-truth.json`: {NAME: {"articleBody": TEXT}}. The F1 of a page is that of its words as
a multiset; the mean over the pages is printed for the even and the odd pages by name, and for all. Seconds are those of the processor.
"""

import collections
import gzip
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def f1(ours, truth):
    ours, truth = (collections.Counter(re.findall(r"\w+", text.lower())) for text in (ours, truth))
    common = sum((ours & truth).values())
    return 2 * common / (sum(ours.values()) + sum(truth.values())) if common else 0.0


def child_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def nearprint(program, pages, mode="main"):
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, page in pages.items():
            paths[name] = pathlib.Path(folder) / f"{name}.html"
            paths[name].write_bytes(page)
        began = child_seconds()
        out = subprocess.run([program, mode, *map(str, paths.values())], capture_output=True, text=True, check=True).stdout
        seconds = child_seconds() - began
    texts = [json.loads(line)["text"] for line in out.splitlines()]
    return dict(zip(pages, texts)), seconds


def timed(extract, pages):
    began = time.process_time()
    return {name: extract(page) or "" for name, page in pages.items()}, time.process_time() - began


def readability(page):
    import lxml.html
    from readability import Document

    return lxml.html.fromstring(Document(page.decode("utf-8", "replace")).summary()).text_content()


def main(program, folder, *others):
    import trafilatura

    folder = pathlib.Path(folder)
    truth = {name: entry["articleBody"] for name, entry in json.loads((folder / "ground-truth.json").read_text()).items()}
    truth = dict(sorted(truth.items()))
    pages = {name: gzip.decompress((folder / f"{name}.html.gz").read_bytes()) for name in truth}
    results = {
        "nearprint main": nearprint(program, pages),
        "nearprint all": nearprint(program, pages, "all"),
        "trafilatura": timed(lambda page: trafilatura.extract(page.decode("utf-8", "replace"), include_comments=False), pages),
        "readability": timed(readability, pages),
        **{name: nearprint(other, pages) for name, other in (other.split("=") for other in others)},
    }
    for name, (texts, seconds) in results.items():
        scores = [f1(texts[page], truth[page]) for page in truth]
        halves = [statistics.mean(part) for part in (scores[0::2], scores[1::2], scores)]
        print(f"{name:15} even {halves[0]:.4f} odd {halves[1]:.4f} all {halves[2]:.4f}; {len(pages) / seconds:.0f} pages a second of a core")


if __name__ == "__main__":
    main(*sys.argv[1:])
