#!/usr/bin/env python3
"""text_out.py: measures what the text of the pages of WARC files costs, with `nearprint filter --as jsonl` and with published extractors.

    text_out.py pack --out FILE.warc.gz FOLDER...
    text_out.py measure --work FOLDER --nearprint FILE [--rounds 2] [--results FILE.jsonl] NAME=FILE.warc.gz[,FILE.warc.gz...]...
    text_out.py tables --results FILE.jsonl

`pack` makes a WARC file of the .html and .html.gz files of folders, a response each, so that saved pages can be read as a crawl.

`measure` takes sets of WARC files. It first runs a night over a set (`warc_id = "record_id"`) and takes the records that stay, byte for byte, as the
input of all programs. So all have the same pages, and nearprint drops none of them. A page is a response of HTML with a status of 200 to 299. Each program
goes over the input several times (`passes`) and writes a line of JSON for each page that has text. The figures are those of all passes together, whole
processes with their start:

- filter: `nearprint filter --as jsonl --dt FIRST --to LAST`, one process with its default threads. Each pass is a night that was published before the
  clock starts: a page that is crawled again and has not changed stays in its new night too, so its text is extracted again.
- run: `nearprint run` of the first night into an empty store, a process for each pass. It gives decisions, and no text. For context.
- trafilatura: `extract(page)` with its defaults. resiliparse: `extract_plain_text(page, main_content=True)`. FastWARC reads the records for both, and this
  file frees bodies from chunks and gzip. Texts are decoded by the character set of the HTTP header, and without one by the program's own detection.
- read: the same reading, and nothing is extracted.

cpu_seconds and wall_seconds are of all passes; gzip_mb, n_pages, n_texts and text_mb (UTF-8) of one. The rates are MB for each second of processor time.
"""

import argparse
import gzip
import json
import shlex
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

from programs import FIRST, measured, print_table, report, seconds, versions

HTML = ("text/html", "application/xhtml+xml")
PASSES = {"filter": 60, "run": 40, "read": 400, "resiliparse": 60, "trafilatura": 4}
DAY = date.fromisoformat(FIRST.removeprefix("dt="))
DATE = f"{DAY}T00:00:00Z"


def pack(args: argparse.Namespace) -> None:
    """A WARC file with a response for each HTML file."""
    paths = [path for folder in map(Path, args.names) for path in sorted(folder.rglob("*.html*"))]
    with open(args.out, "wb") as out:
        for number, path in enumerate(paths):
            body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            fields = {
                "WARC-Type": "response",
                "WARC-Record-ID": f"<urn:uuid:00000000-0000-0000-0000-{number:012}>",
                "WARC-Target-URI": f"http://pages.example/{path.parent.name}/{number}",
                "WARC-Date": DATE,
                "Content-Type": "application/http; msgtype=response",
                "Content-Length": str(len(block)),
            }
            header = "".join(f"{key}: {value}\r\n" for key, value in fields.items())
            out.write(gzip.compress(b"WARC/1.0\r\n" + header.encode() + b"\r\n" + block + b"\r\n\r\n"))
    print(f"{len(paths)} pages")


def unchunked(body: bytes) -> bytes:
    """A body without its chunks; the body as it is, if it has none."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at)
        try:
            n = int(body[at:end].split(b";")[0], 16)
        except ValueError:
            return body
        if n == 0:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + n])
        at = end + 4 + n


def pages(paths: list[Path]) -> Iterator[tuple[str, str | None, bytes]]:
    """URL, character set of the HTTP header and body of each page."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    for path in paths:
        for record in ArchiveIterator(str(path), record_types=WarcRecordType.response, parse_http=True):
            headers = record.http_headers
            if headers is None or not 200 <= (headers.status_code or 0) < 300 or (record.http_content_type or "").lower() not in HTML:
                continue
            body = record.reader.read()
            if "chunked" in (headers.get("Transfer-Encoding") or "").lower():
                body = unchunked(body)
            if "gzip" in (headers.get("Content-Encoding") or "").lower() and body.startswith(b"\x1f\x8b"):
                body = zlib.decompressobj(31).decompress(body)
            yield record.headers.get("WARC-Target-URI") or "", record.http_charset, body


def decoded(charset: str | None, body: bytes) -> str | None:
    """The text of a page by the HTTP header."""
    try:
        return body.decode(charset, errors="replace") if charset else None
    except LookupError:
        return None


def trafilatura_text() -> Callable[[str | None, bytes], str | None]:
    from trafilatura import extract

    return lambda charset, body: extract(decoded(charset, body) or body)


def resiliparse_text() -> Callable[[str | None, bytes], str | None]:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    return lambda charset, body: extract_plain_text(decoded(charset, body) or bytes_to_str(body, detect_encoding(body) or "utf-8"), main_content=True)


def nothing() -> Callable[[str | None, bytes], str | None]:
    return lambda charset, body: None


EXTRACTORS = {"read": nothing, "trafilatura": trafilatura_text, "resiliparse": resiliparse_text}


def one(name: str, passes: int, out: Path, paths: list[Path]) -> None:
    """The process that is measured: writes OUT/texts.jsonl in each pass, and OUT/pages with the number of pages."""
    text_of = EXTRACTORS[name]()
    for _ in range(passes):
        n = 0
        with open(out / "texts.jsonl", "w", encoding="utf-8") as file:
            for url, charset, body in pages(paths):
                n += 1
                if text := text_of(charset, body):
                    file.write(json.dumps({"url": url, "text": text}, ensure_ascii=False) + "\n")
    (out / "pages").write_text(str(n), encoding="utf-8")


