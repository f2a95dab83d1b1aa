"""supply_chain.py notices|sbom FILE: what the binary `nearprint` is made of, by `cargo metadata` for the build of Linux.

notices: the licence texts of all crates in the binary, equal texts once. sbom: the crates in CycloneDX 1.6. Both are the same bytes for the
same Cargo.lock. Needs Python 3.11 alone, and the crates' sources, which `cargo fetch` brings.
"""
import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BINARY = "nearprint-cli"
LICENCE_FILE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# What the project itself includes from elsewhere.
OWN = [("the cppjieba data in nearprint-tokenize", ROOT / "crates/tokenize/src/cppjieba")]


def metadata():
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-gnu"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def in_binary(cargo):
    """The packages that the binary is linked from: normal dependencies, not those of builds and tests."""
    nodes = {node["id"]: node for node in cargo["resolve"]["nodes"]}
    packages = {package["id"]: package for package in cargo["packages"]}
    waiting, seen = [next(id for id, package in packages.items() if package["name"] == BINARY)], set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [d["pkg"] for d in nodes[node]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
    return sorted((packages[id] for id in seen), key=lambda package: (package["name"], package["version"])), nodes, seen


def licence_files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file() and LICENCE_FILE.match(path.name))


def notices(packages):
    texts, without = defaultdict(list), []
    sources = [(f"{p['name']} {p['version']} ({p['license']})", Path(p["manifest_path"]).parent) for p in packages if p["source"]]
    for name, folder in sources + OWN:
        files = licence_files(folder)
        for path in files:
            texts[path.read_text(encoding="utf-8", errors="replace").strip()].append(name)
        if not files:
            without.append(name)
    parts = ["nearprint is under the Apache License 2.0. Its binary contains the software below, under the licences that follow."]
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        parts.append("\n".join(["=" * 80, *sorted(set(names)), "-" * 80, text]))
    parts.append("\n".join(["=" * 80, "Without a licence text in their packages, under the licences that they name:", *without]))
    return "\n\n".join(parts) + "\n"


def sbom(packages, nodes, seen):
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}

    def component(package, kind="library"):
        name, version = package["name"], package["version"]
        found = {"type": kind, "bom-ref": f"{name}@{version}", "name": name, "version": version}
        # Two crates name several licences with a slash, the form before SPDX expressions.
        found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum := checksums.get((name, version)):
            found |= {"purl": f"pkg:cargo/{name}@{version}", "hashes": [{"alg": "SHA-256", "content": checksum}]}
        return found

    refs = {package["id"]: f"{package['name']}@{package['version']}" for package in packages}
    edges = [{"ref": refs[id], "dependsOn": sorted({refs[d["pkg"]] for d in nodes[id]["deps"] if d["pkg"] in seen and d["pkg"] in refs})}
             for id in refs]
    main = next(package for package in packages if package["name"] == BINARY)
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": component(main, "application")},
        "components": [component(package) for package in packages if package is not main],
        "dependencies": sorted(edges, key=lambda edge: edge["ref"]),
    }, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["notices", "sbom"])
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    packages, nodes, seen = in_binary(metadata())
    made = notices(packages) if arguments.what == "notices" else sbom(packages, nodes, seen)
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    arguments.file.write_text(made, encoding="utf-8")
    print(f"{arguments.file}: {len(packages)} packages", file=sys.stderr)


if __name__ == "__main__":
    main()
