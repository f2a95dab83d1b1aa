"""Tables of Delta Lake and Iceberg that other programs wrote, beside what these programs read from them."""

from __future__ import annotations

import base64
import datetime
import gzip
import json
import pathlib
import random
import shutil
import struct
import uuid
import zlib
from collections.abc import Callable

import nearprint
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType, TimestampType, UUIDType
from pyroaring import BitMap64

DAY, NEXT = datetime.date(2026, 11, 20), datetime.date(2026, 11, 21)
WORDS = [f"word{n}" for n in range(5000)]
Rows = list[tuple[str, str]]


def made(first: int, n: int, day: datetime.date = DAY, **more: object) -> pa.Table:
    """Rows whose texts are not alike: no night drops one of them."""
    texts = [" ".join(random.Random(seed).choices(WORDS, k=40)) for seed in range(first, first + n)]
    stamp = pa.array([datetime.datetime(day.year, day.month, day.day, 23, 59)] * n, pa.timestamp("us"))
    columns = {"id": [f"p{number}" for number in range(first, first + n)], "text": texts, "dt": [day] * n, "ts": stamp}
    return pa.table({**columns, **{name: pa.array([value] * n) for name, value in more.items()}})


def listed(rows: pa.Table) -> Rows:
    """The ids and the texts, sorted."""
    return sorted(zip(rows["id"].to_pylist(), rows["text"].to_pylist()))


def night(tmp_path: pathlib.Path, documents: object, dt: datetime.date = DAY, **options: object) -> Rows:
    """The ids and the texts of the documents of a night, as `filter` writes them. Every document has a decision and stays."""
    place = tmp_path / f"night-{uuid.uuid4()}"
    config = {"documents": str(documents), "store": str(place / "store"), "output": str(place / "results"), "create_store": True}
    nearprint.run(config, dt, no_breakers=True, **options)
    decisions = pq.read_table(place / "results/decisions")["doc_id"].to_pylist()
    nearprint.filter(config, place / "texts", corpus=True, texts="parquet")
    rows = listed(pq.read_table(place / "texts"))
    assert [id for id, _ in rows] == sorted(decisions)
    return rows


def refused(tmp_path: pathlib.Path, documents: object, **options: object) -> tuple[int, str]:
    """The exit code and the words of a night that is refused."""
    with pytest.raises(nearprint.Error) as raised:
        night(tmp_path, documents, **options)
    return raised.value.exit_code, str(raised.value)


def rows_of_delta(table: pathlib.Path, dt: datetime.date = DAY, version: int | None = None) -> Rows:
    """What deltalake reads."""
    query = QueryBuilder().register("t", DeltaTable(table, version=version))
    return listed(pa.table(query.execute(f"select id, text from t where dt = '{dt}'")))


def delta(table: pathlib.Path, *parts: pa.Table, **configuration: str) -> pathlib.Path:
    """A table that is partitioned by `dt`, with a version for each part."""
    settings = {f"delta.{name}": value for name, value in configuration.items()}
    for number, part in enumerate(parts):
        write_deltalake(table, part, mode="append", partition_by=["dt"], configuration=settings if number == 0 else None)
    return table


DELTA_CHANGES: list[Callable[[pathlib.Path], object]] = [
    lambda table: delta(table, made(0, 6), made(6, 3, NEXT)),
    lambda table: delta(table, made(10, 6)),
    lambda table: DeltaTable(table).delete("id = 'p3'"),
    lambda table: DeltaTable(table).update(predicate="id = 'p4'", updates={"text": "concat(text, ' and more')"}),
    lambda table: (
        DeltaTable(table).merge(made(14, 4), "t.id = s.id", source_alias="s", target_alias="t").when_matched_delete().when_not_matched_insert_all().execute()
    ),
    lambda table: DeltaTable(table).create_checkpoint(),
    lambda table: write_deltalake(table, made(20, 4, lang="de"), mode="append", schema_mode="merge"),
    lambda table: DeltaTable(table).alter.set_table_properties({"delta.enableDeletionVectors": "true"}),
    lambda table: DeltaTable(table).delete("id = 'p20'"),
    lambda table: DeltaTable(table).optimize.compact(),
    lambda table: DeltaTable(table).optimize.z_order(["id"]),
    lambda table: DeltaTable(table).restore(2),
    lambda table: write_deltalake(table, made(30, 5), mode="overwrite", predicate=f"dt = '{DAY}'"),
    lambda table: (DeltaTable(table).create_checkpoint(), DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)),
    lambda table: delta(table, made(40, 2)),
]


