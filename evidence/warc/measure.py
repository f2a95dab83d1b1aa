#!/usr/bin/env python3
"""Reads a WARC file with nearprint's reader, FastWARC and warcio, in turns, and compares what equal work costs.

    cargo build --release --manifest-path crates/warc/Cargo.toml --example list_records
    pip install fastwarc==2.0.1 warcio==1.8.1
    python3 evidence/warc/measure.py crawl.warc.gz --rounds 5

stored   every record is read, responses are taken apart, and their bodies are copied as they are stored
decoded  bodies are also freed from chunks and content encodings

FastWARC 2.0.1 ends early at some bodies that it is to decode; then it has no line for `decoded`. Processor time counts,
because other programs may run beside. MB are 10^6 packed bytes.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def read(program, work, path):
    """Reads the file in this process. Returns the numbers of records and bytes."""
    n_records = n_bytes = 0
    if program == "fastwarc":
        from fastwarc.warc import ArchiveIterator

        decode = {"auto_decode": "all"} if work == "decoded" else {}
        for record in ArchiveIterator(path, parse_http=True, **decode):
            n_records += 1
            n_bytes += len(record.reader.read())
    else:
        from warcio.archiveiterator import ArchiveIterator

        for record in ArchiveIterator(open(path, "rb")):
            n_records += 1
            stream = record.content_stream() if work == "decoded" else record.raw_stream
            n_bytes += len(stream.read())
    return n_records, n_bytes


def child(program, work, path):
    began = resource.getrusage(resource.RUSAGE_SELF)
    try:
        n_records, n_bytes = read(program, work, path)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
        return
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    print(json.dumps({"n_records": n_records, "n_bytes": n_bytes, "cpu": cpu}))


def measured(program, work, args):
    if program == "nearprint":
        mode = "--time" if work == "decoded" else "--time-stored"
        process = subprocess.Popen([args.reader, mode, args.file], stdout=subprocess.PIPE, text=True)
        words = process.stdout.read().split()
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
        records = words.index("records,")
        return {"n_records": int(words[records - 1]), "n_bytes": int(words[words.index("bytes") - 1]),
                "cpu": used.ru_utime + used.ru_stime}
    done = subprocess.run([sys.executable, __file__, args.file, "--child", program, work], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reader", default=str(ROOT / "target/release/examples/list_records"))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(*args.child, args.file)
    megabytes = os.path.getsize(args.file) / 1e6
    found = {}
    for _ in range(args.rounds):
        for work in ["stored", "decoded"]:
            for program in ["nearprint", "fastwarc", "warcio"]:
                found.setdefault((work, program), []).append(measured(program, work, args))
    for (work, program), runs in found.items():
        if runs[0].get("n_records") != found[work, "nearprint"][0]["n_records"]:
            print(f"{work:8} {program:10} does not read the whole file: {runs[0]}")
            continue
        cpu = statistics.median(run["cpu"] for run in runs)
        reference = [run["cpu"] for run in found[work, "nearprint"]]
        ratio = statistics.median(run["cpu"] / own for run, own in zip(runs, reference))
        print(f"{work:8} {program:10} {runs[0]['n_records']} records, {runs[0]['n_bytes']} bytes, {cpu:.2f} s CPU, "
              f"{megabytes / cpu:.0f} MB/s, {ratio:.2f} times nearprint's")


if __name__ == "__main__":
    main()
