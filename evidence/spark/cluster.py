"""A standalone Spark cluster on loopback: a master and workers, each a process of its own.

    with Cluster(folder, n_workers=2) as cluster:
        done = cluster.submit("--config", "job.toml", "--dt", "2026-11-20")
        address = cluster.start_server()

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
        self.master, self.server, self.workers, self.n_started = None, None, [], 0

    def __enter__(self):
        self.master = self._start("master", "Master", "--host", "127.0.0.1", "--port", self.port, "--webui-port", free_port())
        deadline = time.monotonic() + 60
        self._wait(self.master, "master", self.port, deadline)
        for _ in range(self.n_workers):
            self.start_worker()
        return self

    def __exit__(self, *_):
        for process in [self.server, *self.workers, self.master]:
            if process and process.poll() is None:
                # Executors are in sessions of their workers.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self, name, what, *arguments):
        command = [self.bin / "spark-class", f"org.apache.spark.deploy.{what.lower()}.{what}", *arguments]
        return self._start_process(name, [str(part) for part in command])

    def _start_process(self, name, command):
        log = open(self.folder / f"{name}.log", "ab")
        return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True, cwd=self.folder)

    def _wait(self, process, name, port, deadline):
        while True:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError(f"the {name} does not start: see {self.folder}/{name}.log")
            time.sleep(0.2)

    def start_server(self, memory="1g", conf=None):
        """Starts a Spark Connect server, which is the driver of all nights that connect to it, and returns its address."""
        port = free_port()
        conf = {**self.conf(), **(conf or {}), "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": port}
        flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        what = "org.apache.spark.sql.connect.service.SparkConnectServer"
        command = [self.bin / "spark-submit", "--master", self.url, "--driver-memory", memory, *flags, "--class", what, "spark-internal"]
        self.server = self._start_process("server", [str(part) for part in command])
        self._wait(self.server, "server", port, time.monotonic() + 60)
        return f"sc://127.0.0.1:{port}"

    def start_worker(self):
        name = f"worker-{self.n_started}"
        self.n_started += 1
        arguments = ("--host", "127.0.0.1", "--cores", self.cores, "--memory", self.memory, "--webui-port", free_port())
        self.workers.append(self._start(name, "Worker", *arguments, "--work-dir", self.folder / name, self.url))

    def conf(self):
        """Few of Spark's own log lines, and all cores."""
        return {
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.executor.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.cores.max": str(self.cores * max(self.n_workers, 1)),
        }

    def command(self, *arguments, conf=None, job=ROOT / "jobs/spark/nightly.py"):
        """The command that submits a job."""
        conf = {**self.conf(), **(conf or {})}
        flags = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        return [str(part) for part in [self.bin / "spark-submit", "--master", self.url, *flags, job, *arguments]]

    def submit(self, *arguments, conf=None, timeout=600, **options):
        command = self.command(*arguments, conf=conf)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=timeout, cwd=options.get("cwd", ROOT))
