"""crawls.py --nearprint BINARY --data FOLDER [--held-out]: crawls that misbehave, and good ones that look alike.

Builds crawls from real texts, says of each page of each night whether it is a stub, runs the nights, and compares. Needs Python 3.11 and pyarrow.
"""
import argparse
import collections
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

COOKIE = ("We value your privacy. We and our partners store and access information on a device, such as cookies, and process personal data, such as "
          "unique identifiers, for personalised advertising, measurement and audience research. With your permission we may use precise location data. "
          "You may click to consent to our processing as described above. Accept all. Reject all. Manage preferences.")
LOGIN = "Please sign in to continue. This article is for subscribers only. User name, password, forgot your password? Create an account."
GONE = "Sorry, the page that you are looking for does not exist or has moved. Try our search, or go back to the front page."
PARKED = "This domain is for sale. Enquire now about the price. Related searches: insurance, loans, hotels, flights, lawyers."
HEADER = [f"{word}" for word in "Home Products Documentation Community Blog Careers Contact Pricing Support Downloads Partners Events".split()]
# Which sets of texts a choice may look at, and which it may not.
VISIBLE = {"articles": ["articles_en"], "templates": ["templates_en_cli", "templates_en"], "revisions": ["docs_rev_en", "docs_rev_zh_fastapi", "docs_rev_ko"],
           "other": ["docs_rev_zh_fastapi", "docs_rev_ja"]}
HELD_OUT = {"articles": ["docs_rev_pt"], "templates": ["templates_en_cmdlets", "templates_zh"], "revisions": ["docs_rev_de", "docs_rev_ru", "docs_rev_tr_vi", "docs_rev_zh"],
            "other": ["docs_rev_ru", "laws_zh"]}


def read(folder):
    jsonl = folder / "docs.jsonl"
    if jsonl.is_file():
        return [json.loads(line) for line in jsonl.open(encoding="utf-8")]
    return pq.read_table(folder / "docs.parquet").to_pylist()


def distinct(documents):
    """One text of each family, at least 200 characters long."""
    seen, texts = set(), []
    for document in documents:
        family = document.get("family", document["id"])
        if family not in seen and len(document["text"]) >= 200:
            seen.add(family)
            texts.append(document["text"])
    return texts


