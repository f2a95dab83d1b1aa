"""Measures text to fingerprint on texts of yours, beside published programs; appends JSON lines and prints tables in Markdown.

    bash evidence/peers/text_setup.sh FOLDER
    python3 evidence/benchmarks/text.py --peers FOLDER --results evidence/benchmarks/text.jsonl --english FILE.jsonl... --chinese FILE.jsonl...

Needs a release build of nearprint-bench, with --target where that is not target/. Two parts for each language: `ways` is nearprint and bare
word cutting, round after round in one process; `peers` runs nearprint's profiles and the published programs on one core, one process
after the other, --rounds times. Tables show medians of the rounds. --tables prints them from the results there are, measuring nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "evidence/peers"
# What computes the same fingerprints in nearprint.
PROFILES = {"simhash 2.1.2 python-simhash": "python-simhash", "simhash 0.3.0": "simhash-crate", "gaoya 0.2.2 SimHash": "gaoya"}
PYTHON_WAYS = {
    "english": ["python-simhash", "minhash-words", "minhash-shingles", "minhash-words-each", "minhash-shingles-each"],
    "chinese": ["python-simhash", "minhash-words", "minhash-bigrams"],
}


def run(*command):
    """Runs a command; gives its lines of JSON."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measured(args, language, files):
    """All lines of one language in one run, each as it comes."""
    bench = [args.target / "release/nearprint-bench", "text", "--documents", *files]
    for line in run(*bench, "--threads", 2, "--seconds", args.seconds):
        yield {"part": "ways", **line}
    profiles = [flag for name in ["default", *PROFILES.values()] for flag in ("--profile", name)]
    ways = [flag for name in PYTHON_WAYS[language] for flag in ("--way", name)]
    for repeat in range(args.rounds):
        commands = [
            [*bench, "--threads", 1, "--seconds", 1, *profiles],
            [args.peers / "target/release/text_peer", 1, *files],
            [args.peers / "text-venv/bin/python", PEERS / "text_measure.py", *ways, *files],
        ]
        for line in (line for command in commands for line in run(*command)):
            yield {"part": "peers", "round": repeat, **line}


def measure(args):
    """Appends the lines of another run to the results."""
    old = read(args.results)
    number = 1 + max((line["run"] for line in old), default=0)
    for language in PYTHON_WAYS:
        if files := getattr(args, language):
            for line in measured(args, language, files):
                line = {"run": number, "language": language, "load": round(os.getloadavg()[0], 1), **line}
                with open(args.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def middle(lines, key):
    return statistics.median(line[key] for line in lines)


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_ways(lines):
    """nearprint and bare word cutting: medians of the runs, ratios of processor time, those of the clock in brackets."""
    rows = []
    for way in dict.fromkeys(line["way"] for line in lines):
        own = [line for line in lines if line["way"] == way]
        ratios = [
            f"{statistics.median(line['cpu_times'][name] for line in own):.2f} "
            f"({statistics.median(line['times'][name] for line in own):.2f})"
            for name in own[0]["times"]
        ]
        speed = [f"{1e3 / middle(own, 'cpu_ns_per_byte'):.0f}", f"{middle(own, 'cpu_ns_per_byte'):.2f}"]
        rows.append([way, *speed, f"{min(line['min_ns_per_byte'] for line in own):.2f}", *ratios])
    names = [f"× {name}" for name in lines[0]["times"]]
    table(["", "MB/s a core", "ns/byte", "least by the clock, two threads", *names], rows)


def print_peers(lines):
    """Published programs, by processor time: how many times as long they take as the default profile and the one that gives the same."""
    name_of = lambda line: line.get("peer") or f"nearprint, {line['way']}"  # noqa: E731
    by_name = {}
    for line in lines:
        by_name.setdefault(name_of(line), []).append(line)
    cost = {name: middle(own, "cpu_ns_per_byte") for name, own in by_name.items()}
    rows = []
    for name, own in by_name.items():
        same = f"nearprint, {PROFILES[name]}" if name in PROFILES else None
        equal = same and by_name[same][0]["sum"] == own[0]["sum"]
        times = [f"{cost[name] / cost['nearprint, default']:.2f}"] if "peer" in own[0] else [""]
        times.append(f"{cost[name] / cost[same]:.2f}{'' if equal else ' (sums differ)'}" if same else "")
        least = min(line["min_ns_per_byte"] for line in own)
        rows.append([name, own[0].get("settings", ""), f"{1e3 / cost[name]:.3g}", f"{cost[name]:.3g}", f"{least:.3g}", *times])
    header = ["program", "settings", "MB/s a core", "ns/byte", "least by the clock"]
    table([*header, "× default's time", "× the same profile's time"], rows)


def print_tables(results):
    lines = read(results)
    for language in PYTHON_WAYS:
        for part, show in (("ways", print_ways), ("peers", print_peers)):
            if own := [line for line in lines if line["language"] == language and line["part"] == part and "error" not in line]:
                print(f"{language}, {part}: {own[0]['n_documents']} texts, {own[0]['n_bytes'] / 1e6:.1f} MB\n")
                show(own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--english", nargs="+", default=[])
    parser.add_argument("--chinese", nargs="+", default=[])
    parser.add_argument("--peers", type=Path, help="the folder that text_setup.sh was given")
    parser.add_argument("--target", type=Path, default=ROOT / "target")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20, help="of the rounds of ways, for each language")
    parser.add_argument("--rounds", type=int, default=3, help="of the peers")
    parser.add_argument("--tables", action="store_true", help="only print what the results have")
    args = parser.parse_args()
    if not args.tables:
        if not args.peers:
            parser.error("--peers FOLDER is needed to measure")
        measure(args)
    print_tables(args.results)


if __name__ == "__main__":
    main()
