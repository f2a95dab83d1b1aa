"""Measures joins and nights on S3 beside a bare reader of the same objects; appends JSON lines and prints tables in Markdown.

    sudo bash scripts/install-rgw.sh
    python3 evidence/benchmarks/s3.py --folder /a/disk/with/6GB --results evidence/benchmarks/results.jsonl

Starts Ceph's gateway (scripts/start-rgw.sh), uploads what it generates, and stops the gateway at the end. Needs release builds of nearprint
and nearprint-bench below target/ or CARGO_TARGET_DIR. All times are of whole processes, which alternate. Requests are those of the gateway's
own log; their number must equal the one that nearprint prints. --tables prints the last run of the results, measuring nothing.

Gateway and programs run on the same machine, in three ways. `shared`: both use all cores. `apart`: the gateway has one core, and each program
has another. `delayed`: as shared, but the gateway sees each request so many milliseconds late, as from a distant server.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

from measure import BENCH, NEARPRINT, ROOT, Results

BUCKET = "s3://nearprint-bench"
CORES = sorted(os.sched_getaffinity(0))
TICKS = os.sysconf("SC_CLK_TCK")
# What the gateway logs of a request, at the end of it.
LOGGED = re.compile(
    r'^(\S+) .* beast: \S+ \S+ - \S+ \[[^]]*\] "(\S+) (\S+) HTTP/1.1" (\d+) (\d+) - "[^"]*" (\S+)(?: (\S+))? latency=([\d.]+)s'
)
SIZES = (("< 64 KiB", 64 << 10), ("64 KiB to 1 MiB", 1 << 20), ("1 to 4 MiB", 4 << 20), (">= 4 MiB", None))


class Gateway:
    """The S3 server, its processor time and its log."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        script = ROOT / "scripts/start-rgw.sh"
        done = subprocess.run(["bash", script, folder, str(port), BUCKET.removeprefix("s3://")], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"start-rgw.sh: exit {done.returncode}\n{done.stderr}")
        given = dict(line.split("=", 1) for line in done.stdout.splitlines())
        self.environment = {name: value for name, value in given.items() if name.startswith("AWS_")}
        self.endpoint = given["NEARPRINT_TEST_S3_ENDPOINT"]
        self.log = folder / "log/client.rgw.log"
        names = ("client.rgw", "osd.0", "mon.a")
        self.pids = [int((folder / "run" / f"{name}.pid").read_text(encoding="ascii")) for name in names]

    def stop(self):
        subprocess.run(["bash", ROOT / "scripts/stop-rgw.sh", self.folder], check=True)

    def cpu_seconds(self):
        stats = (Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split() for pid in self.pids)
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICKS

    def use(self, cores):
        for pid in self.pids:
            for task in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(task), cores)


class Relay:
    """Passes connections on to a port; what the client sends arrives late."""

    def __init__(self, port, milliseconds):
        self.port, self.seconds = port, milliseconds / 1e3
        self.loop = asyncio.new_event_loop()
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 20))
        self.endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def serve(self, reader, writer):
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        await asyncio.gather(self.forward(reader, to_server, self.seconds), self.forward(from_server, writer, 0), return_exceptions=True)

    async def forward(self, reader, writer, seconds):
        try:
            while data := await reader.read(1 << 20):
                if seconds:
                    self.loop.call_later(seconds, writer.write, data)
                else:
                    writer.write(data)
                    await writer.drain()
        finally:
            self.loop.call_later(seconds, writer.close)