class Crawls:
    def __init__(self, data, sets):
        self.random = random.Random(7)
        self.texts = {kind: [text for name in names for text in distinct(read(data / name))] for kind, names in sets.items()}
        self.documents = {name: read(data / name) for name in sets["revisions"]}
        self.data = data

    def pages(self, n, host="news.example", kind="articles", offset=0):
        texts = self.texts[kind]
        return {f"https://{host}/story/{i}": texts[(offset + i) % len(texts)] for i in range(n)}

    def walled(self, pages, addresses, wall):
        return {url: (wall(url) if url in addresses else text, url in addresses) for url, text in pages.items()}

    def good(self, pages):
        return {url: (text, False) for url, text in pages.items()}

    def bad(self):
        pages, wall = self.pages(60), lambda _: COOKIE
        urls = list(pages)
        yield "a wall on all pages, after a good night", [self.good(pages), self.walled(pages, set(urls), wall)]
        few = self.pages(30)
        yield "a login wall on 12 of 30 pages", [self.good(few), self.walled(few, set(list(few)[:12]), lambda _: LOGIN)]
        steps = [3, 5, 12, 30, 60]
        yield "a wall that grows, 3 pages at first", [self.good(pages)] + [self.walled(pages, set(urls[:n]), wall) for n in steps]
        yield "a wall that begins on one page", [self.good(pages)] + [self.walled(pages, set(urls[:n]), wall) for n in (1, 2, 6, 60)]
        named = lambda url: f"Access to {url} was denied on 2026-11-{self.random.randrange(10, 30)}. {LOGIN} Reference {self.random.randrange(16**8):08x}."  # noqa: E731
        yield "a wall that names the address, the day and a number", [self.good(pages), self.walled(pages, set(urls), named)]
        many = self.pages(200)
        yield "a wall on 35 % of a first night", [self.walled(many, set(list(many)[:70]), wall)]
        yield "a wall on a first night, lifted in the second", [self.walled(many, set(many), wall), self.good(many)]
        hosts = {url: text for i in range(20) for url, text in self.pages(30, f"site{i}.example", offset=30 * i).items()}
        one = {url for url in hosts if "//site7." in url}
        yield "one host of twenty", [self.good(hosts), self.walled(hosts, one, lambda _: LOGIN)]
        titles = [" ".join(text.split()[:6]) for text in list(reversed(self.texts["articles"]))[:40]]
        soft = lambda _: GONE + " Most read: " + ". ".join(self.random.sample(titles, 3))  # noqa: E731
        yield "deleted pages with a list that differs", [self.good(pages), self.walled(pages, set(urls[:15]), soft)]
        front = " ".join(list(reversed(self.texts["articles"]))[:6])
        home = dict(pages) | {"https://news.example/": front}
        yield "deleted pages sent to a long front page", [self.good(home), self.walled(home, set(urls[:15]), lambda _: front)]
        parked = {f"https://parked.example/{word}/{i}": PARKED for i in range(30) for word in ("a", "b")}
        yield "a parked domain", [self.walled(parked, set(parked), lambda _: PARKED)]
        twice = self.walled(pages, set(urls[:20]), wall) | self.walled({u: pages[u] for u in urls[20:40]}, set(urls[20:40]), lambda _: LOGIN)
        yield "two walls at once", [self.good(pages), self.good(pages) | twice]
        languages = self.pages(60, "docs.example", "other")
        yield "a wall before pages in another language", [self.good(languages), self.walled(languages, set(list(languages)[:40]), wall)]

    def alike(self):
        yield "the same pages again", [self.good(self.pages(60))] * 3
        for kind in ("articles", "templates", "other"):
            pages = self.pages(150, kind=kind)
            old, new = (" ".join(HEADER * 3), " ".join(f"{word} menu" for word in HEADER * 4))
            before = {url: old + " " + text for url, text in pages.items()}
            after = {url: new + " " + text + " " + new for url, text in pages.items()}
            yield f"a redesign of all pages ({kind})", [self.good(before), self.good(after)]
            yield f"another date on all pages ({kind})", [self.good({u: f"{t} Updated on {d}" for u, t in pages.items()}) for d in ("2026-11-19", "2026-11-20")]
        texts = self.texts["articles"]
        mirrored = {}
        for i, text in enumerate(texts[:60]):
            for place in ("www.example/a", "www.example/print", "www.example/amp", "mirror.example/a"):
                mirrored[f"https://{place}/{i}"] = text + (" Printed from www.example" if "print" in place else "")
        yield "mirrors and printer versions", [self.good(mirrored), self.good(mirrored)]
        versions = {f"https://docs.example/{v}/{i}": text for i, text in enumerate(texts[:8]) for v in ("1.0", "1.1", "2.0", "latest", "zh-CN")}
        yield "five versions of eight pages", [self.good(versions), self.good(versions)]
        excerpts = {f"https://aggregator.example/{i}": " ".join(text.split()[:60]) + " Read more" for i, text in enumerate(texts[:150])}
        yield "an aggregator of excerpts", [self.good(self.pages(150) | excerpts)] * 2
        shop = lambda i, price: (f"{' '.join(texts[i % len(texts)].split()[5 + i // len(texts):11 + i // len(texts)])}. In stock, {price} euros. Free delivery from 50 euros. Returns within 30 days. Pay by card, "  # noqa: E731
                                 "transfer or on account. Rated by our customers. Add to basket. Compare. Recommend this product to friends.")
        prices = [{f"https://shop.example/p/{i}": shop(i, (i * 37 + night * 5) % 90 + 9) for i in range(150)} for night in range(3)]
        yield "short product pages with other prices", [self.good(night) for night in prices]
        sessions = {f"https://news.example/one?sid={i:05x}": texts[5] for i in range(80)} | self.pages(100)
        yield "one page at eighty addresses that differ in their query", [self.good(sessions)]
        calendar = {f"https://town.example/events/2026-{m:02}-{d:02}": f"Events on {d}.{m}.2026: " + " ".join(texts[(m * 28 + d) % len(texts)].split()[:12]) for m in range(1, 7) for d in range(1, 29)}
        yield "a calendar with an event on each day", [self.good(calendar), self.good(calendar)]
        for name, documents in self.documents.items():
            of = collections.defaultdict(list)
            for document in documents:
                of[document["family"]].append(document["text"])
            n = max(map(len, of.values()))
            nights = [{f"https://{name.replace('_', '-')}.example/{family}": texts[min(i, len(texts) - 1)] for family, texts in of.items()} for i in range(min(n, 4))]
            yield f"real revisions as nights ({name})", [self.good(night) for night in nights]
        crawl = collections.defaultdict(dict)
        for document in read(self.data / "crawl_seatunnel"):
            night, url = document["id"].split("|", 1)
            crawl[night][url] = document["text"]
        yield "two crawls of one site (crawl_seatunnel)", [self.good(crawl[night]) for night in sorted(crawl)]