def test_each_change_of_a_delta_table_is_read_as_its_writer_reads_it(tmp_path):
    table, seen = tmp_path / "table", []
    for change in DELTA_CHANGES:
        change(table)
        seen.append(night(tmp_path, table))
        assert seen[-1] == rows_of_delta(table)
    assert len({tuple(rows) for rows in seen}) > 8
    assert night(tmp_path, table, NEXT) == rows_of_delta(table, NEXT) == listed(made(6, 3))


def test_a_delta_table_is_read_at_each_version_and_since_each(tmp_path):
    table = tmp_path / "table"
    for change in DELTA_CHANGES[:4]:
        change(table)
    newest = DeltaTable(table).version()
    files = [{uri for uri in DeltaTable(table, version=version).file_uris() if f"dt={DAY}" in uri} for version in range(newest + 1)]
    for version in range(newest + 1):
        assert night(tmp_path, table, documents_version=version) == rows_of_delta(table, version=version)
        if added := files[newest] - files[version]:
            expected = sorted(row for uri in added for row in listed(pq.read_table(uri)))
            assert night(tmp_path, f"{table}/dt={{dt}}", documents_since=version) == expected
        else:
            assert refused(tmp_path, f"{table}/dt={{dt}}", documents_since=version)[0] == 66
    # Without the place of the date in its path, it is the whole table that got them.
    got = {uri for uri in DeltaTable(table, version=2).file_uris()} - {uri for uri in DeltaTable(table, version=0).file_uris()}
    expected = sorted(row for uri in got for row in listed(pq.read_table(uri)))
    assert night(tmp_path, table, documents_version=2, documents_since=0) == expected
    code, said = refused(tmp_path, table, documents_version=99)
    assert code == 78 and f"documents_version: {table} has no version 99: the newest is {newest}" in said
    code, said = refused(tmp_path, table, documents_since=99)
    assert code == 78 and f"documents_since: {table}: version 99 is later than version {newest}, which is read" in said
    DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
    code, said = refused(tmp_path, table, documents_version=0)
    assert code == 65 and "which is gone: name a newer version" in said


def test_a_delta_table_may_have_its_nights_in_each_form_of_partitions(tmp_path):
    rows = made(0, 4)
    forms = {
        "dt={dt}": {"dt": [DAY, DAY, None, NEXT]},
        "_dt={dt}": {"_dt": [str(DAY)] * 4},
        "dt={dt:%Y%m%d}": {"dt": [20261120] * 4},
        "year={yyyy}/month={dt:%-m}/day={dt:%-d}": {"year": [2026] * 4, "month": [11] * 4, "day": [20] * 4},
        "dt={dt}/lang=a%20b": {"dt": [DAY] * 4, "lang": ["a b", "a b", "50%", "ä/x"]},
    }
    for number, (form, columns) in enumerate(forms.items()):
        write_deltalake(tmp_path / f"{number}", pa.table({"id": rows["id"], "text": rows["text"], **columns}), partition_by=list(columns))
        expected = rows.slice(0, 2 if form in ("dt={dt}", "dt={dt}/lang=a%20b") else 4)
        assert night(tmp_path, f"{tmp_path}/{number}/{form}") == listed(expected), form
    assert len(night(tmp_path, tmp_path / "4")) == 4
    # A table without partitions is a night as a whole.
    write_deltalake(tmp_path / f"whole/{DAY}", rows)
    write_deltalake(tmp_path / f"whole/{DAY}", made(10, 2), mode="append")
    assert night(tmp_path, f"{tmp_path}/whole/{{dt}}") == listed(pa.concat_tables([rows, made(10, 2)]))
    assert night(tmp_path, f"{tmp_path}/whole/{{dt}}", documents_since=0) == listed(made(10, 2))