class Machine:
    """Runs programs against the gateway in one of the three ways."""

    def __init__(self, gateway, way, milliseconds):
        self.gateway, self.way = gateway, way
        apart = way == "apart"
        gateway.use(CORES[:1] if apart else CORES)
        self.cores = CORES[1:2] if apart else CORES
        self.endpoint = Relay(gateway.port, milliseconds).endpoint if way == "delayed" else gateway.endpoint
        self.threads = len(self.cores)

    def run(self, *command):
        """Runs a command; gives its last line of JSON, seconds, processor seconds, peak memory, and its requests."""
        gateway = self.gateway
        at, served = gateway.log.stat().st_size, gateway.cpu_seconds()
        environment = {**os.environ, **gateway.environment, "AWS_ENDPOINT_URL": self.endpoint}
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            started = time.monotonic()
            process = subprocess.Popen(
                [*map(str, command)], stdout=out, stderr=err, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, self.cores)
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            if process.returncode != 0:
                sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode}\n{out.read()}{err.read()}")
            line = json.loads(next(line for line in reversed(out.readlines()) if line.startswith("{")))
        found = {
            "seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime, "gateway_cpu_seconds": gateway.cpu_seconds() - served,
            "rss_kib": usage.ru_maxrss,
        }
        n_requests = line.get("n_requests", sum(line.get("requests", {}).get(kind, 0) for kind in KINDS))
        return line, found, logged(gateway.log, at, n_requests + (line.get("operation") == "s3-read"))


KINDS = ("get", "head", "list", "put", "delete", "post")


def logged(log, at, n_expected):
    """The requests in the log from a position on, which is written a little later than they are answered."""
    deadline = time.monotonic() + 5
    while True:
        with open(log, encoding="utf-8", errors="replace") as file:
            file.seek(at)
            found = [request(match) for match in map(LOGGED.match, file) if match]
        if len(found) >= n_expected or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    # Local joins send none, and a listing may have several pages.
    if len(found) < n_expected:
        sys.exit(f"{log} has {len(found)} requests from byte {at} on, not {n_expected}")
    return found


def request(match):
    at, method, path, status, n_bytes, asked, _, latency = match.groups()
    place, _, query = path.partition("?")
    kind = method
    if method == "GET" and ("list-type=" in query or "uploads" in query):
        kind = "LIST"
    elif method == "GET":
        kind = "GET, a range" if asked.startswith("bytes=") else "GET, whole"
    elif "partNumber=" in query:
        kind = "PUT, a part"
    end = datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%f%z")
    return {
        "kind": kind, "path": place, "status": int(status), "bytes": int(n_bytes), "range": asked,
        "began": (end - timedelta(seconds=float(latency))).timestamp(), "ended": end.timestamp(),
    }


def counted(requests):
    """Requests by kind and size, their bytes, and how many reads were under way at once."""
    by_kind = {}
    for one in requests:
        size = next(name for name, below in SIZES if below is None or one["bytes"] < below)
        of_kind = by_kind.setdefault(one["kind"], {"n": 0, "bytes": 0, **{name: 0 for name, _ in SIZES}})
        of_kind["n"] += 1
        of_kind["bytes"] += one["bytes"]
        of_kind[size] += 1
    # The clock of the log has steps of some milliseconds, so small reads count for nothing here.
    reads = [one for one in requests if one["kind"] == "GET, a range" and one["bytes"] >= 1 << 20]
    steps = sorted([(one["began"], 1) for one in reads] + [(one["ended"], -1) for one in reads])
    most, now, busy, area, last = 0, 0, 0.0, 0.0, None
    for moment, step in steps:
        if last is not None and now > 0:
            busy += moment - last
            area += now * (moment - last)
        last, now = moment, now + step
        most = max(most, now)
    return {"by_kind": by_kind, "most_reads_at_once": most, "reads_at_once": round(area / busy, 1) if busy else None}


def medians(rounds):
    return {key: statistics.median(found[key] for found in rounds) for key in rounds[0]}


def alternating(machine, rounds, commands):
    """Runs each of the commands, in turn, once to warm up and then so many rounds, or fewer where it takes minutes; gives its last line,
    medians, the number of rounds that count, and requests."""
    runs = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            if number < 2 or sum(found["seconds"] for _, found, _ in runs[name]) < 60:
                runs[name].append(machine.run(*command))
    counting = {name: [found for _, found, _ in each[1:]] for name, each in runs.items()}
    return {name: (each[-1][0], {"rounds": len(counting[name]), **medians(counting[name])}, each[-1][2]) for name, each in runs.items()}


