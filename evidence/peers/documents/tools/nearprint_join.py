"""nearprint, one call that compares fingerprints and sketches with the limits of the default profile."""

import nearprint
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def pairs(path):
    table = pq.read_table(path)
    fingerprints, sketches = (pa.array(f(table["text"], threads=1)) for f in [nearprint.fingerprint, nearprint.sketch])
    night = pa.table({"fingerprint": fingerprints, "sketch": sketches})
    found = pa.table(nearprint.join(night, night, threads=1))
    found = found.filter(pc.less(found["query"], found["existing"]))
    return zip(*(table["id"].take(found[column]).to_pylist() for column in ["query", "existing"]))