def texts(folder: Path) -> list[str]:
    """The texts that a program wrote, without empty ones."""
    lines = (line for path in sorted(folder.rglob("*.jsonl")) for line in path.read_text(encoding="utf-8").split("\n") if line)
    return [text for line in lines if (text := json.loads(line)["text"])]


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def dt(number: int) -> str:
    return str(DAY + timedelta(number))


def nights(args: argparse.Namespace, place: Path, paths: list[Path], n: int) -> None:
    """As many published nights, each over copies of these files."""
    job(emptied(place) / "job.toml", place / "documents", place)
    for number in range(n):
        documents = place / "documents" / f"dt={dt(number)}"
        documents.mkdir(parents=True)
        for path in paths:
            shutil.copyfile(path, documents / path.name)
        measured(run_command(args, place / "job.toml", dt(number)), place / "log")


def job(path: Path, documents: Path, place: Path) -> None:
    lines = [f'documents = "{documents}"', f'store = "{place}/store"', f'output = "{place}/output"', 'warc_id = "record_id"', "create_store = true"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_command(args: argparse.Namespace, config: Path, day: str) -> list[Path | str]:
    return [args.nearprint, "run", "--config", config, "--dt", day, "--no-breakers"]


def filter_command(args: argparse.Namespace, place: Path, out: Path, *more: str) -> list[Path | str]:
    return [args.nearprint, "filter", "--config", place / "job.toml", "--dt", dt(0), "--output", out, *more]


def command_of(args: argparse.Namespace, name: str, place: Path, out: Path) -> list[Any]:
    """What goes over the input in all passes."""
    if name == "filter":
        return filter_command(args, place, out, "--as", "jsonl", "--to", dt(PASSES[name] - 1))
    if name == "run":
        folders = [out / str(number) for number in range(PASSES[name])]
        for folder in folders:
            folder.mkdir()
            job(folder / "job.toml", place / "documents", folder)
        return ["sh", "-c", " && ".join(shlex.join(map(str, run_command(args, folder / "job.toml", dt(0)))) for folder in folders)]
    inputs = sorted((place / "documents" / FIRST).iterdir())
    return [sys.executable, Path(__file__).resolve(), "one", "--work", out, name, *inputs]


def version_of(args: argparse.Namespace, name: str) -> dict[str, str]:
    if name in ("filter", "run"):
        return versions(args, "nearprint")
    return {"version": metadata.version("fastwarc" if name == "read" else name)}


def measure(args: argparse.Namespace) -> None:
    for given in args.names:
        title, paths = given.split("=", 1)
        first, place = args.work / f"{title}.all", args.work / title
        nights(args, first, [Path(path) for path in paths.split(",")], 1)
        measured(filter_command(args, first, first / "stay"), first / "log")
        nights(args, place, sorted((first / "stay" / FIRST).glob("*.warc.gz")), PASSES["filter"])
        input_mb = sum(path.stat().st_size for path in (place / "documents" / FIRST).iterdir()) / 1e6
        for number in range(args.rounds):
            for name, passes in PASSES.items():
                out = emptied(args.work / "out")
                line = measured(command_of(args, name, place, out), args.work / "log")
                del line["peak_mb"]  # of processes that end before anyone looks
                found = texts(out / FIRST if name == "filter" else out) if name not in ("run", "read") else []
                text_mb = sum(len(text.encode()) for text in found) / 1e6
                head = {"set": title, "program": name, **version_of(args, name), "round": number + 1, "passes": passes, "gzip_mb": round(input_mb, 3)}
                if (out / "pages").exists():
                    head["n_pages"] = int((out / "pages").read_text(encoding="utf-8"))
                if found:
                    head |= {"n_texts": len(found), "text_mb": round(text_mb, 3), "text_mb_per_cpu_s": round(text_mb * passes / line["cpu_seconds"], 2)}
                report(args, head | line | {"gzip_mb_per_cpu_s": round(input_mb * passes / line["cpu_seconds"], 2)})
    shutil.rmtree(args.work / "out")


def tables(args: argparse.Namespace) -> None:
    lines = [json.loads(line) for line in args.results.read_text(encoding="utf-8").splitlines()]
    for title in dict.fromkeys(line["set"] for line in lines):
        print(f"\n## {title}")
        rows = []
        for name in PASSES:
            of = [line for line in lines if (line["set"], line["program"]) == (title, name)]
            if of:
                rates = [seconds(of, key) if key in of[0] else "" for key in ("gzip_mb_per_cpu_s", "text_mb_per_cpu_s", "cpu_seconds", "wall_seconds")]
                counts = [str(of[0].get(key, "")) for key in ("passes", "gzip_mb", "n_pages", "n_texts", "text_mb")]
                rows.append([f"{name} {of[0]['version']}", *counts, *rates])
        print_table(["program", "passes", "gzip MB", "pages", "texts", "text MB", "gzip MB/s", "text MB/s", "CPU s", "wall s"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["pack", "measure", "tables", "one"], help="`one` is the process that is measured")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--nearprint", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--results", type=Path)
    parser.add_argument("names", nargs="*", metavar="FOLDER|SET", help="pack: folders of pages; measure: NAME=FILE.warc.gz,...")
    args = parser.parse_intermixed_args()
    for key in ("work", "nearprint"):
        setattr(args, key, getattr(args, key) and getattr(args, key).resolve())
    if args.part == "one":
        one(args.names[0], PASSES[args.names[0]], args.work, [Path(name) for name in args.names[1:]])
    else:
        {"pack": pack, "measure": measure, "tables": tables}[args.part](args)


if __name__ == "__main__":
    main()
