"""One night on Spark, for spark-submit:

    spark-submit --master spark://HOST:7077 jobs/spark/nightly.py --config job.toml --dt 2026-11-20

or for a client of a Spark Connect server:

    SPARK_REMOTE=sc://HOST:15002 python jobs/spark/nightly.py --config job.toml --dt 2026-11-20

Takes the arguments of `nearprint run`, and --workers and --worker-memory; logs, summary and exit codes are those of the command.
"""

import sys

import nearprint.spark

if __name__ == "__main__":
    sys.exit(nearprint.spark.main())
