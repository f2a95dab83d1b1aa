"""captures.py NEARPRINT: runs the commands of docs/terminal.md with this binary, and writes what they say into the page.

Before each block of the page, a comment says how its command runs: `terminal` has standard output and error on a terminal of 80 columns (of
the line that moves, the last state of each step is shown), `piped` has them in a pipe, and `both` runs it both ways, which must say the same.
All commands run in one folder, with documents that are made here. Needs a release build, script (util-linux), and Python 3.11 alone.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/terminal.md"
BLOCK = re.compile(r"(<!-- (terminal|piped|both) -->\n```text\n\$ )(.*?)\n(.*?)(```\n)", re.S)
NIGHTS = {"2026-11-19": 20_000, "2026-11-20": 150_000, "2026-11-21": 150_000}
JOB = 'documents = "crawl"\nstore = "store"\noutput = "results"\n'


def make_documents(folder):
    draw = random.Random(1)
    words = ["".join(draw.choice("abcdefghilmnoprstu") for _ in range(draw.randint(3, 9))) for _ in range(5_000)]
    pages = []
    for dt, count in NIGHTS.items():
        night = folder / f"crawl/dt={dt}"
        night.mkdir(parents=True)
        with (night / "pages.jsonl").open("w", encoding="utf-8") as file:
            for at in range(count):
                is_copy = pages and draw.random() < 0.2
                text = draw.choice(pages).split() if is_copy else draw.choices(words, k=80)
                if is_copy and draw.random() < 0.5:
                    text[draw.randrange(len(text))] = draw.choice(words)
                if len(pages) < 20_000 and not is_copy:
                    pages.append(" ".join(text))
                file.write(json.dumps({"id": f"{dt}/{at}", "text": " ".join(text)}) + "\n")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    (folder / "wrong.toml").write_text(JOB + "max_bad_row = 3\npairs = \"forst\"\n", encoding="utf-8")


def piped(command, folder, environment):
    done = subprocess.run(["bash", "-c", f"{command} 2>&1 | cat"], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def terminal(command, folder, environment):
    done = subprocess.run(["script", "-qec", f"stty cols 80; {command}", "/dev/null"], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    lines, steps = [], {}
    for line in re.split(r"\r+|\n", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", done.stdout.replace("\r\n", "\n"))):
        if progress := re.match(r"[\u2800-\u28ff] (step \d+)", line):
            # A state that has no rate yet says less.
            if "/s" in line or "/s" not in steps.get(progress[1], ""):
                steps[progress[1]] = line.rstrip()
        elif not re.fullmatch(r"[\u2800-\u28ff]? *", line) or (lines and not line):
            lines.append(line.rstrip())
    while lines and not lines[-1]:
        lines.pop()
    return [*steps.values(), *lines]


def main():
    binary = Path(sys.argv[1] if len(sys.argv) == 2 else "").resolve()
    if not (binary.is_file() and os.access(binary, os.X_OK)):
        sys.exit("usage: captures.py PATH, the path of the command nearprint")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "night")
        folder.mkdir()
        Path(name, "bin").mkdir()
        os.symlink(binary, Path(name, "bin/nearprint"))
        make_documents(folder)
        environment = {"PATH": f"{name}/bin:/usr/bin:/bin", "HOME": name, "LANG": "C.UTF-8", "TERM": "xterm"}

        def captured(block):
            head, way, command, _, end = block.groups()
            said = (piped if way == "piped" else terminal)(command, folder, environment)
            if way == "both" and (other := piped(command, folder, environment)) != said:
                sys.exit(f"{command}: a terminal gets\n{said}\nand a pipe\n{other}")
            return "\n".join([head + command, *said, end])

        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(BLOCK.sub(captured, page), encoding="utf-8")


main()
