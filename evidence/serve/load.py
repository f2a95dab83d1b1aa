#!/usr/bin/env python3
"""Asks `nearprint serve` at a fixed rate, does what clients should not do meanwhile, and prints what was measured."""

import argparse
import asyncio
import json
import random
import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

JOB = """documents = "documents"
store = "store"
output = "results"
[breakers]
max_cluster = 0
max_source_loss = 1.0
max_rate_change = 1.0
max_mean_lost_share = 1.0
min_document_share = 0.0
"""
TOKEN = "0123456789abcdef0123456789abcdef"


def text(seed, words=120):
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(4, 9))) for _ in range(words))


def write_night(folder, dt, seeds):
    path = folder / f"documents/dt={dt}/part-0.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as out:
        for seed in seeds:
            out.write(json.dumps({"id": f"doc-{seed}", "text": text(seed)}) + "\n")


def run(args, *more):
    command = [args.nearprint, "run", "--config", "job.toml", *more]
    subprocess.run(command, cwd=args.folder, check=True, capture_output=True, text=True)


def rss_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def request(body, token=TOKEN, path="/query"):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\n"
    return (head + f"Content-Length: {len(body)}\r\n\r\n").encode() + body


async def reply(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(re.search(r"content-length: (\d+)", head)[1])
    return int(head.split(" ")[1]), await reader.readexactly(length)


class Load:
    """Open loop: each request has its time, and its latency counts from then, even if no connection was free."""

    def __init__(self, args, port):
        self.args, self.port, self.latencies, self.statuses, self.idle = args, port, [], {}, []

    async def ask(self, body):
        # The server closes connections that are idle for 10 seconds.
        while self.idle and time.perf_counter() - self.idle[0][0] > 5:
            self.idle.pop(0)[2].close()
        fresh = None if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = fresh or self.idle.pop()[1:]
        writer.write(request(body))
        status, answer = await reply(reader)
        self.idle.append((time.perf_counter(), reader, writer))
        return status, answer

    async def one(self, due, body):
        status, _ = await self.ask(body)
        self.latencies.append(time.perf_counter() - due)
        self.statuses[status] = self.statuses.get(status, 0) + 1

    async def run(self, bodies):
        start, tasks = time.perf_counter(), []
        for i in range(self.args.rate * self.args.seconds):
            due = start + i / self.args.rate
            await asyncio.sleep(max(0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(self.one(due, bodies[i % len(bodies)])))
        await asyncio.gather(*tasks)


def seen(port, seed, found):
    """Asks for a document until it is found."""
    async def once():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(json.dumps({"text": text(seed)}).encode()))
        answer = json.loads((await reply(reader))[1])
        writer.close()
        return any(match["id"] == f"doc-{seed}" for match in answer["matches"])
    while not asyncio.run(once()):
        time.sleep(0.2)
    found.append(time.perf_counter())


def large_body(port):
    """Sends 100 MiB: returns the status and how much was sent until the server said no."""
    connection = socket.create_connection(("127.0.0.1", port))
    head = request(b"").replace(b"Content-Length: 0", b"Content-Length: 104857600")
    connection.sendall(head)
    sent = 0
    try:
        while sent < 104857600:
            sent += connection.send(b"x" * 65536)
    except OSError:
        pass
    try:
        status = connection.recv(64).split(b" ")[1].decode()
    except (OSError, IndexError):
        status = "reset"
    return status, sent


def trickle(port):
    """Sends a byte a second of a body: returns the seconds until the server ends it."""
    connection, start = socket.create_connection(("127.0.0.1", port)), time.perf_counter()
    connection.sendall(request(b"").replace(b"Content-Length: 0", b"Content-Length: 1000"))
    connection.settimeout(1)
    while time.perf_counter() - start < 120:
        try:
            connection.sendall(b"x")
            status = connection.recv(64)
            return (status.split(b" ")[1].decode() if status else "closed"), time.perf_counter() - start
        except TimeoutError:
            pass
        except OSError:
            return "reset", time.perf_counter() - start
    return "never", 120.0


async def status_of(port, token):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(b'{"text": "x"}', token))
    return (await reply(reader))[0]


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nearprint", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    args.folder.mkdir(parents=True)
    (args.folder / "job.toml").write_text(JOB)
    (args.folder / "token").write_text(TOKEN)
    write_night(args.folder, "2026-11-20", range(args.documents))
    run(args, "--dt", "2026-11-20", "--create-store")
    subprocess.run([args.nearprint, "store", "index", "store"], cwd=args.folder, check=True, capture_output=True)
    command = [args.nearprint, "serve", "--config", "job.toml", "--listen", "127.0.0.1:0", "--token-file", "token", "--json"]
    server = subprocess.Popen(command, cwd=args.folder, stdout=subprocess.PIPE, text=True)
    port = int(json.loads(server.stdout.readline())["address"].rsplit(":")[-1])
    # Half of the questions have a match: a text that differs from a document in one word.
    rng = random.Random(1)
    texts = [text(rng.randrange(args.documents)) + " again" if i % 2 else text(-i - 1) for i in range(2000)]
    bodies = [json.dumps({"text": text}).encode() for text in texts]
    asyncio.run(warm(Load(args, port), bodies[:200]))
    load, memory, found, misuse = Load(args, port), [rss_mib(server.pid)], [], {}

    def meanwhile():
        time.sleep(args.seconds / 4)
        write_night(args.folder, "2026-11-21", range(10_000_000, 10_001_000))
        run(args, "--dt", "2026-11-21")
        committed = time.perf_counter()
        seen(port, 10_000_500, found)
        misuse["a new night is seen after its commit, s"] = round(found[0] - committed, 1)
        memory.append(rss_mib(server.pid))
        misuse["100 MiB body: status, MB sent"] = [(s, round(n / 1e6, 1)) for s, n in [large_body(port)]][0]
        misuse["wrong token"] = asyncio.run(status_of(port, "f" * 32))
        misuse["a byte a second: status, s"] = [(s, round(t, 1)) for s, t in [trickle(port)]][0]

    worker = threading.Thread(target=meanwhile)
    worker.start()
    asyncio.run(load.run(bodies))
    worker.join()
    memory.append(rss_mib(server.pid))
    server.terminate()
    print(f"{args.documents} documents, {args.rate} requests a second for {args.seconds} s, statuses {load.statuses}")
    print("latency ms: " + ", ".join(f"p{q * 100:g} {quantile(load.latencies, q):.2f}" for q in (0.5, 0.9, 0.99, 0.999)))
    print("RSS MiB before, after the new night, after: " + ", ".join(f"{mib:.0f}" for mib in memory))
    for name, value in misuse.items():
        print(f"{name}: {value}")
    print(f"stop: exit {server.wait()}, {server.stdout.read().strip()}")


async def warm(load, bodies):
    for body in bodies:
        await load.ask(body)


if __name__ == "__main__":
    main()
