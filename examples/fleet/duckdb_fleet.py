"""Compacts the sessions of Parquet files with DuckDB: python duckdb_fleet.py 'in/*.parquet' out.parquet"""

import sys

import duckdb
from epitome import fleet


def run(source: str, target: str, job: fleet.Compact) -> None:
    db = duckdb.connect()
    # A connection of its own: DuckDB reads the results while they are made.
    sessions = db.cursor().read_parquet(source).to_arrow_reader(64)
    results = job.reader(sessions)
    db.execute("COPY (SELECT * FROM results) TO ? (FORMAT parquet, COMPRESSION zstd)", [target])


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], fleet.Compact())
