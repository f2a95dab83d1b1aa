"""Simulates the map tasks of a join on a cluster whose workers differ, are slow, and fail.

    cargo build --release -p nearprint-cli
    python3 evidence/scale/simulate.py target/release/nearprint evidence/scale/README.md

Sizes and durations of tasks are those of `nearprint plan --workers`; this script adds what the plan leaves out. It writes the
table of evidence/scale/README.md between its marks, and evidence/scale/simulation.jsonl and .svg. Needs matplotlib for the plot. The same
seed gives the same bytes.
"""

import argparse
import heapq
import json
import math
import random
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
DEFAULT = ["--max-distance", "12", "--sketches"]
CASES = {
    "k = 3, 10¹⁰ × 10⁶": ["--existing-rows", "10000000000", "--query-rows", "1000000", "--max-distance", "3"],
    "default, 10¹⁰ × 10⁶": ["--existing-rows", "10000000000", "--query-rows", "1000000", *DEFAULT],
    "default, 10¹⁰ × 10⁷": ["--existing-rows", "10000000000", "--query-rows", "10000000", *DEFAULT],
    "default, 10¹¹ × 10⁶": ["--existing-rows", "100000000000", "--query-rows", "1000000", *DEFAULT],
}
# The rows of the table; the plot has all.
SHOWN = (1, 10, 50, 100, 200, 1000)
START, END = "<!-- simulated -->\n", "\n<!-- /simulated -->"
# A worker is an m7a.2xlarge: 8 threads, 32 GiB.
WORKER = ["--threads", "8", "--worker-memory", "28GiB", "--bandwidth", "300MB", "--measured-over-model", "1.6"]


@dataclass(frozen=True)
class World:
    """What the plan leaves out. All values are assumptions."""

    task_spread: float = 0.15  # Standard deviation of the logarithm of a task's duration.
    worker_spread: float = 0.10  # Likewise of a worker's speed.
    slow_share: float = 0.02  # Share of the workers that are slow.
    slow_factor: float = 4.0  # How much longer a slow worker takes.
    failures_an_hour: float = 0.02  # Of each worker. Its process ends, with the outputs of its tasks.
    restart_seconds: float = 60.0  # Until there is another one, which loads the batch anew.
    speculation_quantile: float = 0.75  # spark.speculation.quantile: no task is copied before this share has ended.
    speculation_multiplier: float = 1.5  # spark.speculation.multiplier: a task is copied after so many times the median.


class Stage:
    """The map tasks of one join, on workers that take the next task when they have ended one."""

    def __init__(self, n_tasks, task_seconds, load_seconds, n_workers, world, speculates, rng):
        self.world, self.speculates, self.rng = world, speculates, rng
        self.load_seconds = load_seconds
        self.work = [task_seconds * self.varied(world.task_spread) for _ in range(n_tasks)]
        self.pace = [self.varied(world.worker_spread) * (world.slow_factor if rng.random() < world.slow_share else 1.0)
                     for _ in range(n_workers)]
        self.waiting = list(range(n_tasks - 1, -1, -1))
        self.copies = [set() for _ in range(n_tasks)]  # Workers that run the task now.
        self.done_on = [None] * n_tasks
        self.finished = [set() for _ in range(n_workers)]  # Tasks whose outputs the worker has.
        self.running = [None] * n_workers  # (task, start)
        self.life = [0] * n_workers  # Counts the worker's processes and tasks, so that events of ended ones are void.
        self.durations = []
        self.idle = set()
        self.events = []
        self.n_done = self.n_copies = self.n_failures = 0
        self.check_at = math.inf

    def varied(self, spread):
        return math.exp(self.rng.gauss(-spread * spread / 2, spread))

    def push(self, time, kind, worker):
        heapq.heappush(self.events, (time, kind, worker, self.life[worker] if worker >= 0 else 0))

    def seconds(self):
        """The time of the stage, from the first worker's loading to the end of the last task."""
        for worker in range(len(self.pace)):
            self.push(self.load_seconds * self.pace[worker], "ready", worker)
            self.fail_later(0.0, worker)
        while self.n_done < len(self.work):
            time, kind, worker, life = heapq.heappop(self.events)
            if kind == "failed":
                self.failed(time, worker)
            elif kind == "check":
                self.check_at = math.inf
                self.fill_idle(time)
            elif life == self.life[worker]:
                self.ready(time, worker) if kind == "ready" else self.ended(time, worker)
        return time

    def fail_later(self, time, worker):
        if self.world.failures_an_hour > 0:
            after = self.rng.expovariate(self.world.failures_an_hour / 3600)
            heapq.heappush(self.events, (time + after, "failed", worker, 0))

    def ready(self, time, worker):
        self.idle.add(worker)
        self.fill_idle(time)

    def ended(self, time, worker):
        task, start = self.running[worker]
        self.running[worker] = None
        self.copies[task].discard(worker)
        self.durations.append(time - start)
        self.done_on[task] = worker
        self.finished[worker].add(task)
        self.n_done += 1
        for other in sorted(self.copies[task]):
            self.running[other] = None
            self.life[other] += 1
            self.idle.add(other)
        self.copies[task].clear()
        self.life[worker] += 1
        self.idle.add(worker)
        self.fill_idle(time)

    def failed(self, time, worker):
        self.n_failures += 1
        self.life[worker] += 1
        self.idle.discard(worker)
        lost = sorted(self.finished[worker])
        self.finished[worker].clear()
        for task in lost:
            self.done_on[task] = None
            self.n_done -= 1
        if self.running[worker]:
            task, _ = self.running[worker]
            self.running[worker] = None
            self.copies[task].discard(worker)
            if not self.copies[task]:
                lost.append(task)
        self.waiting.extend(reversed(lost))
        self.push(time + self.world.restart_seconds + self.load_seconds * self.pace[worker], "ready", worker)
        self.fail_later(time, worker)
        self.fill_idle(time)

    def start(self, time, worker, task):
        self.idle.discard(worker)
        self.running[worker] = (task, time)
        self.copies[task].add(worker)
        self.push(time + self.work[task] * self.pace[worker], "ended", worker)

    def fill_idle(self, time):
        while self.idle and self.waiting:
            self.start(time, min(self.idle), self.waiting.pop())
        if not (self.idle and self.speculates and self.n_done >= self.world.speculation_quantile * len(self.work)):
            return
        median = statistics.median_low(sorted(self.durations))
        due = sorted((start, task, worker) for worker, held in enumerate(self.running) if held for task, start in [held]
                     if len(self.copies[task]) == 1)
        for start, task, _ in due:
            if not self.idle:
                return
            at = start + self.world.speculation_multiplier * median
            if at > time:
                if at < self.check_at:
                    self.check_at = at
                    heapq.heappush(self.events, (at, "check", -1, 0))
                return
            self.n_copies += 1
            self.start(time, min(self.idle), task)


