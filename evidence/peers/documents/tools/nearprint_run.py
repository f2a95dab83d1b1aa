"""nearprint, a whole night: pairs, decisions and the store, published. All pairs are written in place of a forest of them."""

import nearprint
import pyarrow.parquet as pq


def pairs(path):
    with open("job.toml", "w") as job:
        job.write('store = "store"\noutput = "results"\npairs = "all"\n')
    documents, dt = path.parent.parent, path.parent.name.removeprefix("dt=")
    nearprint.run("job.toml", dt, documents=documents, create_store=True, no_breakers=True, threads=1)
    found = pq.read_table("results/pairs")
    return zip(found["id_a"].to_pylist(), found["id_b"].to_pylist())
