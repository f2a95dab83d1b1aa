"""Tries nights on a standalone Spark cluster on loopback: the same bytes as one machine, kills, and speed. Appends JSON lines.

    python evidence/spark/trials.py --folder /a/disk --results FILE nights --sets FOLDER [--connect]
    python evidence/spark/trials.py --folder /a/disk --results FILE kills [--n 20] [--seed 1] [--connect]
    python evidence/spark/trials.py --folder /a/disk --results FILE drivers [--n 6] [--seed 1]
    python evidence/spark/trials.py --folder /a/disk --results FILE speed [--log-existing 28] [--log-batch 18]
    python evidence/spark/trials.py --folder /a/disk --results FILE memory [--log-batch 20] [--words 40] [--worker-memory BYTES] [--connect]

Needs nearprint, pyspark and pyarrow in the Python that runs it, Java, and for `speed`, `kills` and `memory` a release build of nearprint-bench. `nights`
takes labelled sets from the folder --sets. `kills` and `drivers` need boto3, and work on an S3 server whose place and credentials are in the environment, as
scripts/start-rgw.sh prints them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from cluster import ROOT, Cluster, free_port

NEARPRINT = pathlib.Path(sys.executable).with_name("nearprint")
BENCH = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/nearprint-bench"


class Results:
    def __init__(self, path):
        self.path = path

    def add(self, **fields):
        line = json.dumps(fields)
        print(line, flush=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def sums(folder):
    """The data files of a folder. The store's names of runs hold the digest of the night, so they compare too."""
    folder = pathlib.Path(folder)
    files = sorted(folder.rglob("*.parquet"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# --- nights


def crawls(folder, sets):
    """Three nights of the sample and of labelled sets, and what the third is replaced with."""
    nights = {"2026-11-18": [], "2026-11-19": [], "2026-11-20": []}
    with open(sets / "crawl_seatunnel/docs.jsonl", encoding="utf-8") as file:
        pages = [json.loads(line) for line in file]
    names = sorted({page["id"].split("|")[0] for page in pages})
    for dt, name in zip(["2026-11-18", "2026-11-19"], names):
        nights[dt] += [page for page in pages if page["id"].startswith(name + "|")]
    for name in ["docs_rev_en", "docs_rev_zh", "articles_en"]:
        with open(sets / name / "docs.jsonl", encoding="utf-8") as file:
            nights["2026-11-20"] += [json.loads(line) for line in file]
    for dt, rows in nights.items():
        place = folder / f"dt={dt}"
        place.mkdir(parents=True)
        for part in range(3):
            lines = [json.dumps({"id": row["id"], "text": row["text"]}, ensure_ascii=False) for row in rows[part::3]]
            (place / f"pages-{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        sample = ROOT / "sample_data/documents" / f"dt={dt}"
        for path in sorted(sample.glob("*.parquet")) if sample.is_dir() else ():
            import pyarrow.parquet as pq

            table = pq.read_table(path, columns=["id", "text"]).to_pylist()
            lines = [json.dumps({"id": f"sample-{row['id']}", "text": row["text"]}, ensure_ascii=False) for row in table]
            (place / "sample.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {dt: len(rows) for dt, rows in nights.items()}


def nights(results, folder, options):
    import nearprint
    import nearprint.spark
    from pyspark.sql import SparkSession

    shutil.rmtree(folder / "nights", ignore_errors=True)
    place = folder / "nights"
    sizes = crawls(place / "documents", options.sets)
    with Cluster(place / "cluster") as cluster:
        os.environ.update(cluster.environment)
        connect = options.connect
        if connect:
            spark = SparkSession.builder.remote(cluster.start_server()).getOrCreate()
        else:
            builder = SparkSession.builder.master(cluster.url)
            for key, value in cluster.conf().items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
        for profile in ("default", "paper"):
            for pairs in ("forest", "all"):
                job = place / f"{profile}-{pairs}.toml"
                job.write_text(f'profile = "{profile}"\npairs = "{pairs}"\ncreate_store = true\ndocuments = "{place}/documents"\n')
                seconds = {}
                for way in ("here", "there"):
                    at = place / f"{profile}-{pairs}-{way}"
                    options = {"store": at / "store", "output": at / "results"}
                    began = time.monotonic()
                    steps = [("2026-11-18", {}), ("2026-11-20", {}), ("2026-11-19", {"late": True}), ("2026-11-20", {"replace": True})]
                    statuses = []
                    for dt, more in steps:
                        if way == "here":
                            done = nearprint.run(job, dt, **options, **more)
                        else:
                            done = nearprint.spark.run(job, dt, spark=spark, **options, **more)
                        statuses.append((done["status"], done["n_pairs"], done["n_keep"], done["n_drop"]))
                    seconds[way] = round(time.monotonic() - began, 2)
                    if way == "here":
                        expected, expected_statuses = sums(at), statuses
                found = sums(at)
                results.add(
                    part="nights", connect=connect, profile=profile, pairs=pairs, n_documents=sizes, n_files=len(found), same=found == expected,
                    same_summaries=statuses == expected_statuses, n_pairs=[s[1] for s in statuses], seconds=seconds,
                    different=[name for name in expected if found.get(name) != expected[name]][:3],
                )
        spark.stop()


# --- kills


class Bucket:
    """The S3 server of the environment."""

    def __init__(self):
        import boto3
        from botocore.config import Config

        endpoint = os.environ["NEARPRINT_TEST_S3_ENDPOINT"]
        self.name = os.environ["NEARPRINT_TEST_S3_BUCKET"]
        # Newer clients send checksums in a form that gateways do not know.
        config = Config(request_checksum_calculation="when_required", s3={"addressing_style": "path"})
        self.s3 = boto3.client("s3", endpoint_url=endpoint, config=config)
        self.environment = {"AWS_ENDPOINT_URL": endpoint}

    def names(self, prefix):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=f"{prefix}/")
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", ()))

    def sums(self, prefix):
        names = [name for name in self.names(prefix) if name.endswith(".parquet")]
        read = {name: self.s3.get_object(Bucket=self.name, Key=name)["Body"].read() for name in names}
        return {name[len(prefix) :]: hashlib.sha256(content).hexdigest() for name, content in read.items()}

    def commits(self, prefix):
        """The names of the store's commits."""
        return [name for name in self.names(f"{prefix}/store/_commits") if name.endswith(".json")]

    def upload(self, folder, prefix):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                self.s3.put_object(Bucket=self.name, Key=f"{prefix}/{path.relative_to(folder)}", Body=path.read_bytes())


def prepared(folder, bucket):
    """A store of 2^21 fingerprints and a night of 2^15 documents in a bucket, and the bytes that one machine publishes."""
    place = folder / "kills"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    subprocess.run([BENCH, "store", "--nights", "2", "--log-documents", "20", "--output", place / "store"], check=True, stdout=subprocess.DEVNULL)
    nights = ["nights", "--nights", "1", "--log-documents", "15", "--words", "300", "--vocabulary", "20000", "--repeats", "20"]
    subprocess.run([BENCH, *nights, "--output", place / "documents"], check=True, stdout=subprocess.DEVNULL)
    split(place / "documents/dt=2026-01-01/part-0.parquet", 16)
    bucket.upload(place / "documents", "spark/documents")
    (place / "job.toml").write_text(f'documents = "s3://{bucket.name}/spark/documents"\n')
    return reference(folder, bucket)


def split(path, n):
    """Cuts a file into n, so that there are several tasks."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = -(-table.num_rows // n)
    path.unlink()
    for part in range(n):
        pq.write_table(table.slice(part * rows, rows), path.with_name(f"part-{part:02}.parquet"), write_page_checksum=True)


def arguments(folder, bucket, prefix):
    places = ["--store", f"s3://{bucket.name}/{prefix}/store", "--output", f"s3://{bucket.name}/{prefix}/results"]
    return ["--config", str(folder / "kills/job.toml"), "--dt", "2026-01-01", "--json", *places]


def reference(folder, bucket):
    bucket.upload(folder / "kills/store", "spark/reference/store")
    command = [NEARPRINT, "run", *arguments(folder, bucket, "spark/reference")]
    done = subprocess.run(command, env={**os.environ, **bucket.environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return bucket.sums("spark/reference"), bucket.commits("spark/reference")


SPECULATION = {
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3", "spark.speculation.minTaskRuntime": "100ms",
}


class Watched:
    """A driver that runs, what it logged so far, and what Spark says of its stages."""

    def __init__(self, cluster, bucket, parameters, conf, log, connect=False):
        self.port = free_port()
        conf = {"spark.ui.port": self.port, "spark.ui.liveUpdate.period": "0", **conf}
        environment = {**cluster.environment, **bucket.environment}
        if connect:
            environment["SPARK_REMOTE"] = cluster.start_server(conf=conf)
            command = [sys.executable, str(ROOT / "jobs/spark/nightly.py"), *parameters]
        else:
            command = cluster.command(*parameters, conf=conf)
        self.log = pathlib.Path(log)
        self.process = subprocess.Popen(
            command, env=environment, stdout=open(log, "wb"), stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
        )
        self.application = None

    def logged(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stages(self):
        """The stages of the application, the newest first, as Spark's own interface has them."""
        base = f"http://127.0.0.1:{self.port}/api/v1/applications"
        try:
            if self.application is None:
                self.application = json.load(urllib.request.urlopen(base, timeout=1))[0]["id"]
            return json.load(urllib.request.urlopen(f"{base}/{self.application}/stages", timeout=1))
        except OSError:
            return []

    def phase(self):
        """What the night does now: fingerprint, map, shuffle (some tasks of either have left their output for the next stage), reduce (a stage
        that reads such output), texts (the documents are read for the judge), or another word of its log."""
        text = self.logged()
        words = re.findall(r"INFO (fingerprint|tables|join|texts|judge|decide|publish)[ (]", text)
        if not words:
            return "start"
        if words[-1] not in ("fingerprint", "join"):
            return words[-1]
        active = [stage for stage in self.stages() if stage["status"] == "ACTIVE"]
        if any(stage["shuffleReadBytes"] or stage["shuffleReadRecords"] for stage in active):
            return "reduce"
        if any(2 * stage["numCompleteTasks"] >= stage["numTasks"] for stage in active):
            return "shuffle"
        return "map" if words[-1] == "join" else "fingerprint"


def pids(pattern, below):
    """The processes whose command matches, among those of a cluster's folder or of its workers."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                cwd = os.readlink(entry / "cwd")
            except OSError:
                continue
            if re.search(pattern, line) and (str(below) in line or cwd.startswith(str(below))):
                found.append(int(entry.name))
    return found


def kill(cluster, what, chance):
    """Kills a worker, an executor or one of its Python processes, and starts a worker in place of a dead one."""
    if what == "worker":
        at = chance.randrange(len(cluster.workers))
        victim = cluster.workers.pop(at)
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        cluster.start_worker()
        return [victim.pid]
    pattern = "CoarseGrainedExecutorBackend" if what == "executor" else r"pyspark[./]daemon"
    victims = pids(pattern, cluster.folder)
    if what == "python":
        # The daemon's children do the work.
        children = [pid for victim in victims for pid in children_of(victim)]
        victims = children or victims
    victims = [chance.choice(victims)] if victims else []
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return []
    return victims


def children_of(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


PHASES = ("fingerprint", "shuffle", "map", "reduce", "texts")
VICTIMS = ("executor", "worker", "python", "executor", "worker", "python")


def kills(results, folder, options):
    bucket = Bucket()
    expected, _ = prepared(folder, bucket)
    chance = random.Random(options.seed)
    for number in range(options.n):
        wanted, what = PHASES[number % len(PHASES)], VICTIMS[number % len(VICTIMS)]
        prefix = f"spark/kill-{options.seed}-{number}"
        bucket.upload(folder / "kills/store", f"{prefix}/store")
        with Cluster(folder / f"kills/cluster-{number}", environment=bucket.environment) as cluster:
            memory = ["--worker-memory", str(options.worker_memory)] if options.worker_memory else []
            watched = Watched(cluster, bucket, [*arguments(folder, bucket, prefix), *memory], SPECULATION, folder / f"kills/driver-{number}.log", options.connect)
            delay, killed, phase = chance.uniform(0.0, 1.5), [], None
            deadline = time.monotonic() + 300
            while watched.process.poll() is None and time.monotonic() < deadline:
                if not killed and (watched.phase() == wanted or watched.phase() in ("judge", "decide", "publish")):
                    # The later stages are short.
                    time.sleep(delay if wanted in ("fingerprint", "map") else delay / 10)
                    phase = watched.phase()
                    killed = kill(cluster, what, chance)
                time.sleep(0.05)
            code = watched.process.poll()
            if code is None:
                os.killpg(watched.process.pid, signal.SIGKILL)
        found = bucket.sums(prefix)
        text = watched.logged()
        if options.connect:
            text += (folder / f"kills/cluster-{number}/server.log").read_text(encoding="utf-8", errors="replace")
        results.add(
            part="kills", connect=options.connect, number=number, seed=options.seed, what=what, wanted=wanted, phase=phase, delay=round(delay, 2), killed=bool(killed),
            exit_code=code, same=found == expected, n_files=len(found), lost_executors=len(re.findall("Lost executor", text)),
            error=next((line for line in text.splitlines() if line.startswith("nearprint: error")), None),
        )


def drivers(results, folder, options):
    """The driver is killed before, during and after the commit; then the night runs again."""
    bucket = Bucket()
    expected, expected_commits = prepared(folder, bucket)
    chance = random.Random(options.seed)
    for number in range(options.n):
        moment = ("before", "during", "after")[number % 3]
        prefix = f"spark/driver-{options.seed}-{number}"
        bucket.upload(folder / "kills/store", f"{prefix}/store")
        with Cluster(folder / f"kills/driver-cluster-{number}", environment=bucket.environment) as cluster:
            log = folder / f"kills/driver-killed-{number}.log"
            watched = Watched(cluster, bucket, arguments(folder, bucket, prefix), {}, log)
            sign = {"before": "INFO join", "during": "INFO publish", "after": '"status":'}[moment]
            delay = chance.uniform(0.0, 0.3 if moment == "during" else 1.0)
            while watched.process.poll() is None and sign not in watched.logged():
                time.sleep(0.01)
            time.sleep(delay)
            ended = watched.process.poll()
            if ended is None:
                os.killpg(watched.process.pid, signal.SIGKILL)
                watched.process.wait()
            between = len(bucket.commits(prefix))
            again = subprocess.run(
                cluster.command(*arguments(folder, bucket, prefix)), env={**cluster.environment, **bucket.environment}, capture_output=True,
                text=True, cwd=ROOT, check=False,
            )
        summary = json.loads(again.stdout.splitlines()[-1]) if again.stdout.strip() else {}
        commits = bucket.commits(prefix)
        results.add(
            part="drivers", number=number, seed=options.seed, moment=moment, delay=round(delay, 2), ended_before=ended, commits_between=between,
            exit_code=again.returncode, status=summary.get("status"), same=bucket.sums(prefix) == expected, n_commits=len(commits),
            n_expected_commits=len(expected_commits),
        )


# --- signals


def signals(results, folder, options):
    """Ctrl-C and SIGTERM reach the driver at random moments, as spark-submit starts it and as Python does, or as a client. Then the night runs again."""
    place = folder / "signals"
    shutil.rmtree(place, ignore_errors=True)
    nights = ["nights", "--nights", "1", "--log-documents", "16", "--words", "300", "--vocabulary", "20000", "--repeats", "20"]
    place.mkdir(parents=True)
    subprocess.run([BENCH, *nights, "--output", place / "documents"], check=True, stdout=subprocess.DEVNULL)
    split(place / "documents/dt=2026-01-01/part-0.parquet", 8)
    (place / "job.toml").write_text('documents = "documents"\ncreate_store = true\n')
    chance = random.Random(options.seed)
    with Cluster(place / "cluster") as cluster:
        server = cluster.start_server() if options.connect else None
        ways = ("connect",) if server else ("submit", "python")

        def parameters(name):
            return ["--config", place / "job.toml", "--dt", "2026-01-01", "--json", "--store", place / name / "store", "--output", place / name / "results"]

        def night(name, way):
            """The command of a night, and its environment."""
            if way == "connect":
                client = [sys.executable, ROOT / "jobs/spark/nightly.py", *parameters(name)]
                return [str(part) for part in client], {**cluster.environment, "SPARK_REMOTE": server}
            command = cluster.command(*parameters(name))
            if way == "submit":
                return command, cluster.environment
            flags = command[1 : command.index(str(ROOT / "jobs/spark/nightly.py"))]
            return [sys.executable, *command[len(flags) + 1 :]], {**cluster.environment, "PYSPARK_SUBMIT_ARGS": " ".join([*flags, "pyspark-shell"])}

        # A server is slower in its first night.
        for name in ("first", "whole") if server else ("whole",):
            command, environment = night(name, ways[0])
            began = time.monotonic()
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
        seconds, expected = time.monotonic() - began, sums(place / "whole")
        for number in range(options.n):
            way, what = ways[number % len(ways)], (signal.SIGINT, signal.SIGTERM)[number // 2 % 2]
            name, delay = f"night-{number}", chance.uniform(0.2, seconds)
            command, environment = night(name, way)
            log = place / f"{name}.log"
            with open(log, "wb") as file:
                driver = subprocess.Popen(command, env=environment, stdout=file, stderr=file, cwd=ROOT, start_new_session=True)
            time.sleep(delay)
            os.killpg(driver.pid, what)
            try:
                code = driver.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(driver.pid, signal.SIGKILL)
                code = driver.wait()
            text = log.read_text(encoding="utf-8", errors="replace")
            command, environment = night(name, ways[0])
            again = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, check=False)
            results.add(
                part="signals", number=number, seed=options.seed, way=way, signal=what.name, delay=round(delay, 2),
                # A process that a signal ends has the code of the shell, 128 and the signal's number.
                exit_code=128 - code if code < 0 else code, published=" published" in text or '"status":"published"' in text,
                crashed=next((line for line in text.splitlines() if re.search("Fatal Python error|SIGSEGV|SIGABRT|Traceback|panicked", line)), None),
                exit_code_again=again.returncode, same=sums(place / name) == expected,
            )


# --- speed


def speed(results, folder, options):
    """One process with two threads beside Spark with two workers of one core, in turns."""
    from pyspark.sql import SparkSession

    place = folder / f"speed-{options.log_existing}"
    if not (place / "store").exists():
        nights = 8 if options.log_existing < 28 else 16
        per_night = options.log_existing - (3 if nights == 8 else 4)
        subprocess.run([BENCH, "store", "--nights", str(nights), "--log-documents", str(per_night), "--profile", options.profile, "--output", place / "store"], check=True)
        subprocess.run([BENCH, "nights", "--nights", "1", "--log-documents", str(options.log_batch), "--output", place / "documents"], check=True)
        split(place / "documents/dt=2026-01-01/part-0.parquet", 16)
    job = place / "job.toml"
    job.write_text(f'profile = "{options.profile}"\ndocuments = "{place}/documents"\n')

    import nearprint
    import nearprint.spark

    with Cluster(place / "cluster", memory="6g") as cluster:
        os.environ.update(cluster.environment)
        began = time.monotonic()
        builder = SparkSession.builder.master(cluster.url).config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.executor.memory", "1g").config("spark.driver.host", "127.0.0.1").config("spark.cores.max", 2)
        spark = builder.config("spark.log.level", "ERROR").getOrCreate()
        spark.range(2).count()
        started = time.monotonic() - began
        for number in range(options.rounds):
            seconds, n_parts = {}, {}
            for way in ("here", "there"):
                at = place / "at"
                shutil.rmtree(at, ignore_errors=True)
                at.mkdir()
                # Commits are the only files of a store that a run adds to besides its own.
                subprocess.run(["cp", "-al", place / "store", at / "store"], check=True)
                places = {"store": at / "store", "output": at / "results"}
                began = time.monotonic()
                if way == "here":
                    flags = [part for key, value in places.items() for part in (f"--{key}", value)]
                    command = [NEARPRINT, "run", "--config", job, "--dt", "2026-01-01", "--threads", "2", "--json", *flags]
                    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
                    if done.returncode:
                        sys.exit(done.stderr)
                    stages, summary = phases_of(done.stderr), json.loads(done.stdout.splitlines()[-1])
                else:
                    before = shuffled(spark)
                    summary = nearprint.spark.run(job, "2026-01-01", spark=spark, worker_memory=options.worker_memory or 4 << 30, **places)
                    stages = None
                seconds[way], n_parts[way] = time.monotonic() - began, summary["n_parts"]
                if way == "here":
                    expected = sums(at / "results")
            results.add(
                part="speed", n_parts=n_parts, worker_memory=options.worker_memory or 4 << 30, log_existing=options.log_existing, log_batch=options.log_batch, profile=options.profile, round=number,
                seconds_here=round(seconds["here"], 2), seconds_there=round(seconds["there"], 2),
                overhead=round(seconds["there"] / seconds["here"] - 1, 3), same=sums(at / "results") == expected,
                stages_here=stages, stages_there=spark_stages(spark, before), session_seconds=round(started, 1),
            )
        spark.stop()


# --- memory


def memory(results, folder, options):
    """The peaks of the driver, of its JVM and of a worker process in a night of which three in ten documents repeat another but for a word."""
    place = folder / f"memory-{options.log_batch}-{options.words}"
    shutil.rmtree(place, ignore_errors=True)
    shape = ["--log-documents", str(options.log_batch), "--words", str(options.words), "--repeats", "30"]
    subprocess.run([BENCH, "nights", "--nights", "1", *shape, "--output", place / "documents"], check=True, stdout=subprocess.DEVNULL)
    job = place / "job.toml"
    job.write_text(f'documents = "{place}/documents"\ncreate_store = true\n')

    def flags(way):
        places = {"store": place / way / "store", "output": place / way / "results"}
        return ["--config", job, "--dt", "2026-01-01", "--json", "--no-breakers", *(part for key, at in places.items() for part in (f"--{key}", at))]

    began = time.monotonic()
    here = subprocess.run([str(part) for part in [NEARPRINT, "run", *flags("here")]], capture_output=True, text=True, check=False)
    seconds_here = time.monotonic() - began
    if here.returncode:
        sys.exit(here.stderr)
    log = open(place / "log", "w+", encoding="utf-8")
    with Cluster(place / "cluster", memory="6g") as cluster:
        conf, environment = {"spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError"}, cluster.environment
        arguments = [str(part) for part in [*flags("there"), "--worker-memory", options.worker_memory or 3 << 30]]
        if options.connect:
            environment = {**environment, "SPARK_REMOTE": cluster.start_server(memory="4g", conf=conf)}
            command = [sys.executable, str(ROOT / "jobs/spark/nightly.py"), *arguments]
        else:
            command = cluster.command(*arguments, conf=conf)
            command[1:1] = ["--driver-memory", "4g"]
        began, peak_of_jvm, peak_of_worker = time.monotonic(), 0, 0
        night = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        # spark-submit becomes the JVM, of which the driver is a child. A server is started by a submission too.
        jvm = cluster.server.pid if options.connect else night.pid
        while night.poll() is None:
            peak_of_jvm = max(peak_of_jvm, peak_bytes(jvm))
            peak_of_worker = max([peak_of_worker, *map(peak_bytes, pids(r"pyspark[./]daemon", cluster.folder))])
            time.sleep(0.5)
        seconds = time.monotonic() - began
    log.seek(0)
    lines = log.read().splitlines()
    if night.returncode:
        sys.exit("\n".join(lines))
    summary = json.loads(next(line for line in reversed(lines) if line.startswith("{")))
    results.add(
        part="memory", connect=options.connect, log_batch=options.log_batch, words=options.words, worker_memory=options.worker_memory or 3 << 30, n_parts=summary["n_parts"],
        n_documents=summary["n_documents"], n_drop=summary["n_drop"],
        peak_of_driver=summary["peak_rss_bytes"], peak_of_jvm=peak_of_jvm, peak_of_worker=peak_of_worker, peak_here=json.loads(here.stdout.splitlines()[-1])["peak_rss_bytes"],
        seconds=round(seconds, 1), seconds_here=round(seconds_here, 1), stage_ms=summary["stage_ms"], same=sums(place / "here") == sums(place / "there"),
    )


def peak_bytes(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) << 10 if found else 0


def phases_of(log):
    """The seconds from each stage's first line of a log to the next one's."""
    from datetime import datetime

    begun = re.findall(r"(\S+Z)\s+INFO ([a-z]+(?: \([a-z ]+\))?) .*total=", log)
    times = [(datetime.fromisoformat(at), name) for at, name in begun]
    return {name: round((after - at).total_seconds(), 2) for (at, name), (after, _) in zip(times, times[1:])}


def rest(spark, what):
    base = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    return json.load(urllib.request.urlopen(f"{base}/{what}", timeout=10))


def shuffled(spark):
    return max((stage["stageId"] for stage in rest(spark, "stages")), default=-1)


def spark_stages(spark, after):
    kept = ["stageId", "status", "numTasks", "executorRunTime", "shuffleWriteBytes", "shuffleReadBytes", "submissionTime", "completionTime"]
    stages = [stage for stage in rest(spark, "stages") if stage["stageId"] > after and stage["status"] == "COMPLETE"]
    return [{name: stage.get(name) for name in kept} for stage in sorted(stages, key=lambda stage: stage["stageId"])]


PARTS = {part.__name__: part for part in (nights, kills, drivers, signals, speed, memory)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--sets", type=pathlib.Path, help="folder of labelled sets, for nights")
    parser.add_argument("--connect", action="store_true", help="by a Spark Connect server, for nights, kills, signals and memory")
    parser.add_argument("--n", type=int, default=20, help="kills, or signals")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-existing", type=int, default=28)
    parser.add_argument("--log-batch", type=int, default=18)
    parser.add_argument("--words", type=int, default=40, help="words of a document, for memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", default="default")
    parser.add_argument("--worker-memory", type=int, help="bytes, for speed (default: 4 GiB), memory (3 GiB) and kills")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    PARTS[options.part](Results(options.results), options.folder, options)


if __name__ == "__main__":
    main()