def join(queries, existing, output, k, sketch_distance, threads):
    command = [
        NEARPRINT, "join", "--queries", queries, "--existing", existing, "--max-distance", k, "--pairs", "all", "--output", output,
        "--replace", "--threads", threads, "--json",
    ]
    return command + ["--max-sketch-distance", sketch_distance] * (sketch_distance is not None)


def joins(results, args, machine, folder, name, distances):
    """The same set from S3 and from local disk, and a bare reader of its objects."""
    local, remote = folder / name, f"{BUCKET}/{name}"
    made = json.loads((local / "made.json").read_text(encoding="utf-8"))
    commands = {"bare": [BENCH, "s3-read", f"{remote}/existing", f"{remote}/queries.parquet", "--threads", machine.threads]}
    for k, sketch_distance in distances:
        label = f"k = {k}" + (f", sketches within {sketch_distance}" if sketch_distance is not None else "")
        for place, output in ((remote, f"{BUCKET}/out/{name}"), (local, local / "out")):
            command = join(f"{place}/queries.parquet", f"{place}/existing", output, k, sketch_distance, machine.threads)
            commands[f"{label}, {'S3' if place is remote else 'local'}"] = command
    found = alternating(machine, args.rounds, commands)
    bare = found["bare"][1]["seconds"]
    for label, (line, median, requests) in found.items():
        known = {key: line[key] for key in ("n_pairs", "n_bytes", "mb_per_second") if key in line}
        results.add(
            operation="bare" if label == "bare" else "join", set=name, way=machine.way, label=label, threads=machine.threads,
            log_existing=made["log_existing"], log_queries=made["log_queries"], object_bytes=found["bare"][0]["n_bytes"],
            **median, ratio=bare / median["seconds"], **known, **counted(requests),
        )


def write_job(path, documents, root):
    places = {"documents": documents, "store": f"{root}/store", "output": f"{root}/results"}
    path.write_text("".join(f'{key} = "{place}"\n' for key, place in places.items()) + "create_store = true\n", encoding="utf-8")


def nights(results, args, machine, folder):
    """Nights whose documents, store and results are on S3, and the same nights on local disk; a bare reader of documents and store."""
    place = folder / "nights"
    stores = {"S3": f"{BUCKET}/nights-{machine.way}", "local": place}
    shutil.rmtree(place / "store", ignore_errors=True)
    shutil.rmtree(place / "results", ignore_errors=True)
    jobs = {}
    for name, root in stores.items():
        jobs[name] = place / f"{name}.toml"
        documents = f"{BUCKET}/documents" if name == "S3" else place / "documents"
        write_job(jobs[name], documents, root)
    rounds = {"bare": [], "S3": [], "local": []}
    for number, date in enumerate(sorted(path.name.removeprefix("dt=") for path in (place / "documents").iterdir())):
        if number > 0:
            prefixes = [f"{BUCKET}/documents/dt={date}", f"{stores['S3']}/store"]
            rounds["bare"].append(machine.run(BENCH, "s3-read", *prefixes, "--threads", machine.threads))
        for name, job in jobs.items():
            rounds[name].append(machine.run(NEARPRINT, "run", "--config", job, "--dt", date, "--threads", machine.threads, "--json"))
    rounds = {name: runs if name == "bare" else runs[1:] for name, runs in rounds.items()}
    bare = statistics.median(found["seconds"] for _, found, _ in rounds["bare"])
    for name, runs in rounds.items():
        median = medians([found for _, found, _ in runs])
        results.add(
            operation="bare" if name == "bare" else "night", set="nights", way=machine.way,
            label=name if name == "bare" else f"night, {name}", threads=machine.threads, log_documents=args.log_documents, object_bytes=rounds["bare"][-1][0]["n_bytes"], rounds=len(runs),
            **median, ratio=bare / median["seconds"], **counted(runs[-1][2]),
        )