def write_night(folder, dt, pages):
    """The documents of a night: texts by their URLs."""
    place = folder / "crawl" / f"dt={dt}"
    place.mkdir(parents=True)
    with (place / "pages.jsonl").open("w", encoding="utf-8") as file:
        for url, text in pages.items():
            file.write(json.dumps({"id": url, "text": text}, ensure_ascii=False) + "\n")


def run_night(binary, folder, dt, *more):
    """Runs a night: the exit code, the summary, and what it says to people."""
    command = [binary, "run", "--config", "job.toml", "--dt", dt, "--create-store", "--json", *more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout.splitlines()[-1]), done.stderr


def run(binary, nights, folder, stubs):
    job = 'documents = "crawl"\nstore = "store"\noutput = "results"\n'
    if not stubs:
        job += "[stubs]\nfind = false\n"
    (folder / "job.toml").write_text(job)
    found, known, replaced, missed, wrong, n_stubs, n_good = [], set(), 0, 0, 0, 0, 0
    lost = {}
    for at, night in enumerate(nights):
        dt = f"2026-11-{at + 1:02}"
        write_night(folder, dt, {url: text for url, (text, _) in night.items()})
        code, summary, said = run_night(binary, folder, dt, "--no-breakers")
        if code:
            sys.exit(said)
        parts = list((folder / "results" / "decisions" / f"dt={dt}").glob("*.parquet"))
        reasons = {}
        for part in parts:
            table = pq.ParquetFile(part).read(columns=["doc_id", "reason"])
            reasons.update(zip(table["doc_id"].to_pylist(), table["reason"].to_pylist()))
        for url, (_, is_stub) in night.items():
            called = reasons[url] == "stub"
            n_stubs += is_stub
            n_good += not is_stub
            missed += is_stub and not called
            wrong += called and not is_stub
            if is_stub and not called and url in known:
                replaced += url not in lost
                lost[url] = True
            if not is_stub and not called:
                known.add(url)
                lost.pop(url, None)
        found += [(c["signal"], c["n_documents"], c["n_earlier_texts"]) for c in summary.get("stubs", [])]
    return n_stubs, missed, replaced, n_good, wrong, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nearprint", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--without", action="store_true", help="with stubs.find = false")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    binary = str(Path(args.nearprint).resolve())
    crawls = Crawls(args.data, HELD_OUT if args.held_out else VISIBLE)
    total = collections.Counter()
    for what, of in (("crawls that misbehave", crawls.bad()), ("good crawls", crawls.alike())):
        print(f"\n| {what} | stubs | missed | articles replaced | good pages | called stubs | found by |\n|---|---|---|---|---|---|---|")
        for name, nights in of:
            if args.only not in name:
                continue
            with tempfile.TemporaryDirectory() as folder:
                n_stubs, missed, replaced, n_good, wrong, found = run(binary, nights, Path(folder), not args.without)
            by = ", ".join(f"{signal} {n} ({earlier})" for signal, n, earlier in found)
            print(f"| {name} | {n_stubs} | {missed} | {replaced} | {n_good} | {wrong} | {by} |", flush=True)
            total.update(stubs=n_stubs, missed=missed, replaced=replaced, good=n_good, wrong=wrong)
    print(f"\n{total['missed']} of {total['stubs']} stubs missed, {total['replaced']} articles replaced, "
          f"{total['wrong']} of {total['good']} good pages called stubs")


if __name__ == "__main__":
    main()
