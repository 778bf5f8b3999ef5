"""Compacts the sessions of Parquet files with Daft: python daft_fleet.py 'in/*.parquet' out"""

import sys

import daft
import pyarrow
from epitome import fleet


def run(source: str, target: str, job: fleet.Compact) -> None:
    result = daft.DataType.from_arrow_type(pyarrow.struct(list(job.schema)))

    @daft.func.batch(return_dtype=result, batch_size=64, unnest=True)
    def compact(id: daft.Series, session: daft.Series) -> pyarrow.Array:
        table = pyarrow.table({"id": id.to_arrow(), "session": session.to_arrow()})
        return job(table).to_struct_array().combine_chunks()

    sessions = daft.read_parquet(source)
    sessions.select(compact(sessions["id"], sessions["session"])).write_parquet(target)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], fleet.Compact())
