"""Compacts the sessions of Parquet files with Spark: python spark_fleet.py in out

On a cluster: spark-submit, with epitome-context[arrow] in the Python of the executors.
"""

import os
import sys

from epitome import fleet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def run(source: str, target: str, job: fleet.Compact) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Two workers here, and four attempts for each task.
    master = os.environ.get("SPARK_MASTER", "local[2,4]")
    spark = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        # Rows of a batch: sessions are large.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
        # Less than half of the bytes of snappy, whose library not every machine can load.
        .config("spark.sql.parquet.compression.codec", "zstd")
        .getOrCreate()
    )
    sessions = spark.read.parquet(source)
    compacted = sessions.mapInArrow(job.batches, from_arrow_schema(job.schema))
    compacted.write.mode("error").parquet(target)
    spark.stop()


if __name__ == "__main__":
    # Spark runs a task on each core.
    run(sys.argv[1], sys.argv[2], fleet.Compact(threads=1))
