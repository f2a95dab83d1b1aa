"""nights.py --nearprint BINARY --data FOLDER: which good nights the breakers stop, and which bad ones they let pass.

60 good nights and 20 bad ones of made sites, each bad one as a first night and after four good ones, and the nights of real texts of
crawls.py. Needs Python 3.11 and pyarrow.
"""
import argparse
import random
import sys
import tempfile
from pathlib import Path

from crawls import COOKIE, GONE, HELD_OUT, LOGIN, PARKED, VISIBLE, Crawls, run_night, write_night

PAGES, TEXTS = 2000, 600
WORDS = [f"{a}{b}" for a in ("ba", "co", "di", "fe", "gu", "ha", "ji", "lo", "mu", "ne") for b in ("ran", "sel", "tor", "vex", "zim", "pol", "kat", "der", "nis", "hou")]


def text(seed, n=120):
    words = random.Random(seed)
    return " ".join(words.choices(WORDS, k=n))


def site(seed, host="news.example", pages=PAGES, texts=TEXTS):
    """Addresses of a site of which most have the text of another one: mirrors, languages, printer versions."""
    return {f"https://{host}/{seed}/{i}": text(f"{seed} {i % texts}") for i in range(pages)}


def changed(pages, share, seed):
    """Other texts for a share of the texts: what has one text, such as mirrors, changes together."""
    bodies = sorted(set(pages.values()))
    new = {body: text(f"{seed} {i}") for i, body in enumerate(bodies) if random.Random(f"{seed} {body}").random() < share}
    return {url: new.get(body, body) for url, body in pages.items()}


def some(pages, share, seed):
    chosen = random.Random(seed)
    return {url: body for url, body in pages.items() if chosen.random() < share}


def good():
    """Ten sites with six nights each."""
    for seed in range(10):
        first = site(seed, texts=(TEXTS, 100, 1900, 400, 60)[seed % 5])
        last = changed(first, 0.9, "c")
        yield seed, [
            first,
            changed(first, 0.1, "a"),
            first | site(f"{seed} more", pages=300, texts=250),
            some(changed(first, 0.3, "b"), 0.6, "b"),
            last,
            {url: f"{text(f'head {seed}', 60)} {body} {text(f'foot {seed}', 40)}" for url, body in last.items()},
        ]


def bad(seed, before):
    """Ten nights that should not be published."""
    urls = list(before)
    numbers = random.Random(seed)
    yield "one cookie banner", {url: COOKIE for url in urls}
    yield "three banners", {url: (COOKIE, LOGIN, GONE)[i % 3] for i, url in enumerate(urls)}
    yield "a banner on 60 % of the pages", {url: COOKIE if i % 5 < 3 else before[url] for i, url in enumerate(urls)}
    yield "a banner for each language", {url: f"{COOKIE} {text(f'language {i % 4}', 30)}" for i, url in enumerate(urls)}
    yield "no text at all", {url: "" for url in urls}
    yield "the navigation in place of the text", {url: text("navigation", 300) for url in urls}
    yield "one page at all addresses", {f"https://news.example/one?session={i}": text("one", 400) for i in range(PAGES)}
    yield "soft errors", {url: f"{GONE}" for url in urls}
    yield "parked domains", {f"https://host{i % 20}.example/{i}": f"{PARKED} host{i % 20}" for i in range(PAGES)}
    yield "a wall that names the address", {url: f"{LOGIN} {url} {numbers.randrange(16 ** 8):08x}" for url in urls}


def run(binary, nights, folder):
    """The breakers that stop the last one of some nights; the others are let through."""
    (folder / "job.toml").write_text('documents = "crawl"\nstore = "store"\noutput = "results"\n')
    stopped = []
    for at, night in enumerate(nights):
        dt = f"2026-11-{at + 1:02}"
        write_night(folder, dt, night)
        code, summary, said = run_night(binary, folder, dt)
        stopped.append([breaker["name"] for breaker in summary["breakers"]])
        if code == 65 and summary["status"] == "stopped":
            code, _, said = run_night(binary, folder, dt, "--no-breakers")
        if code:
            sys.exit(said)
    return stopped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nearprint", required=True)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    binary = str(Path(args.nearprint).resolve())

    def nights(of):
        with tempfile.TemporaryDirectory() as folder:
            return run(binary, of, Path(folder))

    print("| good nights | nights | stopped by |\n|---|---|---|")
    total = [0, 0]
    made = [(f"made site {seed}", of) for seed, of in good()]
    for sets, kind in ((VISIBLE, ""), (HELD_OUT, ", held out")):
        crawls = Crawls(args.data, sets)
        made += [(name + kind, [{url: body for url, (body, _) in night.items()} for night in of]) for name, of in crawls.alike()]
    for name, of in made:
        stopped = nights(of)
        total = [total[0] + len(stopped), total[1] + sum(map(bool, stopped))]
        names = "; ".join(f"night {at + 1}: {', '.join(by)}" for at, by in enumerate(stopped) if by)
        print(f"| {name} | {len(stopped)} | {names} |", flush=True)
    print(f"\n{total[1]} of {total[0]} good nights stopped\n\n| bad night | as a first night | after four |\n|---|---|---|")
    missed = 0
    before = site(3)
    for name, night in bad(3, before):
        first, last = nights([night])[-1], nights([before, changed(before, 0.05, "x"), before, some(before, 0.9, "y"), night])[-1]
        missed += (not first) + (not last)
        print(f"| {name} | {', '.join(first) or 'no'} | {', '.join(last) or 'no'} |", flush=True)
    print(f"\n{missed} of 20 bad nights let pass")


if __name__ == "__main__":
    main()
