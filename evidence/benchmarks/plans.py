#!/usr/bin/env python3
"""plans.py: how far the plan that is chosen is from the best one, and the times of the cost model's steps that fit a kernel best.

    plans.py measure --bench FILE --results FILE.jsonl [--rounds 3] [--kernel NAME...] [--within 4] [--most 5]
    plans.py report --results FILE.jsonl
    plans.py fit --results FILE.jsonl

`measure` maps pieces of random sets by all threads together (`nearprint-bench kernels --together`), for a grid of sizes and distances, by each kernel
and each plan whose estimate is within a factor of the best. `report` prints, for each kernel, the ratio of the measured time of the plan with the least
estimate to that of the fastest plan. `fit` finds the times of the steps (`StepTimes` in crates/join/src/plan/cost.rs) by which the plans that are chosen
are nearest to the fastest ones, and prints the same ratios for them: the sets of every second size and distance take part in the fit, and the
others do not. Needs numpy; `fit` needs scipy.
"""

import argparse
import itertools
import json
import subprocess
from collections import defaultdict
from pathlib import Path

import numpy as np

LOG_EXISTING = (22, 26, 29, 31, 33)
LOG_QUERIES = (16, 18, 20)
DISTANCES = (2, 3, 4, 6, 8)
KEPT = ("kernel", "log_existing", "log_queries", "max_distance", "prefix_distances", "estimated_ns", "ns_per_fingerprint", "steps")
STEPS = ("sort", "pass", "select_call", "select_vector", "fan_query", "fan_range", "fan_copy", "leaf_call", "pair_vector", "lanes", "lanes_byte")
# The times that the model had for all kernels, from which a fit moves only as far as measurements ask for it.
BEFORE = np.array([6.0, 0.4, 7.0, 1.45, 3.0, 1.5, 0.45, 11.0, 0.85, 7.2, 0.3])


def measure(args: argparse.Namespace) -> None:
    with args.results.open("a", encoding="utf-8") as results:
        for _, existing, queries, distance in itertools.product(range(args.rounds), LOG_EXISTING, LOG_QUERIES, DISTANCES):
            for kernel in args.kernel:
                command = [args.bench, "kernels", "--together", "--no-reference", "--kernel", kernel, "--within", str(args.within), "--most", str(args.most)]
                command += ["--log-existing", str(existing), "--log-queries", str(queries), "--max-distance", str(distance), "--log-piece", "22", "--pieces", "4"]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                for line in done.stdout.splitlines():
                    row = json.loads(line)
                    results.write(json.dumps({name: row[name] for name in KEPT}) + "\n")
                results.flush()


def read(path: Path) -> dict[str, dict[tuple[int, int, int], list[dict]]]:
    """The measured plans by kernel, and by size of both sides and distance. Of a plan that was measured in several rounds, the least time
    counts: whatever else the machine does only adds to it."""
    of_kernels: dict = defaultdict(lambda: defaultdict(dict))
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        plans = of_kernels[row["kernel"]][row["log_existing"], row["log_queries"], row["max_distance"]]
        known = plans.setdefault(tuple(row["prefix_distances"]), row)
        known["ns_per_fingerprint"] = min(known["ns_per_fingerprint"], row["ns_per_fingerprint"])
    return {kernel: {size: list(plans.values()) for size, plans in sizes.items()} for kernel, sizes in of_kernels.items()}


def is_fitted(size: tuple[int, int, int]) -> bool:
    existing, queries, distance = size
    return (LOG_EXISTING.index(existing) + LOG_QUERIES.index(queries) + DISTANCES.index(distance)) % 2 == 0


def ratios(sizes: dict, estimate) -> dict:
    """For each size, the measured time of the plan with the least estimate over that of the fastest plan."""
    found = {}
    for size, plans in sizes.items():
        chosen = min(plans, key=estimate)
        found[size] = chosen["ns_per_fingerprint"] / min(plan["ns_per_fingerprint"] for plan in plans)
    return found


def show(name: str, found: dict) -> None:
    values = np.array(list(found.values()))
    worst = sorted(found, key=found.get, reverse=True)[:3]
    places = ", ".join(f"2^{f} x 2^{b} at k = {k}: {found[f, b, k]:.2f}" for f, b, k in worst)
    print(f"{name}: {len(values)} sizes, mean {values.mean():.3f}, within 10 % {np.mean(values <= 1.1):.0%}, worst {values.max():.2f} ({places})")


def report(args: argparse.Namespace) -> None:
    for kernel, sizes in read(args.results).items():
        show(kernel, ratios(sizes, lambda plan: plan["estimated_ns"]))


def regret(logs: np.ndarray, sizes: list[list[dict]], warmth: float) -> float:
    """How much slower, as a logarithm, the plans are that times of the steps choose; plans whose estimates are about equal share a choice, so that it has a
    slope. Estimates that are off by other factors than their neighbours, and times far from `BEFORE`, count against the times as well, but far less."""
    times, total = BEFORE * np.exp(logs), 0.0
    for plans in sizes:
        estimates = np.log([np.dot(plan["steps"], times) for plan in plans])
        measured = np.log([plan["ns_per_fingerprint"] for plan in plans])
        weights = np.exp((estimates.min() - estimates) / warmth)
        total += np.average(measured - measured.min(), weights=weights) + 0.3 * np.var(estimates - measured)
    return total / len(sizes) + 0.003 * np.mean(logs**2)


def fit(args: argparse.Namespace) -> None:
    from scipy.optimize import minimize

    for kernel, sizes in read(args.results).items():
        fitted = [plans for size, plans in sizes.items() if is_fitted(size)]
        logs = np.zeros(len(STEPS))
        for warmth in (0.2, 0.1, 0.05):
            logs = minimize(regret, logs, (fitted, warmth), method="L-BFGS-B", bounds=[(-2.5, 2.5)] * len(STEPS), options={"maxiter": 150}).x
        times = BEFORE * np.exp(logs)
        # Only proportions matter: sorting stays as it was.
        shown = times * BEFORE[0] / times[0]
        print(f"{kernel}: [{', '.join(f'{time:.4g}' for time in shown)}]  # {', '.join(STEPS)}")
        for name, chosen in (("fitted", True), ("held aside", False)):
            part = {size: plans for size, plans in sizes.items() if is_fitted(size) == chosen}
            show(f"  {name}, before", ratios(part, lambda plan: float(np.dot(BEFORE, plan["steps"]))))
            show(f"  {name}, after", ratios(part, lambda plan, times=times: float(np.dot(times, plan["steps"]))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("measure", measure), ("report", report), ("fit", fit)):
        command = commands.add_parser(name)
        command.add_argument("--results", type=Path, required=True)
        command.set_defaults(run=run)
        if name == "measure":
            command.add_argument("--bench", required=True)
            command.add_argument("--kernel", nargs="+", default=["avx2", "avx512"])
            command.add_argument("--rounds", type=int, default=3)
            command.add_argument("--within", type=float, default=4.0)
            command.add_argument("--most", type=int, default=5)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
