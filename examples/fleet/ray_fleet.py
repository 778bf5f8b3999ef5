"""Compacts the sessions of Parquet files with Ray Data: python ray_fleet.py in out"""

import sys

import ray
from epitome import fleet


def run(source: str, target: str, job: fleet.Compact) -> None:
    sessions = ray.data.read_parquet(source)
    compacted = sessions.map_batches(job.table, batch_format="pyarrow", batch_size=64)
    compacted.write_parquet(target)


if __name__ == "__main__":
    # Ray runs a task on each core.
    run(sys.argv[1], sys.argv[2], fleet.Compact(threads=1))