def history(results, args, machine, folder):
    """A small night after many others, whose files it has to open. The store of the others is made on local disk and uploaded."""
    place, root = folder / "history", f"{BUCKET}/history-{machine.way}"
    dates = sorted(path.name.removeprefix("dt=") for path in (place / "documents").iterdir())
    last = {}
    for name, where in (("local", place), ("S3", root)):
        job = place / f"{name}.toml"
        write_job(job, place / "documents", where)
        last[name] = [NEARPRINT, "run", "--config", job, "--dt", dates[-1], "--replace", "--threads", machine.threads, "--json"]
    if not (place / "store").exists():
        for date in dates[:-1]:
            machine.run(NEARPRINT, "run", "--config", place / "local.toml", "--dt", date, "--json")
    machine.run(BENCH, "s3-upload", place / "store", f"{root}/store")
    for name, (_, median, requests) in alternating(machine, args.rounds, last).items():
        results.add(
            operation="history", set="history", way=machine.way, label=f"night {len(dates)}, {name}", n_nights=len(dates),
            log_documents=args.log_history_documents, threads=machine.threads, **median, **counted(requests),
        )


def generate(args, folder, machine):
    """Generates and uploads the sets."""
    sets = {"plain": (26, 20, []), "few": (28, 12, []), "sketches": (24, 18, ["--sketches"])}
    for name, (log_existing, log_queries, more) in sets.items():
        log_existing, log_queries = log_existing - args.shrink, log_queries - args.shrink
        shutil.rmtree(folder / name, ignore_errors=True)
        machine.run(BENCH, "generate", "--log-existing", log_existing, "--log-queries", log_queries, "--output", folder / name, *more)
        machine.run(BENCH, "s3-upload", folder / name, f"{BUCKET}/{name}")
        made = {"log_existing": log_existing, "log_queries": log_queries}
        (folder / name / "made.json").write_text(json.dumps(made), encoding="utf-8")
    documents = {"nights": (args.nights, args.log_documents), "history": (args.history, args.log_history_documents)}
    for name, (n_nights, log_documents) in documents.items():
        shutil.rmtree(folder / name, ignore_errors=True)
        command = [BENCH, "nights", "--nights", n_nights, "--log-documents", log_documents, "--words", 200, "--repeats", 20]
        subprocess.run([*map(str, command), "--output", folder / name / "documents"], check=True, stdout=subprocess.DEVNULL)
    machine.run(BENCH, "s3-upload", folder / "nights/documents", f"{BUCKET}/documents")


def measure(args):
    # The gateway is to end with the script, whatever ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = Results(args.results, "s3")
    folder = args.folder
    folder.mkdir(parents=True, exist_ok=True)
    results.add(operation="begin", began=time.strftime("%Y-%m-%dT%H:%M:%S"), milliseconds=args.milliseconds, shrink=args.shrink)
    gateway = Gateway(folder / "gateway", args.port)
    try:
        generate(args, folder, Machine(gateway, "shared", 0))
        for way in args.ways:
            machine = Machine(gateway, way, args.milliseconds)
            joins(results, args, machine, folder, "plain", [(3, None)])
            joins(results, args, machine, folder, "few", [(3, None)])
            # At the default distance the processor decides, wherever the gateway is.
            if way == "shared":
                default = [(args.max_distance, None), (args.max_distance, args.max_sketch_distance)]
                joins(results, args, machine, folder, "sketches", default)
            nights(results, args, machine, folder)
            if way != "apart":
                history(results, args, machine, folder)
    finally:
        gateway.stop()
        for name in ("plain", "few", "sketches", "nights", "history", "gateway"):
            shutil.rmtree(folder / name, ignore_errors=True)


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def log2(exponent):
    return "2" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(exponent))


