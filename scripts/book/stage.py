"""stage.py FOLDER: copies the chapters of docs/, evidence/ and the root below one folder, as mdBook wants them. Needs Python 3.11 alone.

README.md becomes index.md. Files that chapters link to and that are no chapters go to `beside/`. A Markdown file among them gets the ending
.txt, because mdBook takes all others for chapters.
"""
import re
import shutil
import sys
from os.path import relpath
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = {ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "evidence").glob("**/*.md")}


def staged(path, folder):
    """Where a file of the checkout goes."""
    inside = path.relative_to(ROOT)
    if inside.parts[0] == "docs":
        place = folder / inside.relative_to("docs")
    elif path in CHAPTERS or inside.parts[0] == "evidence" and path.suffix in {".svg", ".jsonl"}:
        place = folder / inside
    else:
        return folder / "beside" / (inside.with_suffix(".txt") if path.suffix == ".md" else inside)
    return place.with_name("index.md") if place.name == "README.md" else place


def stage(page, folder):
    """Copies a page, with its links, and what it links to."""
    place = staged(page, folder)

    def link(found):
        path, anchor = re.fullmatch(r"([^#]*)(#.*)?", found[1]).groups()
        target = (page.parent / path).resolve()
        if not path or re.match(r"[a-z]+:", path):
            return found[0]
        if target.is_dir():
            return f"]({relpath(folder / 'beside' / target.relative_to(ROOT), place.parent)})"
        goal = staged(target, folder)
        if target.suffix != ".md" or "beside" in goal.parts:
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, goal)
        return f"]({relpath(goal, place.parent)}{anchor or ''})"

    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(re.sub(r"\]\(([^)\s]+)\)", link, page.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs/book", folder / "book")
    shutil.copyfile(ROOT / "docs/book.toml", folder / "book.toml")
    for page in CHAPTERS:
        stage(page, folder)


if __name__ == "__main__":
    main()
