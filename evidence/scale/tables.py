"""Writes the tables of evidence/scale between their marks. All figures are those of `nearprint plan --workers`.

    cargo build --release -p nearprint-cli
    python3 evidence/scale/tables.py target/release/nearprint evidence/scale/README.md
"""

import argparse
import json
import subprocess
from pathlib import Path

GIB = 2**30

# Dollars an hour, on demand, Linux, us-east-1. evidence/scale says where they are from, and that they are to be checked.
# name: (dollars, threads, memory, bytes a second from storage). A tenth of the memory is left to the system and the
# executor's virtual machine, and a third of the network to everything else.
WORKERS = {
    "m7a.8xlarge": (1.85472, 32, 128 * GIB, 1.0e9),
    "r7a.8xlarge": (2.4344, 32, 256 * GIB, 1.0e9),
    "r7a.16xlarge": (4.8688, 64, 512 * GIB, 2.0e9),
    "r7a.48xlarge": (14.6064, 192, 1536 * GIB, 4.0e9),
}
DRIVERS = {
    "m7a.2xlarge": (0.46368, 32 * GIB),
    "r7a.4xlarge": (1.2172, 128 * GIB),
    "r7a.8xlarge": (2.4344, 256 * GIB),
    "r7a.16xlarge": (4.8688, 512 * GIB),
    "r7a.48xlarge": (14.6064, 1536 * GIB),
}
GET_DOLLARS = 0.4e-6
START_SECONDS = 120  # Machines are paid for while they start.
USABLE = 0.9

# The time of a worker over that of the cost model: a core of the machine of evidence/benchmarks.
SPEED = 1.6
N_WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
WANTED_SECONDS = 1800
NEARLY = 1.2

EXISTING = (10**9, 10**10, 10**11)
QUERIES = (10**6, 10**7, 10**8, 10**9)
PROFILES = {"k = 3": ["--max-distance", "3"], "default": ["--max-distance", "12", "--sketches"]}


class Planner:
    """Calls `nearprint plan`, and holds what it said."""

    def __init__(self, binary):
        self.binary = binary
        self.said = {}

    def plan(self, existing, queries, distances, instance, workers):
        """The plan, or None if a worker cannot hold the batch and its tables."""
        key = (existing, queries, tuple(distances), instance, workers)
        if key not in self.said:
            _, threads, memory, bandwidth = WORKERS[instance]
            command = [self.binary, "plan", "--json", "--self", "--existing-rows", existing, "--query-rows", queries, *distances,
                       "--workers", workers, "--threads", threads, "--worker-memory", int(USABLE * memory),
                       "--bandwidth", int(bandwidth), "--measured-over-model", SPEED]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
            if done.returncode not in (0, 78):
                raise SystemExit(done.stderr)
            self.said[key] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
        return self.said[key]

    def cheapest(self, existing, queries, distances):
        """The cheapest cluster that is done within half an hour, or nearly as soon as the fastest; None if none holds it."""
        found = [(instance, plan) for instance in WORKERS for workers in N_WORKERS
                 if (plan := self.plan(existing, queries, distances, instance, workers))]
        if not found:
            return None
        soon = max(WANTED_SECONDS, NEARLY * min(plan["seconds"]["total"] for _, plan in found))
        return min((one for one in found if one[1]["seconds"]["total"] <= soon), key=lambda one: dollars_of(*one))


def driver_of(plan):
    fits = (name for name, (_, memory) in DRIVERS.items() if plan["bytes"]["driver_memory"] <= USABLE * memory)
    return next(fits, None)


def dollars_of(instance, plan):
    hours = (plan["seconds"]["total"] + START_SECONDS) / 3600
    driver = driver_of(plan)
    an_hour = plan["workers"] * WORKERS[instance][0] + (DRIVERS[driver][0] if driver else 0)
    return an_hour * hours + plan["requests"] * GET_DOLLARS


def raised(exponent):
    return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def power(n):
    """10⁹ for 1000000000."""
    return raised(len(str(n)) - 1)


def of_bytes(n):
    for size, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if n >= size:
            return f"{n / size:.3g} {unit}" if n < 1000 * size else f"{n / size:,.0f} {unit}"
    return f"{n:,.0f} bytes"


