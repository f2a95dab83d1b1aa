"""The near-duplicates of the sample data, in pyarrow, Polars and DuckDB. Run it in the checkout, whole or cell by cell (`# %%`) in an editor
that knows notebooks; docs/python.md describes the functions. It writes below out/ only.
"""

# %% Fingerprints of a column: the texts of one night, with pyarrow
import duckdb
import nearprint
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

night = pq.read_table("sample_data/documents/dt=2026-11-19")
fingerprints = pa.array(nearprint.fingerprint(night["text"]))
print(len(fingerprints), "documents,", fingerprints.null_count, "of them too short for a fingerprint")

# %% All pairs within 12 bits; of these, the pairs whose sketches also agree, as a run decides with its defaults
sketches = pa.array(nearprint.sketch(night["text"]))
candidates = pa.table(nearprint.pairs_within(fingerprints, 12))
apart = pa.array(nearprint.hamming(sketches.take(candidates["a"]), sketches.take(candidates["b"])))
pairs = candidates.filter(pc.less_equal(apart, 36))
print(candidates.num_rows, "candidates,", pairs.num_rows, "pairs")
for a, b in zip(pairs["a"].to_pylist()[:3], pairs["b"].to_pylist()[:3]):
    print(" ", night["id"][a], "is near", night["id"][b])

# %% The same in Polars: its columns go in as they are, and tables come out
frame = pl.read_parquet("sample_data/documents/dt=2026-11-19/*.parquet")
rows = pl.DataFrame(nearprint.pairs_within(nearprint.fingerprint(frame["text"]), 12))
sketched = pl.Series(nearprint.sketch(frame["text"]))
apart = pl.Series(nearprint.hamming(sketched.gather(rows["a"]), sketched.gather(rows["b"])))
near = rows.filter(apart <= 36)
ids = frame["id"]
named = near.select(id_a=ids.gather(near["a"]), id_b=ids.gather(near["b"]), distance="distance")
print(named.height, "pairs in Polars, the farthest", named["distance"].max(), "bits apart")

# %% The same in DuckDB: a relation goes in, and DuckDB reads what comes out by the name of its variable
texts = duckdb.sql("SELECT text FROM 'sample_data/documents/dt=2026-11-19/*.parquet'")
prepared = pa.table({"fingerprint": pa.array(nearprint.fingerprint(texts)), "sketch": pa.array(nearprint.sketch(texts))})
joined = pa.table(nearprint.join(prepared, prepared))
count = duckdb.sql("SELECT count(*) FROM joined WHERE query < existing").fetchall()[0][0]
print(count, "pairs in DuckDB")

# %% Two whole nights, as the command runs them: what to keep, and why
for dt in ["2026-11-19", "2026-11-20"]:
    places = {"documents": "sample_data/documents", "store": "out/tour/store", "output": "out/tour/results"}
    summary = nearprint.run("jobs/sample.toml", dt, create_store=True, **places)
    print(dt, summary["status"] + ":", summary["n_keep"], "documents stay,", summary["n_drop"], "are dropped")

decisions = pl.read_parquet("out/tour/results/decisions/dt=2026-11-20/*.parquet")
print(decisions.group_by("decision", "reason").len().sort("decision", "reason").rows())
