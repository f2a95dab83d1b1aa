"""Measures a crawl from its WARC files beside the same crawl as texts, as shown in evidence/accuracy.

    python3 evidence/accuracy/crawl.py --nearprint target/release/nearprint FOLDER
    python3 evidence/accuracy/crawl.py --page-text target/release/examples/page_text FOLDER

FOLDER has NAME.warc.gz files, and their labelled set: docs.jsonl, pairs.tsv and ignore_ids.txt, with ids `NAME|URL`. The set is evaluated as
it is, and with the texts of the pages: their main text, all text, and others by --html-text. NAME.warc.wet.gz files are evaluated too, if
there are any. Crawls have the same URLs, so the documents have the ids of their records, and the labels get the same ids.

With --page-text, the example of crates/html, it measures what boilerplate of a host would do: lines that are on more than a share of the
host's pages of a crawl are taken out of all its texts. It also prints the mean F1 of the words of the pages against docs.jsonl, where a Han
character is a word. Needs warcio.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit

from warcio.archiveiterator import ArchiveIterator

WARC, WET = ".warc.gz", ".warc.wet.gz"
HAN = "[\u3400-\u4dbf\u4e00-\u9fff]"
WORD = re.compile(rf"{HAN}|(?:(?!{HAN})\w)+")
SHARES = [None, 0.9, 0.5, 0.3, 0.2, 0.1, 0.05]


def records(folder, ending):
    """The label of each page, and its record."""
    for path in sorted(folder.glob(f"*{ending}")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type in ("response", "conversion"):
                    yield f"{path.name.removesuffix(ending)}|{record.rec_headers.get_header('WARC-Target-URI')}", record


def labels_of_records(folder, ending, to):
    """Writes the labels with the ids of the records."""
    ids = {label: record.rec_headers.get_header("WARC-Record-ID").strip("<>") for label, record in records(folder, ending)}
    head, *pairs = (folder / "pairs.tsv").read_text().splitlines()
    rows = ([ids.get(pair[0]), ids.get(pair[1]), *pair[2:]] for pair in (line.split("\t") for line in pairs))
    lines = [head, *("\t".join(row) for row in rows if row[0] and row[1])]
    if len(lines) <= len(pairs):
        print(f"{len(pairs) + 1 - len(lines)} pairs have a page that is in no *{ending} file")
    (to / "pairs.tsv").write_text("\n".join(lines) + "\n")
    ignored = [ids[label] for label in (folder / "ignore_ids.txt").read_text().splitlines() if label in ids]
    (to / "ignore_ids.txt").write_text("".join(f"{name}\n" for name in ignored))


def evaluate(nearprint, name, labels, documents, *options):
    """Prints a row of the table."""
    command = [nearprint, "evaluate", "--json", "--documents", documents, "--truth", labels / "pairs.tsv"]
    command += ["--ignore", labels / "ignore_ids.txt", *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    scores = json.loads(done.stdout.splitlines()[-1])
    print(f"| {name} | {scores['n_documents']} | {scores['f1']:.4f} | {scores['precision']:.4f} | {scores['recall']:.4f} |", flush=True)


def from_warc(args, temp):
    evaluate(args.nearprint, "texts of the labelled set", args.folder, args.folder / "docs.jsonl")
    labels_of_records(args.folder, WARC, temp)
    for mode in ["main", "all", *args.html_text]:
        options = ["--warc-id", "record_id", "--html-text", mode]
        evaluate(args.nearprint, f"pages, `{mode}`", temp, args.folder / f"*{WARC}", *options)
    if any(args.folder.glob(f"*{WET}")):
        labels_of_records(args.folder, WET, temp)
        evaluate(args.nearprint, "WET", temp, args.folder / f"*{WET}", "--warc-id", "record_id")


def pages(folder, temp):
    """Files of the pages by label, without the codings of HTTP."""
    paths = {}
    for label, record in records(folder, WARC):
        content_type = record.http_headers.get_header("Content-Type") or ""
        if "html" in content_type and record.http_headers.get_statuscode() == "200":
            body = record.content_stream().read()
            if (charset := content_type.lower().partition("charset=")[2]) not in ("", "utf-8"):
                body = body.decode(charset).encode()
            paths[label] = temp / f"{len(paths)}.html"
            paths[label].write_bytes(body)
    return paths


def without_common_lines(texts, share):
    def group(label):
        crawl, url = label.split("|", 1)
        return crawl, urlsplit(url).netloc

    n_pages, common = Counter(map(group, texts)), defaultdict(Counter)
    for label, text in texts.items():
        common[group(label)].update(set(text.splitlines()))
    for label, text in texts.items():
        n_of_line, most = common[group(label)], share * n_pages[group(label)]
        yield {"id": label, "text": "\n".join(line for line in text.splitlines() if n_of_line[line] <= most)}


def f1_of_words(text, truth):
    ours, known = (Counter(WORD.findall(text.lower())) for text in (text, truth))
    return 2 * (ours & known).total() / max(1, ours.total() + known.total())


def by_common_lines(args, temp):
    paths = pages(args.folder, temp)
    truth = {row["id"]: row["text"] for row in map(json.loads, (args.folder / "docs.jsonl").open())}
    for mode in ["main", "all"]:
        out = subprocess.run([args.page_text, mode, *map(str, paths.values())], capture_output=True, text=True, check=True).stdout
        texts = dict(zip(paths, (json.loads(line)["text"] for line in out.splitlines())))
        for share in SHARES:
            rows = without_common_lines(texts, share if share else 1)
            (temp / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            name = f"`{mode}` without lines on more than {share:.0%} of the pages" if share else f"`{mode}`"
            evaluate(args.nearprint, name, args.folder, temp / "docs.jsonl")
        mean = statistics.fmean(f1_of_words(texts[label], truth[label]) for label in texts if label in truth)
        print(f"Mean F1 of words of `{mode}`: {mean:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nearprint", default="target/release/nearprint", help="the binary")
    parser.add_argument("--html-text", nargs="*", default=[], help="further values of --html-text")
    parser.add_argument("--page-text", help="measure common lines, with this example of crates/html")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    print("| texts | documents | F1 | precision | recall |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temp:
        (by_common_lines if args.page_text else from_warc)(args, Path(temp))


if __name__ == "__main__":
    main()