def of_seconds(seconds):
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}" if seconds < 10 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s"


def of_count(n):
    if n < 1e6:
        return f"{n:,.0f}"
    digits, exponent = f"{n:.1e}".split("e")
    return f"{digits} · {raised(int(exponent))}"


def of_dollars(dollars):
    return f"${dollars:,.2f}" if dollars < 10 else f"${dollars:,.0f}"


LIMITS = {
    "batch_to_workers": "batch to workers", "tables_on_workers": "tables", "storage_bandwidth": "storage",
    "storage_requests": "requests", "processors": "processors", "shuffle": "shuffle", "driver": "driver", "engine": "engine",
}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def nights(planner, profile):
    rows = []
    for existing in EXISTING:
        for queries in QUERIES:
            found = planner.cheapest(existing, queries, PROFILES[profile])
            sizes = [f"{power(existing)} × {power(queries)}"]
            if found is None:
                rows.append(sizes + ["no instance holds the batch and its tables"] + [""] * 8)
                continue
            instance, plan = found
            of, driver = plan["bytes"], driver_of(plan)
            rows.append(sizes + [
                f"{plan['workers']} {instance}",
                str(plan["n_parts"]),
                of_bytes(of["read"]),
                of_bytes(of["shuffled"]),
                of_bytes(of["worker_memory"]),
                of_bytes(of["driver_memory"]) + (f", {driver}" if driver else ", no instance"),
                of_seconds(plan["seconds"]["total"]),
                of_dollars(dollars_of(instance, plan)),
                LIMITS[plan["limit"]],
            ])
    head = ["existing × new", "workers", "parts", "read", "shuffled", "a worker holds", "the driver holds", "time", "a night", "waits for"]
    return table(head, rows)


def steps(planner):
    rows = []
    for profile, distances in PROFILES.items():
        for queries in (10**6, 10**8):
            instance, plan = planner.cheapest(10**10, queries, distances)
            of = plan["seconds"]
            names = ("load", "read", "map", "shuffle", "driver", "engine", "total")
            rows.append([f"10¹⁰ × {power(queries)}, {profile}", f"{plan['workers']} {instance}"] + [of_seconds(of[name]) for name in names])
    return table(["existing × new", "workers", "load", "read", "map", "shuffle", "driver", "engine", "whole"], rows)


def distances(planner):
    rows = []
    for k in (3, 6, 8, 10, 12):
        plans = [planner.plan(existing, 10**7, ["--max-distance", str(k), "--sketches"], "m7a.8xlarge", 10) for existing in EXISTING]
        cells = [f"{of_seconds(plan['seconds']['total'])}" for plan in plans]
        rows.append([str(k), *cells, of_count(plans[1]["chance_pairs"])])
    return table(["k", "10⁹ × 10⁷", "10¹⁰ × 10⁷", "10¹¹ × 10⁷", "candidates by chance at 10¹⁰ × 10⁷"], rows)


def candidates(planner):
    rows = []
    for existing in EXISTING:
        cells = []
        for queries in QUERIES:
            plan = planner.plan(existing, queries, PROFILES["default"], "r7a.48xlarge", 500)
            cells.append(of_count(plan["chance_pairs"]) if plan else "")
        rows.append([power(existing), *cells])
    return table(["existing", *(f"{power(queries)} new" for queries in QUERIES)], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command nearprint")
    parser.add_argument("page", type=Path, help="evidence/scale/README.md")
    arguments = parser.parse_args()
    planner = Planner(arguments.binary)
    made = {
        "k3": lambda: nights(planner, "k = 3"),
        "default": lambda: nights(planner, "default"),
        "steps": lambda: steps(planner),
        "distances": lambda: distances(planner),
        "candidates": lambda: candidates(planner),
    }
    page = arguments.page.read_text(encoding="utf-8")
    for name, make in made.items():
        start, end = f"<!-- made: {name} -->\n", f"\n<!-- /made: {name} -->"
        before, rest = page.split(start)
        _, after = rest.split(end)
        page = f"{before}{start}\n{make()}\n{end}{after}"
    arguments.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
