"""The reader of scripts/reader, which knows nearprint from its documents alone, against the command."""

import json
import sys

import pyarrow.parquet as pq
import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts/reader"))
import default_profile  # noqa: E402
import nearprint_reader  # noqa: E402

NIGHTS = ["2026-11-19", "2026-11-20"]
# Not by splitlines(), which also ends lines at U+2028.
VECTORS = [json.loads(line) for line in (ROOT / "docs/vectors/default.jsonl").open(encoding="utf-8", newline="\n")]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vectors_come_out_of_the_page_alone(vector):
    known = {key: value for key, value in vector.items() if key not in ("name", "text")}
    assert default_profile.analyse(vector["text"]) == known


@pytest.fixture
def store(command, job, tmp_path):
    for night in NIGHTS:
        done = command("run", "--config", job, "--dt", night, "--create-store")
        assert done.returncode == 0, done.stderr
    return tmp_path / "store"


def test_the_store_holds_what_the_page_says_of_each_text(store):
    latest = {}
    for night in NIGHTS:
        for path in sorted((ROOT / f"sample_data/documents/dt={night}").iterdir()):
            latest |= {row["id"]: (night, row["text"]) for row in pq.read_table(path, columns=["id", "text"]).to_pylist()}
    live = nearprint_reader.live_rows(store)
    assert list(live) == NIGHTS
    seen = set()
    for night, tables in live.items():
        for outcome, name in [("fingerprinted", "fingerprints"), ("too_short", "short"), ("empty", "empty")]:
            for row in tables[name].to_pylist():
                of_night, text = latest[row["doc_id"]]
                expected = default_profile.analyse(text)
                assert (of_night, expected["outcome"]) == (night, outcome)
                if outcome == "fingerprinted":
                    assert f"{row['fingerprint']:016x}" == expected["fingerprint"]
                    assert row["sketch"].hex() == expected["sketch"]
                    assert row["n_features"] == expected["n_features"]
                if outcome != "empty":
                    assert row["text_hash"].hex() == expected["text_hash"]
                seen.add(row["doc_id"])
    assert seen == set(latest)


def test_recrawled_documents_live_in_their_last_night_alone(command, tmp_path):
    (tmp_path / "job.toml").write_text('documents = "crawl"\nstore = "store"\noutput = "out"\ncreate_store = true\n')
    text = "words of a page about commits, sorted runs, stores, tables and nights number"
    for night, ids in [("2026-11-18", "ab"), ("2026-11-20", "cab"), ("2026-11-19", "bd")]:
        folder = tmp_path / f"crawl/dt={night}"
        folder.mkdir(parents=True)
        (folder / "pages.jsonl").write_text("".join(json.dumps({"id": i, "text": f"{text} {i}{night}"}) + "\n" for i in ids))
        late = ["--late"] if night == "2026-11-19" else []
        done = command("run", "--config", "job.toml", "--dt", night, "--no-breakers", *late, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    ids = {
        until: {dt: sorted(rows["fingerprints"]["doc_id"].to_pylist()) for dt, rows in live.items()}
        for until in ["2026-11-18", "2026-11-19", "2026-11-20"]
        if (live := nearprint_reader.live_rows(tmp_path / "store", until))
    }
    assert ids == {
        "2026-11-18": {"2026-11-18": ["a", "b"]},
        "2026-11-19": {"2026-11-18": ["a"], "2026-11-19": ["b", "d"]},
        "2026-11-20": {"2026-11-18": [], "2026-11-19": ["d"], "2026-11-20": ["a", "b", "c"]},
    }


def test_nights_on_pages_are_read_before_those_of_the_commit(command, tmp_path):
    (tmp_path / "job.toml").write_text('documents = "crawl"\nstore = "store"\noutput = "out"\ncreate_store = true\n')
    nights = [f"2026-{month:02}-{day:02}" for month in (9, 10) for day in range(1, 18)]
    for number, night in enumerate(nights):
        folder = tmp_path / f"crawl/dt={night}"
        folder.mkdir(parents=True)
        (folder / "pages.jsonl").write_text(json.dumps({"id": f"page {number}", "text": f"{number} too short"}) + "\n")
        done = command("run", "--config", "job.toml", "--dt", night, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    commit = nearprint_reader.newest_commit(tmp_path / "store")
    assert (len(commit["pages"]), len(commit["nights"])) == (1, 2)
    live = nearprint_reader.live_rows(tmp_path / "store")
    assert {dt: rows["short"]["doc_id"].to_pylist() for dt, rows in live.items()} == {
        night: [f"page {number}"] for number, night in enumerate(nights)
    }


def test_results_are_those_that_the_report_counts(command, job, store):
    report = json.loads(command("report", "--config", job, "--dt", NIGHTS[1], "--json").stdout.splitlines()[-1])
    decisions = nearprint_reader.results(store, NIGHTS[1], "decisions").to_pylist()
    counted = {}
    for row in decisions:
        key = f"{row['decision']}_{row['reason']}"
        counted[key] = counted.get(key, 0) + 1
    assert counted == {key: count for key, count in report["by_reason"].items() if count}


def test_a_changed_byte_is_refused(store):
    path = next((store / "runs").glob("*/fingerprints/part-00000.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(nearprint_reader.Damaged, match="its SHA-256 is another"):
        nearprint_reader.live_rows(store)