def vector(rows: set[int], runs: bool = True) -> bytes:
    """A deletion vector: magic number, and a 64-bit Roaring bitmap in the portable format, with containers of runs or without."""
    bitmap = BitMap64(rows)
    if runs:
        bitmap.run_optimize()
    return struct.pack("<I", 1681511377) + bitmap.serialize()


def framed(vector: bytes) -> bytes:
    """A deletion vector as it lies in a file."""
    return struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))


def z85(data: bytes) -> str:
    """Base 85 with the digits of ZeroMQ."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    theirs, ours = digits[:10] + digits[36:] + digits[10:36] + "!#$%&()*+-;<=>?@^_`{|}~", digits + ".-:+=^!/*?&<>()[]{}@%$#"
    return base64.b85encode(data + bytes(-len(data) % 4)).decode().translate(str.maketrans(theirs, ours))


def delete_by_vector(table: pathlib.Path, version: int, storage: str, rows: set[int]) -> None:
    """Commits a version that deletes rows of the only file of the table, by a vector of a storage type."""
    log = [json.loads(line) for line in (table / f"_delta_log/{version - 1:020}.json").read_text().splitlines()]
    (before,) = [action["add"] for action in log if "add" in action]
    name, content = uuid.uuid4(), vector(rows, runs=storage == "u")
    (table / f"deletion_vector_{name}.bin").write_bytes(b"\1" + framed(content))
    path = {"i": z85(content), "u": z85(name.bytes), "p": f"file://{table}/deletion_vector_{name}.bin"}[storage]
    told = {"storageType": storage, "pathOrInlineDv": path, "sizeInBytes": len(content), "cardinality": len(rows)}
    after = {**before, "deletionVector": told if storage == "i" else {**told, "offset": 1}}
    remove = {"path": before["path"], "dataChange": True, "deletionTimestamp": 1, "deletionVector": before.get("deletionVector")}
    (table / f"_delta_log/{version:020}.json").write_text(json.dumps({"remove": remove}) + "\n" + json.dumps({"add": after}))


def test_deletion_vectors_are_read_as_deltalake_reads_them(tmp_path):
    # Of the wide table's vector, the containers are runs or bitmaps, and one array.
    wide = pa.table({"id": [f"p{n}" for n in range(140_000)], "text": [f"text {n}" for n in range(140_000)], "dt": [DAY] * 140_000})
    most = set(range(132_000)) - set(range(0, 132_000, 9_000)) | set(range(132_010, 140_000))
    for storage, rows, gone in [("i", made(0, 9), {0, 3}), ("u", made(0, 9), {8}), ("p", made(0, 9), {1, 2}), ("u", wide, most), ("p", wide, most)]:
        table = delta(tmp_path / f"table-{uuid.uuid4()}", rows, enableDeletionVectors="true")
        delete_by_vector(table, 1, storage, gone)
        read = night(tmp_path, table)
        assert read == rows_of_delta(table) and len(read) == rows.num_rows - len(gone)
    table = delta(tmp_path / "table", made(0, 9), enableDeletionVectors="true")
    delete_by_vector(table, 1, "u", {0, 3})
    delete_by_vector(table, 2, "i", {0, 3, 4})
    for change in (lambda: None, DeltaTable(table).create_checkpoint, lambda: DeltaTable(table).delete("id = 'p1'")):
        change()
        assert night(tmp_path, table) == rows_of_delta(table)
    assert [id for id, _ in night(tmp_path, table)] == ["p2", "p5", "p6", "p7", "p8"]


@pytest.mark.parametrize("form", ["sidecars", "parts"])
def test_checkpoints_of_other_forms_are_read_as_deltalake_reads_them(form, tmp_path):
    table = delta(tmp_path / "table", made(0, 5), made(5, 5), enableDeletionVectors="true")
    DeltaTable(table).create_checkpoint()
    log = table / "_delta_log"
    name = f"{1:020}.checkpoint"
    state = pq.read_table(log / f"{name}.parquet")
    if form == "parts":
        for part, rows in enumerate((state.slice(0, 2), state.slice(2)), 1):
            pq.write_table(rows, log / f"{name}.{part:010}.{2:010}.parquet")
    else:
        (log / "_sidecars").mkdir()
        files = state.filter(state["add"].is_valid()).select(["add"])
        pq.write_table(files, log / "_sidecars/files.parquet")
        size = (log / "_sidecars/files.parquet").stat().st_size
        first = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors", "timestampNtz", "v2Checkpoint"]}
        protocol["writerFeatures"] = protocol["readerFeatures"]
        told = {"path": "files.parquet", "sizeInBytes": size, "modificationTime": 0}
        actions = [{"checkpointMetadata": {"version": 1}}, {"protocol": protocol}, {"sidecar": told}, *(action for action in first if "metaData" in action)]
        (log / f"{name}.{uuid.uuid4()}.json").write_text("\n".join(map(json.dumps, actions)))
    for path in (log / f"{name}.parquet", log / f"{0:020}.json", log / "_last_checkpoint"):
        path.unlink()
    assert night(tmp_path, table) == rows_of_delta(table) == listed(made(0, 10))
    delta(table, made(20, 3))
    assert night(tmp_path, table) == rows_of_delta(table)
    code, said = refused(tmp_path, table, documents_version=0)
    assert code == 65 and "versions from 1 on are complete" in said


def test_delta_tables_that_are_not_read_are_refused_by_their_reason(tmp_path):
    fields = pa.schema([("id", pa.string()), ("text", pa.string()), ("dt", pa.date32())])
    mapping = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    DeltaTable.create(tmp_path / "mapped", fields, partition_by=["dt"], configuration=mapping)
    write_deltalake(tmp_path / "mapped", made(0, 3).drop_columns(["ts"]), mode="append")
    assert len(rows_of_delta(tmp_path / "mapped")) == 3
    write_deltalake(tmp_path / "by-id", made(0, 3), partition_by=["dt", "id"])
    write_deltalake(tmp_path / "plain", made(0, 3))
    shutil.copytree(delta(tmp_path / "whole", made(0, 3)), tmp_path / "no-log")
    (tmp_path / f"no-log/_delta_log/{0:020}.json").unlink()
    cases = {
        tmp_path / "mapped": (65, "has column mapping"),
        tmp_path / "by-id": (65, "it is a partition column of the Delta table"),
        tmp_path / "plain": (78, "without the partition column 'dt' (it has none)"),
        tmp_path / "no-log": (65, "its log has no version at all"),
        f"{tmp_path}/whole/dt={{dt}}/*.parquet": (65, "is a Delta table: rows that it removed still stand"),
        "delta://table": (64, "name the table's folder, as a local path or s3://bucket/prefix"),
        "iceberg://catalog/pages": (64, "name the table's folder, as a local path or s3://bucket/prefix"),
    }
    for place, (code, said) in cases.items():
        found = refused(tmp_path, place)
        assert found[0] == code and said in found[1], found


PAGES = Schema(
    NestedField(1, "id", StringType()), NestedField(2, "text", StringType()), NestedField(3, "dt", DateType()), NestedField(4, "ts", TimestampType())
)
BY_DT = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "dt"))
BY_DAY = PartitionSpec(PartitionField(4, 1000, DayTransform(), "ts_day"))


def iceberg(tmp_path: pathlib.Path, spec: PartitionSpec = BY_DT, schema: Schema = PAGES, version: int = 2) -> tuple[Table, pathlib.Path]:
    """An empty table of pyiceberg, and its folder, which has the name of the night."""
    place = tmp_path / f"lake-{uuid.uuid4()}"
    place.mkdir()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}")
    catalog.create_namespace("crawl")
    folder = place / str(DAY)
    settings = {"format-version": str(version)}
    return catalog.create_table("crawl.pages", schema, location=f"file://{folder}", partition_spec=spec, properties=settings), folder


def rows_of_iceberg(table: Table, whole: bool = False, snapshot: int | None = None) -> Rows:
    """What pyiceberg reads."""
    scan = table.scan(snapshot_id=snapshot)
    return listed((scan if whole else scan.filter(f"dt = '{DAY}'")).to_arrow())


def evolve(table: Table) -> None:
    """Adds a column, drops one, and adds rows."""
    with table.update_schema() as update:
        update.add_column("score", LongType())
        update.delete_column("ts")
    table.append(made(20, 4, score=7).drop_columns(["ts"]))


ICEBERG_CHANGES: list[Callable[[Table], object]] = [
    lambda table: table.append(pa.concat_tables([made(0, 6), made(6, 3, NEXT)])),
    lambda table: table.append(made(10, 5)),
    lambda table: table.delete("id = 'p3'"),
    lambda table: table.overwrite(made(11, 2), overwrite_filter="id in ('p11', 'p12', 'p13')"),
    lambda table: table.manage_snapshots().rollback_to_snapshot(table.snapshots()[1].snapshot_id).commit(),
    lambda table: table.upsert(made(12, 5), join_cols=["id"]),
    lambda table: table.append(made(50, 2), branch="main"),
]


@pytest.mark.parametrize(("spec", "below", "version"), [(BY_DT, "", 1), (BY_DAY, "ts_day={dt}", 2), (PartitionSpec(), None, 2)])
def test_each_change_of_an_iceberg_table_is_read_as_its_writer_reads_it(spec, below, version, tmp_path):
    table, folder = iceberg(tmp_path, spec, version=version)
    whole = below is None
    place = f"{folder.parent}/{{dt}}" if whole else folder / below
    changes = [*ICEBERG_CHANGES, *([evolve] if spec is not BY_DAY else []), lambda table: table.delete("id = 'p0'")]
    for change in changes:
        change(table)
        rows = rows_of_iceberg(table, whole)
        assert night(tmp_path, place) == rows and len(rows) >= 6
    for snapshot in (snapshot.snapshot_id for snapshot in table.snapshots()[1::2]):
        assert night(tmp_path, place, documents_version=snapshot) == rows_of_iceberg(table, whole, snapshot)
        then = {task.file.file_path for task in table.scan(snapshot_id=snapshot).plan_files()}
        names = [task.file.file_path for task in table.scan().plan_files() if task.file.file_path not in then]
        added = [listed(pq.read_table(name)) for name in names if whole or str(DAY) in name.removeprefix(table.location())]
        if added:
            assert night(tmp_path, place, documents_since=snapshot) == sorted(sum(added, []))
    # A copy is read where it lies.
    copy = shutil.copytree(folder, tmp_path / f"copy/{DAY}")
    shutil.rmtree(folder)
    assert night(tmp_path, f"{copy.parent}/{{dt}}" if whole else copy / below) == rows


def test_metadata_of_iceberg_may_be_named_in_a_list_and_may_be_compressed(tmp_path):
    table, folder = iceberg(tmp_path)
    table.append(made(0, 3))
    older, names = table.metadata_location, tmp_path / "list.txt"
    table.append(made(10, 3))
    names.write_text(older.removeprefix("file://"))
    assert night(tmp_path, folder, files_from=names) == listed(made(0, 3))
    newest = pathlib.Path(table.metadata_location.removeprefix("file://"))
    packed = newest.with_name("00009-packed.gz.metadata.json")
    packed.write_bytes(gzip.compress(newest.read_bytes()))
    newest.unlink()
    assert night(tmp_path, folder) == rows_of_iceberg(StaticTable.from_metadata(f"file://{packed}")) == listed(pa.concat_tables([made(0, 3), made(10, 3)]))


class DeleteManifest(ManifestWriterV2):
    """pyiceberg writes no manifests of deletes of its own accord. Those of version 3 say where in a file a vector is."""

    version = 2

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}

    def new_writer(self) -> AvroOutputFile:
        schema = self._with_partition(self.version)
        return AvroOutputFile(output_file=self._output_file, file_schema=schema, record_schema=schema, schema_name="manifest_entry", metadata=self._meta)


class VectorManifest(DeleteManifest):
    version = 3


def add_deletes(table: Table, file: str, n: int, content: DataFileContent = DataFileContent.POSITION_DELETES, **more: object) -> None:
    """Commits a file of deletes that lies in the folder of the data."""
    size = (pathlib.Path(table.location().removeprefix("file://")) / "data" / file).stat().st_size
    manifest = VectorManifest if "content_offset" in more else DeleteManifest
    partition = next(iter(table.scan(row_filter=f"dt = '{DAY}'").plan_files())).file.partition
    told = {"file_path": f"{table.location()}/data/{file}", "file_format": FileFormat(file.split(".")[1].upper()), "file_size_in_bytes": size}
    data_file = DataFile.from_args(_table_format_version=manifest.version, content=content, partition=partition, record_count=n, **told, **more)
    data_file.spec_id = 0

    class Append(_FastAppendFiles):
        def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriterV2:
            return manifest(spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression)

    with table.transaction() as transaction:
        Append(operation=Operation.DELETE, transaction=transaction, io=table.io).append_data_file(data_file).commit()


def test_rows_that_iceberg_deletes_by_position_are_left_out_as_pyiceberg_leaves_them_out(tmp_path):
    table, folder = iceberg(tmp_path, version=1)
    table.append(made(0, 9))
    table.append(made(10, 4))
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    second, first = (task.file.file_path for task in table.scan().plan_files())
    read = []

    def delete(name: str, rows: list[tuple[str, int]]) -> None:
        pq.write_table(pa.table({"file_path": [path for path, _ in rows], "pos": [row for _, row in rows]}), folder / "data" / name)
        add_deletes(table, name, len(rows))

    def replace() -> None:
        table.delete(f"dt = '{DAY}'")
        table.add_files([first, second])

    for change in [
        lambda: delete("one.parquet", [(first, 1), (first, 3), (second, 0)]),
        lambda: table.append(made(20, 3)),
        lambda: delete("two.parquet", [(second, 0), (second, 1), ("file:///gone.parquet", 1)]),
        lambda: table.delete("id = 'p2'"),
        # The same files, added after the deletes, have all their rows again.
        replace,
    ]:
        change()
        read.append(night(tmp_path, folder))
        assert read[-1] == rows_of_iceberg(table)
    assert [len(rows) for rows in read] == [10, 13, 12, 11, 13]
    deleted = table.snapshots()[2].snapshot_id
    assert night(tmp_path, folder, documents_version=deleted) == rows_of_iceberg(table, snapshot=deleted) == read[0]


def test_rows_that_a_vector_of_iceberg_deletes_are_left_out_as_pyiceberg_leaves_them_out(tmp_path):
    table, folder = iceberg(tmp_path)
    table.append(made(0, 9))
    (of,) = (task.file.file_path for task in table.scan().plan_files())
    blob = framed(vector({0, 4}))
    about = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4, "length": len(blob)}
    footer = json.dumps({"blobs": [{**about, "properties": {"referenced-data-file": of, "cardinality": "2"}}], "properties": {}}).encode()
    puffin = b"PFA1" + blob + b"PFA1" + footer + struct.pack("<II", len(footer), 0) + b"PFA1"
    (folder / "data/vector.puffin").write_bytes(puffin)
    add_deletes(table, "vector.puffin", 2, referenced_data_file=of, content_offset=4, content_size_in_bytes=len(blob))
    assert night(tmp_path, folder) == rows_of_iceberg(table) == [row for row in listed(made(0, 9)) if row[0] not in ("p0", "p4")]


def test_an_iceberg_table_may_be_partitioned_by_uuids(tmp_path):
    schema = Schema(*PAGES.fields[:3], NestedField(5, "crawl", UUIDType()))
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "dt"), PartitionField(5, 1001, IdentityTransform(), "crawl"))
    table, folder = iceberg(tmp_path, spec, schema)
    crawls = pa.array([uuid.uuid4().bytes for _ in range(3)], pa.binary(16))
    table.append(made(0, 3).select(["id", "text", "dt"]).append_column("crawl", crawls))
    assert night(tmp_path, folder) == rows_of_iceberg(table) == listed(made(0, 3))


def renamed(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("text", "body")


def deleted_by_value(table: Table) -> None:
    name = "values.parquet"
    pq.write_table(pa.table({"id": ["p1"]}), pathlib.Path(table.location().removeprefix("file://")) / "data" / name)
    add_deletes(table, name, 1, DataFileContent.EQUALITY_DELETES, equality_ids=[1])


def swapped(table: Table) -> None:
    for old, new in (("text", "other"), ("summary", "text"), ("other", "summary")):
        with table.update_schema() as update:
            update.rename_column(old, new)


def added_again(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("text")
    with table.update_schema() as update:
        update.add_column("text", StringType())


@pytest.mark.parametrize("change", [swapped, added_again])
def test_columns_are_known_by_their_numbers_once_the_schemas_of_before_are_gone(change, tmp_path):
    columns = [NestedField(1, "id", StringType()), NestedField(2, "text", StringType()), NestedField(3, "dt", DateType()), NestedField(5, "summary", StringType())]
    table, folder = iceberg(tmp_path, schema=Schema(*columns))
    table.append(made(0, 3, summary="in short").select(["id", "text", "dt", "summary"]))
    change(table)
    table.append(made(10, 1, summary="in short").select([field.name for field in table.schema().fields]))
    newest = pathlib.Path(table.metadata_location.removeprefix("file://"))
    told = json.loads(newest.read_text())
    told["snapshots"] = [snapshot for snapshot in told["snapshots"] if snapshot["snapshot-id"] == told["current-snapshot-id"]]
    told["schemas"] = [schema for schema in told["schemas"] if schema["schema-id"] == told["current-schema-id"]]
    newest.with_name("00099-cleaned.metadata.json").write_text(json.dumps(told))
    code, said = refused(tmp_path, folder)
    assert code == 65 and "dropped or renamed the column 'text' since" in said


def nothing(table: Table) -> None:
    """Leaves the table as it is."""


REFUSALS = [
    (BY_DT, renamed, "", {}, 65, "has renamed the column 'body'"),
    (BY_DT, deleted_by_value, "", {}, 65, "deletes rows by their values (equality deletes)"),
    (BY_DT, nothing, "", {"documents_version": 17}, 78, "has no snapshot 17: it has "),
    (BY_DT, nothing, "", {"documents_since": 17}, 78, "documents_since: "),
    (BY_DT, nothing, "lang={dt}", {}, 78, "without the partition field 'lang' (dt)"),
    (PartitionSpec(), nothing, "", {}, 78, "without the partition field 'dt' (it has none)"),
    (PartitionSpec(PartitionField(3, 1000, BucketTransform(4), "bucket")), nothing, "bucket={dt}", {}, 65, "only values of columns and days name a night"),
    (BY_DT, lambda table: table.delete(f"dt = '{DAY}'"), "", {}, 66, "no documents at"),
]


@pytest.mark.parametrize(("spec", "change", "below", "options", "code", "said"), REFUSALS, ids=[case[-1] for case in REFUSALS])
def test_iceberg_tables_that_are_not_read_are_refused_by_their_reason(spec, change, below, options, code, said, tmp_path):
    table, folder = iceberg(tmp_path, spec)
    table.append(made(0, 4))
    change(table)
    found = refused(tmp_path, folder / below, **options)
    assert found[0] == code and said in found[1]