def planned(binary, case, workers):
    command = [binary, "plan", "--json", "--self", *CASES[case], "--workers", str(workers), *WORKER]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def simulated(plan, workers, world, speculates, rounds, seed):
    """Medians and 95th percentiles of the whole join."""
    of = plan["seconds"]
    task_seconds = max(of["map"], of["read"]) / plan["tasks_of_worker"]
    around = of["shuffle"] + of["driver"] + of["engine"]
    times, copies, failures = [], 0, 0
    for number in range(rounds):
        # Both ways see the same workers and tasks.
        rng = random.Random(f"{seed} {workers} {number}")
        stage = Stage(plan["n_tasks"], task_seconds, of["load"], workers, world, speculates, rng)
        times.append(stage.seconds() + around)
        copies += stage.n_copies
        failures += stage.n_failures
    return {"median": statistics.median(times), "p95": percentile(times, 0.95), "copies": copies / rounds, "failures": failures / rounds}


def measure(binary, rounds, seed):
    rows = []
    for case in CASES:
        for workers in WORKERS:
            plan = planned(binary, case, workers)
            row = {"case": case, "workers": workers, "n_tasks": plan["n_tasks"], "planned": plan["seconds"]["total"]}
            for speculates in (False, True):
                row["speculation" if speculates else "plain"] = simulated(plan, workers, World(), speculates, rounds, seed)
            rows.append(row)
    for row in rows:
        alone = next(r for r in rows if r["case"] == row["case"] and r["workers"] == 1)
        for way in ("plain", "speculation"):
            # The work is what one worker would take that never fails and is as fast as the plan says.
            row[way]["efficiency"] = alone["planned"] / (row["workers"] * row[way]["median"])
    return rows


def draw(rows, path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "nearprint", "axes.grid": True, "grid.alpha": 0.3, "figure.figsize": (9.6, 4)})
    figure, (times, shares) = plt.subplots(1, 2)
    for case, colour in zip(CASES, ("tab:blue", "tab:orange", "tab:green", "tab:red")):
        of_case = [row for row in rows if row["case"] == case]
        workers = [row["workers"] for row in of_case]
        for way, style in (("speculation", "-"), ("plain", "--")):
            label = case if way == "speculation" else f"{case}, no copies"
            times.plot(workers, [row[way]["median"] for row in of_case], style, color=colour, marker="o", markersize=3, label=label)
            shares.plot(workers, [100 * row[way]["efficiency"] for row in of_case], style, color=colour, marker="o", markersize=3)
        low, high = ([row["speculation"][of] for row in of_case] for of in ("median", "p95"))
        times.fill_between(workers, low, high, color=colour, alpha=0.2, linewidth=0)
        times.plot(workers, [row["planned"] for row in of_case], ":", color=colour)
    for axes, label in ((times, "seconds of the join"), (shares, "efficiency, %")):
        axes.set_xscale("log")
        axes.set_xlabel("workers of 8 threads")
        axes.set_ylabel(label)
    times.set_yscale("log")
    shares.set_ylim(0, 105)
    times.legend(fontsize=7)
    times.set_title("median, to the 95th percentile; dotted: the plan", fontsize=9)
    shares.set_title("work of one worker / time of all workers", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def in_table(rows):
    lines = ["| | workers | tasks | plan | median | 95 % | without copies: median | 95 % | efficiency |", "|---|---|---|---|---|---|---|---|---|"]
    for row in (row for row in rows if row["workers"] in SHOWN):
        copied, plain = row["speculation"], row["plain"]
        cells = [row["case"] if row["workers"] == 1 else "", f"{row['workers']:,}", f"{row['n_tasks']:,}", f"{row['planned']:,.0f} s",
                 f"{copied['median']:,.0f} s", f"{copied['p95']:,.0f} s", f"{plain['median']:,.0f} s", f"{plain['p95']:,.0f} s",
                 f"{100 * copied['efficiency']:.0f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the command nearprint")
    parser.add_argument("page", type=Path, help="evidence/scale/README.md")
    parser.add_argument("--rounds", type=int, default=100, help="simulations of each point (default: 100)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = measure(arguments.binary, arguments.rounds, arguments.seed)
    folder = arguments.page.parent
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / "simulation.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw(rows, folder / "simulation.svg")
    before, rest = arguments.page.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    arguments.page.write_text(f"{before}{START}\n{in_table(rows)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
