"""nearprint, the functions: fingerprints, the exact join, and the second look by sketches. Limits of the default profile."""

import nearprint
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def pairs(path):
    table = pq.read_table(path)
    sketches = pa.array(nearprint.sketch(table["text"], threads=1))
    found = pa.table(nearprint.pairs_within(nearprint.fingerprint(table["text"], threads=1), 12, threads=1))
    apart = pa.array(nearprint.hamming(sketches.take(found["a"]), sketches.take(found["b"])))
    found = found.filter(pc.less_equal(apart, 36))
    return zip(*(table["id"].take(found[column]).to_pylist() for column in ["a", "b"]))
