#!/usr/bin/env python3
"""Builds sample_data/documents from the labelled sets it was taken from. Needs pyarrow.

usage: make_sample_data.py DATA_DIR [OUTPUT_DIR]

DATA_DIR holds crawl_seatunnel/, docs_rev_en/ and docs_rev_zh/, each with a docs.jsonl. The choice of pages depends on
their names alone (SHA-256 order, no clock, no random numbers), so that the same input gives the same rows.
"""

import argparse
import hashlib
import json
import re
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# The crawls are of 2022; the nights are named after the examples in the documentation.
NIGHTS = {"2026-11-19": "crawl-2022-06", "2026-11-20": "crawl-2022-07"}
FILES = {"2026-11-19": 1, "2026-11-20": 2}
REVISIONS = "https://github.com/apache/incubator-streampark-website/blob/"
# Longer pages would fill the sample without showing anything new.
MAX_CHARS = 9_000
# Installation pages link to image downloads; a sample has no business pointing there.
INSTALLATION = re.compile("docker|flink-on-k8s", re.IGNORECASE)
CRAWL_PAGES = 108
REVISION_PAGES = {"docs_rev_zh": 28, "docs_rev_en": 14}
SHORT_PAGES = 4
SHORT_CHARS = 60

SCHEMA = pa.schema([
    pa.field("id", pa.string(), nullable=False),
    pa.field("text", pa.string(), nullable=False),
    pa.field("lang", pa.string(), nullable=False),
    pa.field("fetch_time", pa.timestamp("us", tz="UTC"), nullable=False),
])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("output", type=Path, nargs="?",
                           default=Path(__file__).resolve().parent.parent / "sample_data" / "documents")
    options = arguments.parse_args()

    crawls = read_crawls(options.data / "crawl_seatunnel" / "docs.jsonl")
    nights = choose_crawl_pages(crawls)
    for name, wanted in REVISION_PAGES.items():
        first, second = choose_revisions(options.data / name / "docs.jsonl", wanted)
        nights["2026-11-19"].update(first)
        nights["2026-11-20"].update(second)
    for night, pages in nights.items():
        write_night(options.output, night, pages)


def read_documents(path):
    with path.open(encoding="utf-8") as lines:
        return {document["id"]: document["text"] for document in map(json.loads, lines)}


def read_crawls(path):
    crawls = {crawl: {} for crawl in NIGHTS.values()}
    for name, text in read_documents(path).items():
        crawl, url = name.split("|", 1)
        if len(text) <= MAX_CHARS:
            crawls[crawl][url] = text
    return crawls


def choose_crawl_pages(crawls):
    """Whole subjects, a page with its translations and versions, so that near-duplicates stay together."""
    earlier, later = crawls.values()
    changed = {subject(url) for url in earlier if url in later and earlier[url] != later[url]}
    chinese = {subject(url) for url in later if language(later[url]) == "zh"}
    subjects = {subject(url) for url in [*earlier, *later]}
    # First what changed between the crawls and the scarce Chinese pages, then any others.
    order = sorted(subjects, key=lambda name: (name not in changed | chinese, digest(name)))
    return {night: choose_one_night(crawls[crawl], order) for night, crawl in NIGHTS.items()}


def choose_one_night(pages, order):
    chosen = dict(sorted((url, text) for url, text in pages.items() if len(text) < SHORT_CHARS)[:SHORT_PAGES])
    for name in order:
        if len(chosen) >= CRAWL_PAGES:
            break
        chosen.update((url, text) for url, text in pages.items() if subject(url) == name)
    return chosen


def choose_revisions(path, wanted):
    """Pages with several revisions: every other revision is crawled on the second night."""
    pages = {}
    for name, text in read_documents(path).items():
        page, revision = name.rsplit("@", 1)
        if len(text) <= MAX_CHARS and not INSTALLATION.search(page):
            pages.setdefault(page, []).append((revision, text))
    nights = ({}, {})
    for page in sorted((page for page in pages if len(pages[page]) > 1), key=digest):
        if sum(map(len, nights)) >= 2 * wanted:
            break
        for position, (revision, text) in enumerate(sorted(pages[page])[:4]):
            commit = revision.rsplit(".", 1)[1]
            nights[position % 2][f"{REVISIONS}{commit}/{page}"] = text
    return nights


def subject(url):
    """What a page is about: its URL without language and version."""
    return re.sub(r"/zh-CN(?=/)|/docs/\d[^/]*(?=/)", "", url)


def language(text):
    """`zh` where a tenth of the letters or more are Han characters; the rest of these sets is English."""
    letters = [character for character in text if character.isalpha()]
    han = sum("\u4e00" <= character <= "\u9fff" for character in letters)
    return "zh" if letters and han * 10 >= len(letters) else "en"


def digest(name):
    return hashlib.sha256(name.encode()).digest()


def write_night(output, night, pages):
    folder = output / f"dt={night}"
    folder.mkdir(parents=True, exist_ok=True)
    fetch_time = datetime.fromisoformat(night).replace(hour=1, tzinfo=timezone.utc)
    # A crawl does not arrive sorted; digest order is as good as shuffled and stays the same.
    rows = [{"id": url, "text": pages[url], "lang": language(pages[url]), "fetch_time": fetch_time}
            for url in sorted(pages, key=digest)]
    for number in range(FILES[night]):
        table = pa.Table.from_pylist(rows[number::FILES[night]], schema=SCHEMA)
        pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd", compression_level=19,
                       write_page_checksum=True)
    print(f"dt={night}: {len(rows)} documents in {FILES[night]} files")


if __name__ == "__main__":
    main()
