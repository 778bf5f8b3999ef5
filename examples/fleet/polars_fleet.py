"""Compacts the sessions of Parquet files with Polars: python polars_fleet.py 'in/*.parquet' out.parquet"""

import sys

import polars
from epitome import fleet


def run(source: str, target: str, job: fleet.Compact) -> None:
    def compact(frame: polars.DataFrame) -> polars.DataFrame:
        return polars.DataFrame(job(frame.to_arrow()))

    schema = polars.DataFrame(job.schema.empty_table()).schema
    sessions = polars.scan_parquet(source)
    compacted = sessions.map_batches(compact, schema=schema, streamable=True)
    compacted.sink_parquet(target)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], fleet.Compact())
