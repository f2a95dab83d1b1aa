"""A standalone Spark cluster on loopback: a master and workers, each a process of its own.

    with Cluster(folder, n_workers=2) as cluster:
        done = cluster.submit("--config", "job.toml", "--dt", "2026-11-20")

Needs pyspark in the Python that runs this, and Java. Everything that it writes is below the folder.
"""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Cluster:
    def __init__(self, folder, n_workers=2, cores=1, memory="2g", environment=None):
        import pyspark

        self.folder = pathlib.Path(folder).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.bin = pathlib.Path(pyspark.__file__).parent / "bin"
        self.cores, self.memory, self.n_workers = cores, memory, n_workers
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(self.bin.parent),
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONWARNINGS": "ignore",
            **(environment or {}),
        }
        self.master, self.workers, self.n_started = None, [], 0

    def __enter__(self):
        self.master = self._start("master", "Master", "--host", "127.0.0.1", "--port", self.port, "--webui-port", free_port())
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            if time.monotonic() > deadline or self.master.poll() is not None:
                raise RuntimeError(f"the master does not start: see {self.folder}/master.log")
            time.sleep(0.2)
        for _ in range(self.n_workers):
            self.start_worker()
        return self

    def __exit__(self, *_):
        for process in [*self.workers, self.master]:
            if process and process.poll() is None:
                # Executors are in sessions of their workers.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self, name, what, *arguments):
        log = open(self.folder / f"{name}.log", "ab")
        command = [self.bin / "spark-class", f"org.apache.spark.deploy.{what.lower()}.{what}", *arguments]
        command = [str(part) for part in command]
        return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True, cwd=self.folder)

    def start_worker(self):
        name = f"worker-{self.n_started}"
        self.n_started += 1
        arguments = ("--host", "127.0.0.1", "--cores", self.cores, "--memory", self.memory, "--webui-port", free_port())
        self.workers.append(self._start(name, "Worker", *arguments, "--work-dir", self.folder / name, self.url))

    def command(self, *arguments, conf=None, job=ROOT / "jobs/spark/nightly.py"):
        """The command that submits a job, with few of Spark's own log lines."""
        conf = {
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.executor.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.cores.max": str(self.cores * self.n_workers),
            **(conf or {}),
        }
        flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        return [str(part) for part in [self.bin / "spark-submit", "--master", self.url, *flags, job, *arguments]]

    def submit(self, *arguments, conf=None, timeout=600, **options):
        command = self.command(*arguments, conf=conf)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=timeout, cwd=options.get("cwd", ROOT))
