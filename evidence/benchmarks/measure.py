"""Measures nearprint and its references on this machine; appends JSON lines to a results file.

    python3 evidence/benchmarks/measure.py --folder /big/disk --results evidence/benchmarks/results.jsonl [part ...]

Parts: kernels, together, growth, queries, distances, ratio, skew, peers, documents, sketches, model, nights, rolling, whole (2^33 fingerprints, 37 GB); without
names all but whole and nights. Needs release builds of nearprint and nearprint-bench below target/ or CARGO_TARGET_DIR, and for peers a C++
compiler and the network. Every measurement is a whole process or says its own seconds; those that are compared alternate in one run.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
NEARPRINT, BENCH = RELEASE / "nearprint", RELEASE / "nearprint-bench"
# What a trial takes off the binary logarithms of the sizes, in the parts that say so.
SHRINK = 0
# The default profile's.
MAX_SKETCH_DISTANCE = 36
# A build to compare with, and the seconds beyond which it is not run again at a larger distance.
REFERENCE = None
REFERENCE_SECONDS = 60


class Results:
    """A file of JSON lines; each line names its part."""

    def __init__(self, path, part):
        self.path, self.part = path, part

    def add(self, **fields):
        line = json.dumps({"part": self.part, **fields})
        print(line, flush=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def run(*arguments):
    """Runs a command; gives its lines of JSON, its seconds and its peak memory in KiB."""
    started = time.monotonic()
    done = subprocess.run(
        ["/usr/bin/time", "-f", "%M", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - started
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    rss = int(done.stderr.strip().splitlines()[-1])
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines, seconds, rss


def bytes_read(*arguments):
    """Bytes that a command reads, by its own account in /proc (Linux), asked until it ends."""
    process = subprocess.Popen([*map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    read = 0
    while process.poll() is None:
        try:
            read = int(Path(f"/proc/{process.pid}/io").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            pass
        time.sleep(0.002)
    return read


def drop_page_cache():
    """False where that is not allowed."""
    subprocess.run(["sync"], check=True)
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    except OSError:
        return False
    return True


def generate(folder, log_existing, log_queries, *more):
    shutil.rmtree(folder, ignore_errors=True)
    lines, _, _ = run(BENCH, "generate", "--log-existing", log_existing, "--log-queries", log_queries, "--output", folder, *more)
    return lines[-1]


def join(folder, max_distance=3, threads=2, *more, program=NEARPRINT):
    lines, seconds, rss = run(
        program, "join", "--queries", folder / "queries.parquet", "--existing", folder / "existing", "--max-distance",
        max_distance, "--pairs", "all", "--output", folder / "out", "--replace", "--threads", threads, "--json", *more,
    )
    return lines[-1], seconds, rss


def kernels(results, _folder):
    """ns per fingerprint in memory, one core, against |F|, |B| and k; every kernel at one size."""
    points = [(f, 16, 3) for f in range(20, 34)] + [(29, b, 3) for b in range(8, 21, 2)] + [(29, 16, k) for k in range(9)]
    points += [(26, 20, 3), (26, 20, 6), (33, 20, 3)]
    for log_existing, log_queries, k in dict.fromkeys(points):
        sizes = ["--log-existing", log_existing, "--log-queries", log_queries, "--max-distance", k]
        wide = 22 if log_existing >= 22 and k > 4 else 20
        best = {}
        for log_piece in sorted({20, wide}):
            kernel = [] if (log_existing, log_queries, k) == (29, 16, 3) else ["--kernel", "avx512"]
            lines, _, _ = run(BENCH, "kernels", *sizes, "--pieces", 16, "--log-piece", log_piece, *kernel)
            for line in lines:
                key = (line["operation"], line.get("kernel"))
                if key not in best or line["ns_per_fingerprint"] < best[key]["ns_per_fingerprint"]:
                    best[key] = {"log_existing": log_existing, "max_distance": k, "log_piece": log_piece, **line}
        for line in best.values():
            results.add(**line)


def together(results, _folder):
    """ns per fingerprint in memory, two threads that map each piece together, 2^20 queries: against the size of a piece, and against |F|."""
    points = [(33, k, piece) for k in (3, 8, 12) for piece in (20, 22, 24, 26)]
    points += [(f, k, min(f, 26)) for k in (8, 12) for f in (20, 22, 24, 26, 28, 30, 33)]
    for log_existing, k, log_piece in dict.fromkeys(points):
        sizes = ["--log-existing", log_existing, "--log-queries", 20, "--max-distance", k, "--log-piece", log_piece]
        lines, _, rss = run(BENCH, "kernels", "--together", "--no-reference", *sizes, "--pieces", 1 << max(log_piece - 20, 0), "--kernel", "avx512")
        results.add(**lines[-1], log_piece=log_piece, rss_kib=rss)


def whole_joins(place, max_distance, *more, reference=None):
    """Whole joins, the first to warm up; up to three that count, fewer where they take long. With a reference, its joins alternate."""
    first = join(place, max_distance, 2, *more)
    n_rounds = 1 if first[1] > 10 else 3
    runs, references = [], []
    for _ in range(n_rounds):
        runs.append(join(place, max_distance, 2, *more))
        if reference and sum(seconds for _, seconds, _ in references) < REFERENCE_SECONDS:
            references.append(join(place, max_distance, 2, *more, program=reference))
    found = {
        "max_distance": max_distance, "seconds": statistics.median(r[1] for r in runs), "rss_kib": max(r[2] for r in runs),
        "n_pairs": runs[0][0]["n_pairs"], "n_rounds": len(runs),
    }
    if references:
        found |= {
            "reference_seconds": statistics.median(r[1] for r in references), "reference_rss_kib": max(r[2] for r in references),
            "same_pairs": references[0][0]["n_pairs"] == found["n_pairs"],
        }
    return found


def distances(results, folder):
    """Whole joins of 2^26 x 2^20 against k, without sketches and with them, beside the --reference; takes --shrink."""
    place = folder / "distances"
    log_existing, log_queries = 26 - SHRINK, 20 - SHRINK
    for sketched in (False, True):
        generate(place, log_existing, log_queries, *["--sketches"] * sketched)
        reference = REFERENCE
        for max_distance in range(13):
            more = ["--max-sketch-distance", MAX_SKETCH_DISTANCE] * sketched
            found = whole_joins(place, max_distance, *more, reference=reference)
            if found.get("reference_seconds", 0) > REFERENCE_SECONDS:
                reference = None
            results.add(log_existing=log_existing, log_queries=log_queries, sketches=sketched, **found)
        shutil.rmtree(place)


def more_queries(place, log_queries):
    """Puts so many queries beside existing fingerprints; those of a smaller set come first. Give `generate` no more planted pairs than
    the smallest set has queries."""
    generate(place / "queries", 4, log_queries, "--planted", 0)
    os.replace(place / "queries/queries.parquet", place / "queries.parquet")
    shutil.rmtree(place / "queries")


def queries(results, folder):
    """Whole joins of 2^26 against |B|, at k = 3 and 8; takes --shrink."""
    place = folder / "queries"
    log_existing = 26 - SHRINK
    generate(place, log_existing, 8, "--planted", 256)
    for log_queries in range(8, 23 - SHRINK, 2):
        more_queries(place, log_queries)
        for max_distance in (3, 8):
            results.add(log_existing=log_existing, log_queries=log_queries, **whole_joins(place, max_distance))
    shutil.rmtree(place)


def model(results, folder):
    """What `nearprint plan` expects of whole joins, and what they take; two distances for each |F| and |B|. Takes --shrink."""
    place = folder / "model"
    ratios = []
    workload = 0
    for log_existing in range(20, 29, 2):
        log_existing -= SHRINK
        generate(place, log_existing, 8, "--planted", 256)
        for log_queries in range(12, 23, 2):
            log_queries -= SHRINK
            more_queries(place, log_queries)
            plans = {k: planned(log_existing, log_queries, k) for k in range(13)}
            # Chance pairs are not part of the model, and a quarter of a minute is enough to tell.
            possible = [k for k, plan in plans.items() if plan["chance_pairs"] < 1 << 20 and plan["estimated_seconds"] < 15]
            for max_distance in {possible[(5 * i + 2) % len(possible)] for i in (workload, workload + len(possible) // 2 + 1)}:
                plan = plans[max_distance]
                found = whole_joins(place, max_distance)
                ratio = plan["estimated_seconds"] / found["seconds"]
                ratios.append((ratio, found["seconds"]))
                results.add(
                    operation="join", log_existing=log_existing, log_queries=log_queries, **found, estimated_seconds=plan["estimated_seconds"],
                    strategy=plan["strategy"], piece_rows=plan["piece_rows"], estimated_over_measured=ratio,
                )
            workload += 1
        shutil.rmtree(place)
    for least in (0, 0.2, 1):
        some = sorted(ratio for ratio, seconds in ratios if seconds >= least)
        if some:
            results.add(
                operation="range", measured_seconds_at_least=least, n_workloads=len(some), estimated_over_measured=statistics.median(some),
                smallest=some[0], largest=some[-1], within_2=sum(0.5 <= ratio <= 2 for ratio in some),
            )


def planned(log_existing, log_queries, max_distance):
    # The files of a set share no range, so they are one sorted run.
    sizes = ["--existing-rows", 1 << log_existing, "--query-rows", 1 << log_queries, "--max-distance", max_distance]
    return run(NEARPRINT, "plan", *sizes, "--threads", 2, "--json")[0][-1]


def growth(results, folder):
    """Whole joins from Parquet, warm page cache, two threads, against |F|."""
    for log_existing in range(20, 31):
        place = folder / "growth"
        made = generate(place, log_existing, 16)
        runs = [join(place) for _ in range(4)][1:]
        decoded = [run(BENCH, "decode", place / "existing", "--threads", 2)[0][-1]["seconds"] for _ in range(3)]
        results.add(
            log_existing=log_existing, log_queries=16, seconds=statistics.median(r[1] for r in runs),
            decode_seconds=statistics.median(decoded), rss_kib=max(r[2] for r in runs),
            files_over_entropy=made["files_over_entropy"],
        )
        shutil.rmtree(place)


def ratio(results, folder):
    """2^29 x 2^16: the whole join against reading and decoding the column alone, warm and cold, alternating."""
    place = folder / "ratio"
    made = generate(place, 29, 16)
    results.add(operation="generate", **{k: v for k, v in made.items() if k != "operation"})
    for cache in ("warm", "cold"):
        if cache == "cold" and not drop_page_cache():
            continue
        pairs = []
        for number in range(8):
            if cache == "cold":
                drop_page_cache()
            decode = run(BENCH, "decode", place / "existing", "--threads", 2)[1]
            if cache == "cold":
                drop_page_cache()
            _, seconds, rss = join(place)
            if number > 0:
                pairs.append((decode, seconds, rss))
        results.add(
            cache=cache, log_existing=29, log_queries=16, decode_seconds=statistics.median(p[0] for p in pairs),
            join_seconds=statistics.median(p[1] for p in pairs), rss_kib=max(p[2] for p in pairs),
            ratio=statistics.median(p[1] / p[0] for p in pairs), ratios=[round(p[1] / p[0], 2) for p in pairs],
        )
    results.add(**run(BENCH, "check", place / "out")[0][-1])
    shutil.rmtree(place)


def skew(results, _folder):
    """Self-joins in memory, one thread: uniform, half in one block, all near one point."""
    for arguments in (
        ["--log-rows", 20], ["--log-rows", 23], ["--log-rows", 20, "--max-distance", 6], ["--log-rows", 20, "--spread", "half-block"],
        ["--log-rows", 23, "--spread", "half-block"], ["--log-rows", 23, "--spread", "half-prefix"], ["--spread", "ball"],
    ):
        lines, _, rss = run(BENCH, "self", *arguments)
        results.add(**lines[-1], rss_kib=rss)


def peers(results, folder):
    """Published programs on the same sets, one thread each; see evidence/peers."""
    place = folder / "peers"
    generate(place, 20, 16, "--raw")
    measure = ROOT / "evidence/peers/measure.sh"
    os.environ.setdefault("PEERS_DIR", str(folder / "peers-build"))
    cross = ["--existing", place / "existing.u64", "--queries", place / "queries.u64", "--max-distance", 3, "--sample", 1 << 18]
    for line in run("bash", measure, *cross)[0]:
        results.add(**line)
    for log_rows in (20, 23):
        raw = place / "self.u64"
        ours = run(BENCH, "self", "--log-rows", log_rows, "--raw", raw)[0][-1]
        results.add(**ours)
        for line in run("bash", measure, "--self", raw, "--max-distance", 3, "--gaoya-blocks", 6)[0]:
            results.add(**line)
    shutil.rmtree(place)


def documents(results, folder):
    """2^27 with URL-like ids: what fetching ids costs, without, and with sketches."""
    place = folder / "documents"
    made = generate(place, 27, 16, "--documents", "--planted", 65536, "--max-distance", 3)
    results.add(operation="generate", **{k: v for k, v in made.items() if k != "operation"})
    for max_distance, more in ((3, []), (6, []), (6, ["--max-sketch-distance", 56])):
        joined(results, place, 27, max_distance, more)
    shutil.rmtree(place)


def sketches(results, folder):
    """2^29 with sketches, no ids: k = 3 and 6 alone, and as the default profile verifies."""
    place = folder / "sketches"
    generate(place, 29, 16, "--sketches")
    for max_distance, more in ((3, []), (6, []), (6, ["--max-sketch-distance", 56])):
        joined(results, place, 29, max_distance, more)
    shutil.rmtree(place)


def joined(results, place, log_existing, max_distance, more):
    runs = [join(place, max_distance, 2, *more) for _ in range(4)][1:]
    read = bytes_read(
        NEARPRINT, "join", "--queries", place / "queries.parquet", "--existing", place / "existing", "--max-distance",
        max_distance, "--pairs", "all", "--output", place / "out", "--replace", "--threads", 2, *more,
    )
    results.add(
        operation="join", log_existing=log_existing, log_queries=16, max_distance=max_distance, sketches=bool(more),
        seconds=statistics.median(r[1] for r in runs), rss_kib=max(r[2] for r in runs), n_pairs=runs[0][0]["n_pairs"],
        bytes_read=read,
    )


def nights(results, folder):
    """365 nights of 2^16 documents through nearprint run; a join with all of them before and after store compact."""
    place = folder / "nights"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    subprocess.run([BENCH, "nights", "--output", place / "documents"], check=True, stdout=subprocess.DEVNULL)
    job = place / "job.toml"
    job.write_text(
        f'profile = "paper"\ndocuments = "{place}/documents"\nstore = "{place}/store"\noutput = "{place}/results"\ncreate_store = true\n',
        encoding="utf-8",
    )
    seconds = []
    for night in sorted((place / "documents").iterdir()):
        date = night.name.removeprefix("dt=")
        seconds.append(run(NEARPRINT, "run", "--config", job, "--dt", date, "--json")[1])
        shutil.rmtree(night)
    results.add(operation="run", first=seconds[0], last=seconds[-1], seconds=seconds)
    generate(place / "set", 20, 16)

    def with_all():
        return [
            run(
                NEARPRINT, "join", "--queries", place / "set/queries.parquet", "--existing", place / "store", "--max-distance",
                3, "--pairs", "all", "--output", place / "out", "--replace", "--threads", 2, "--json",
            )
            for _ in range(4)
        ][1:]

    before = with_all()
    compacted, compact_seconds, compact_rss = run(NEARPRINT, "store", "compact", place / "store", "--threads", 2, "--json")
    after = with_all()
    results.add(
        operation="compact", before_seconds=statistics.median(r[1] for r in before), after_seconds=statistics.median(r[1] for r in after),
        compact_seconds=compact_seconds, compact_rss_kib=compact_rss, n_existing=before[0][0][-1]["n_existing"],
        n_pairs_before=before[0][0][-1]["n_pairs"], n_pairs_after=after[0][0][-1]["n_pairs"], summary={k: v for k, v in compacted[-1].items() if k != "store"},
    )
    shutil.rmtree(place)


def rolling(results, folder):
    """365 nights of 2^10 documents with keep_nights = 90, compacted and collected every ten nights: bytes and seconds."""
    place = folder / "rolling"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    subprocess.run(
        [BENCH, "nights", "--nights", "365", "--log-documents", "10", "--words", "60", "--repeats", "20", "--output", place / "documents"],
        check=True, stdout=subprocess.DEVNULL,
    )
    job = place / "job.toml"
    places = "".join(f'{key} = "{place}/{key}"\n' for key in ("documents", "store"))
    job.write_text(f'{places}output = "{place}/results"\ncreate_store = true\nkeep_nights = 90\n', encoding="utf-8")

    def size(*folders):
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())

    for number, night in enumerate(sorted((place / "documents").iterdir()), 1):
        lines, seconds, _ = run(NEARPRINT, "run", "--config", job, "--dt", night.name.removeprefix("dt="), "--future", "--no-breakers", "--json")
        if number % 10 == 0:
            run(NEARPRINT, "store", "compact", place / "store", "--json")
            run(NEARPRINT, "store", "gc", "--config", job, "--grace-hours", "0", "--json")
        if number % 5 == 0:
            results.add(
                night=number, seconds=seconds, store_bytes=size(place / "store"), results_bytes=size(place / "results"),
                log_bytes=size(*(place / "results").glob("*/_delta_log")), n_existing=lines[-1]["n_existing"],
            )
    shutil.rmtree(place)


def whole(results, folder):
    """2^33 x 2^20, the paper's sizes: 37 GB, once with a cold page cache and twice more."""
    place = folder / "whole"
    results.add(**generate(place, 33, 20, "--planted", 100_000))
    cold = drop_page_cache()
    for number in range(3):
        summary, seconds, rss = join(place)
        results.add(operation="join", cold=cold and number == 0, seconds=seconds, rss_kib=rss, n_pairs=summary["n_pairs"])
    results.add(**run(BENCH, "check", place / "out", "--planted", 100_000)[0][-1])


PARTS = {
    f.__name__: f
    for f in (kernels, together, growth, queries, distances, ratio, skew, peers, documents, sketches, model, nights, rolling, whole)
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for generated sets: 20 GB, for whole 40 GB")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--reference", type=Path, help="another build of nearprint, whose joins alternate with those of `distances`")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--shrink", type=int, default=0, help="what to take off the binary logarithms of the sizes, for a trial of a part")
    arguments = parser.parse_args()
    global SHRINK, REFERENCE
    SHRINK, REFERENCE = arguments.shrink, arguments.reference
    arguments.folder.mkdir(parents=True, exist_ok=True)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    for part in arguments.parts or [p for p in PARTS if p not in ("nights", "whole")]:
        PARTS[part](Results(arguments.results, part), arguments.folder)


if __name__ == "__main__":
    main()