def title(line):
    if "log_documents" in line:
        return f"nights of {log2(line['log_documents'])} documents"
    return f"{log2(line['log_existing'])} × {log2(line['log_queries'])}" + (", with sketches" if line["set"] == "sketches" else "")


def print_tables(path):
    lines = [line for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()) if line["part"] == "s3"]
    begin = max(i for i, line in enumerate(lines) if line["operation"] == "begin")
    lines = lines[begin + 1 :]
    for way in dict.fromkeys(line["way"] for line in lines):
        print(f"{way}:\n")
        rows = []
        for line in (line for line in lines if line["way"] == way):
            twin = way, line["set"], line["label"].replace("S3", "local")
            local = [other["seconds"] for other in lines if (other["way"], other["set"], other["label"]) == twin]
            of_local = f"{line['seconds'] / local[0]:.2f}" if line["label"].endswith("S3") else ""
            # No program can be faster than its reads, its work without them, or all processor time on all cores.
            least = ""
            if local and line["operation"] in ("join", "night") and line["label"].endswith("S3"):
                cores = 1 if way == "apart" else len(CORES)
                shared_cpu = line["cpu_seconds"] + (0 if way == "apart" else line["gateway_cpu_seconds"])
                seconds = line["seconds"]
                least = f"{max(line['ratio'] * seconds, local[0], shared_cpu / cores) / seconds:.2f}"
            cores = f"{line['cpu_seconds']:.2f}", f"{line['gateway_cpu_seconds']:.2f}"
            ratio = f"{line['ratio']:.2f}" if line["label"].endswith("S3") and "ratio" in line else ""
            rows.append([title(line), line["label"], f"{line['seconds']:.2f}", ratio, of_local, least, *cores, f"{line['rss_kib'] / 1024:.0f}"])
        table(["set", "", "seconds", "bare / this", "S3 / local", "least / this", "its processor s", "the gateway's", "peak MiB"], rows)
    shared = [line for line in lines if line["way"] == lines[0]["way"] and line["by_kind"]]
    rows = []
    for line in shared:
        for kind, n in sorted(line["by_kind"].items()):
            at_once = f"{line['most_reads_at_once']} ({line['reads_at_once']})" if kind == "GET, a range" else ""
            rows.append([title(line), line["label"], kind, n["n"], *(n[name] for name, _ in SIZES), f"{n['bytes'] / 1e6:.1f}", at_once])
        if "object_bytes" not in line:
            continue
        rows.append([title(line), line["label"], "objects", "", *([""] * len(SIZES)), f"{line['object_bytes'] / 1e6:.1f}", ""])
    table(["set", "", "kind", "requests", *(name for name, _ in SIZES), "MB", "reads at once: most (mean)"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="for the generated sets: 4 GB; as much again is in memory")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--port", type=int, default=17680, help="the gateway uses this and up to 60 more")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nights", type=int, default=5, help="the first is a warm-up")
    parser.add_argument("--log-documents", type=int, default=16, help="of a night, a binary logarithm")
    parser.add_argument("--history", type=int, default=100, help="nights of a store with small ones")
    parser.add_argument("--log-history-documents", type=int, default=8, help="of each of these")
    parser.add_argument("--max-distance", type=int, default=12, help="the default profile's")
    parser.add_argument("--max-sketch-distance", type=int, default=36, help="the default profile's")
    parser.add_argument("--milliseconds", type=float, default=50, help="the delay of a request in the way `delayed`")
    parser.add_argument("--ways", nargs="+", choices=("shared", "apart", "delayed"), default=["shared", "apart", "delayed"])
    parser.add_argument("--shrink", type=int, default=0, help="what to take off the binary logarithms of the sizes, for a trial")
    parser.add_argument("--tables", action="store_true", help="only print what the results have")
    args = parser.parse_args()
    if not args.tables:
        if not args.folder:
            parser.error("--folder is needed to measure")
        measure(args)
    print_tables(args.results)


if __name__ == "__main__":
    main()
