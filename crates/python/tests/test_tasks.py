"""Tasks: a specification and descriptions in, Arrow batches out."""

import json
import os
import shutil
import threading

import nearprint
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT


@pytest.fixture
def file(tmp_path):
    """The first sample night, with a date that its version is."""
    path = tmp_path / "part-00000.parquet"
    shutil.copyfile(ROOT / "sample_data/documents/dt=2026-11-19/part-00000.parquet", path)
    os.utime(path, (1767225600, 1767225600))
    return path


def specification(**changes):
    spec = {
        "columns": {"id": "id", "text": "text", "keep": []},
        "keep_types": [],
        "profile": nearprint.profile(),
        "analyzer_resources": {"user_dictionary": None, "stop_words": None, "idf": None},
        "max_doc_bytes": 1 << 26,
        "passes_over_files": False,
        "revisits": "passed_over",
        "words": "whole",
        "memory_limit": None,
        "threads": 2,
    }
    return json.dumps({**spec, **changes})


def description(file, version="2026-01-01T00:00:00+00:00"):
    place = {"file": str(file), "version": version, "row_groups": {"start": 0, "end": 1}}
    return json.dumps({"range": place, "position": 0})


def read(batches):
    """The rows and the notes of a task, as pyarrow tables."""
    read = {"rows": [], "notes": []}
    for kind, batch in batches:
        read[kind].append(pa.table(batch))
    return read


def test_a_fingerprint_task_gives_the_fingerprints_of_its_range(documents, file):
    context = nearprint.FingerprintContext(specification())
    for _ in range(2):
        rows = pa.concat_tables(read(nearprint.fingerprint_task(context, description(file)))["rows"])
        assert rows["doc_id"].to_pylist() == [str(id) for id in documents["id"].to_pylist()]
        assert rows["fingerprint"].to_pylist() == nearprint.fingerprint(documents["text"]).to_pylist()
        assert rows["sketch"].to_pylist() == nearprint.sketch(documents["text"]).to_pylist()


def test_tasks_fail_as_the_command_does(file):
    with pytest.raises(ValueError, match="spec"):
        nearprint.FingerprintContext("{}")
    context = nearprint.FingerprintContext(specification())
    with pytest.raises(ValueError, match="task"):
        nearprint.fingerprint_task(context, "{}")
    batches = nearprint.fingerprint_task(context, description(file, version="another"))
    with pytest.raises(nearprint.Error) as raised:
        next(batches)
    assert (raised.value.kind, raised.value.exit_code) == ("try_again", 75)
    assert list(batches) == [], "an exception ends the batches"


def test_each_batch_reaches_one_of_several_threads_and_none_takes_a_wait_for_the_end(file):
    context = nearprint.FingerprintContext(specification())
    wanted = sum(len(pa.table(batch)) for _, batch in nearprint.fingerprint_task(context, description(file)))
    batches, lock, rows = nearprint.fingerprint_task(context, description(file)), threading.Lock(), []
    ended, after_end = threading.Event(), []

    def read():
        while True:
            has_ended = ended.is_set()
            try:
                _, batch = next(batches)
            except ValueError as busy:
                assert "another thread waits" in str(busy)
            except StopIteration:
                ended.set()
                return
            else:
                with lock:
                    rows.append(len(pa.table(batch)))
                    after_end.append(has_ended)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(rows) == wanted > 0 and not any(after_end)


PARTS = [([0, 3], [0b0000, 0b0111]), ([2], [2**64 - 1])]
"""The rows of each part of a batch of four documents, and their fingerprints. The row 1 has none."""


def write_arrow(path, batches):
    with pa.ipc.new_file(path, batches[0].schema) as file:
        for batch in batches:
            file.write_table(batch)


def task(**of):
    return json.dumps({"itself": {"slice": 0, **of}})


def test_map_tasks_give_the_pairs_of_the_parts_of_their_batch(tmp_path):
    spec = {
        "keys": [
            {
                "of": {"key": "fingerprint", "existing": False, "itself": True},
                "bits": 64,
                "max_distance": 3,
                "prefix_distances": None,
            }
        ],
        # The fingerprints 0 and 7, and the last one.
        "parts": [
            {"batches": {"start": 0, "end": 1}, "n_rows": 2, "n_values": 2, "first_class": 0, "n_classes": 2},
            {"batches": {"start": 1, "end": 2}, "n_rows": 1, "n_values": 1, "first_class": 2, "n_classes": 1},
        ],
        "max_distance": 3,
        "n_words": 0,
        "max_word_distance": 0,
        "max_sketch_distance": None,
        "max_own_distance": 3,
        "max_own_sketch_distance": None,
        "judged_to": None,
        "max_looks": 0,
        "max_lost_share": 1.0,
        "itself": True,
        "ids_are_names": True,
        "want": "all_pairs",
        "notes_classes": False,
        "existing": [],
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    parts = [pa.table({"row": pa.array(rows, pa.uint32()), "fingerprint": pa.array(of_rows, pa.uint64())}) for rows, of_rows in PARTS]
    write_arrow(tmp_path / "parts.arrow", parts)
    write_arrow(tmp_path / "ids.arrow", [pa.table({"doc_id": ["a", "b", "c", "d"]})])
    write_arrow(tmp_path / "first-ids.arrow", [pa.table({"doc_id": ["a"]})])
    no_rows = pa.table({"file": pa.array([], pa.string()), "row": pa.array([], pa.uint32())})
    for name in ("shadowed", "restored"):
        (tmp_path / name).mkdir()
        pq.write_table(no_rows, tmp_path / name / "part-00000.parquet", write_page_checksum=True)
    context = nearprint.MapContext(tmp_path, threads=2)
    done = read(nearprint.map_task(context, task(part=0, other=None, values={"start": 0, "end": 2})))
    pairs = pa.concat_tables(done["rows"]).to_pylist()
    assert [(pair["a"], pair["b"], pair["distance"]) for pair in pairs] == [(0, 3, 3)]
    assert done["notes"][-1]["n_candidates"].to_pylist() == [1]
    two = read(nearprint.map_task(context, task(part=0, other=1, values={"start": 2, "end": 3})))
    assert two["rows"] == [] and two["notes"][-1]["n_rows"].to_pylist() == [1]
    with pytest.raises(nearprint.Error, match="there is no part 2 of the batch"):
        list(nearprint.map_task(context, task(part=2, other=None, values={"start": 0, "end": 1})))
    with pytest.raises(nearprint.Error) as raised:
        nearprint.MapContext(tmp_path / "none")
    assert raised.value.file.endswith("spec.json")
