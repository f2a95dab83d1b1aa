"""test.py NEARPRINT [PAGE...]: runs the `console` blocks of the book's pages with this binary, each page in an empty folder of its own, and
checks that the links of all pages lead somewhere.

A line that begins with `$ ` is a command, which a here document may continue. The other lines up to the next command must occur in its
output, in their order; `…` stands for anything. `exit code N` says how it ends, otherwise with 0. Needs bash, and Python 3.11 alone.
"""
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def commands(page):
    """Each command of a page with the lines that are expected, in order."""
    found = []
    for indent, block in re.findall(r"^( *)```console\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S):
        end = None
        for line in (line.removeprefix(indent) for line in block.splitlines()):
            if end is not None:
                found[-1][0].append(line)
                end = None if line == end else end
            elif line.startswith("$ "):
                found.append(([line[2:]], []))
                here = re.search(r"<<'(\w+)'", line)
                end = here and here[1]
            else:
                found[-1][1].append(line)
    return [("\n".join(command), expected) for command, expected in found]


def run(command, expected, folder, binary):
    """What is wrong with the answer to a command, or None."""
    environment = {"PATH": f"{binary.parent}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    answer, code = done.stdout + done.stderr, 0
    lines = answer.splitlines()
    for line in expected:
        if ended := re.fullmatch(r"exit code (\d+)", line):
            code = int(ended[1])
            continue
        pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
        at = next((at for at, given in enumerate(lines) if pattern.fullmatch(given)), None)
        if at is None:
            return f"no line {line!r} in\n{answer}"
        lines = lines[at + 1:]
    return None if done.returncode == code else f"exit code {done.returncode} instead of {code}\n{answer}"


def failures_of(page, binary):
    steps, began = commands(page), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for command, expected in steps:
            if wrong := run(command, expected, Path(folder), binary):
                return [f"{page.name}: $ {command}\n  {wrong}"]
    if steps:
        print(f"{page.name}: {len(steps)} commands in {time.monotonic() - began:.1f} s")
    return []


def slugs(page):
    """The anchors of a page's headings, as mdBook and code hosts make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        to = page.parent / path if path else page
        if re.match(r"[a-z]+:", target):
            continue
        if not to.exists():
            yield f"{target}: no such file"
        elif anchor and to.suffix == ".md" and anchor not in slugs(to):
            yield f"{target}: no such heading"


def main():
    binary = Path(sys.argv[1]).resolve()
    pages = [Path(page).resolve() for page in sys.argv[2:]] or sorted(DOCS.glob("*.md"))
    failures = [failure for page in pages for failure in failures_of(page, binary)]
    chapters = [*DOCS.glob("*.md"), *(ROOT / "evidence").glob("**/*.md")]
    for page in [*chapters, *ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("jobs/*/README.md")]:
        failures += [f"{page.relative_to(ROOT)}: {wrong}" for wrong in broken_links(page)]
    summary = DOCS / "SUMMARY.md"
    listed = {(DOCS / path).resolve() for path in re.findall(r"\]\(([^)]+\.md)\)", summary.read_text(encoding="utf-8"))}
    failures += [f"SUMMARY.md does not list {page.relative_to(ROOT)}" for page in chapters if page.resolve() not in listed | {summary}]
    print(*failures, f"{len(failures)} failures", sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
