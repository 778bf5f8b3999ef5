"""Runs an example of examples/fleet and compares its rows with those of one process.

check.py make FOLDER COUNT    makes sessions of those in FOLDER/recorded, and compacts them here
check.py ENGINE FOLDER        runs an engine's example, and compares
"""

from __future__ import annotations

import datetime
import importlib
import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]
from epitome import fleet
from killed import KilledOnce

AT = datetime.datetime(2026, 11, 26, tzinfo=datetime.timezone.utc)
#: The engines whose work is done by processes of their own. One of these is killed.
KILLED = ("spark", "ray")
#: The engines that write a folder.
FOLDERS = ("spark", "ray", "daft")


def make(folder: Path, count: int) -> None:
    import sessions

    damaged = sessions.make(folder / "recorded", count, folder / "in")
    began = time.monotonic()
    job = fleet.Compact(at=AT, threads=1)
    paths = sorted((folder / "in").iterdir())
    batches = (batch for path in paths for batch in fleet.read_parquet(path))
    rows = fleet.write_parquet(folder / "expected.parquet", job.schema, job.batches(batches))
    seconds = time.monotonic() - began
    expected = parquet.read_table(folder / "expected.parquet")
    errors = Counter(expected.column("error").to_pylist())
    good, read_only = errors.pop(None, 0), errors.pop("read-only", 0)
    # Sessions of some agents are only read. Any other error is that of a damaged session.
    assert rows == count and sum(errors.values()) == damaged, (rows, errors)
    assert good == count - damaged - read_only, (good, damaged, read_only)
    restored = fleet.Restore().table(expected)
    proved = restored.column("proved").to_pylist()
    assert proved.count(True) == good, proved.count(True)
    given = (row for path in paths for row in parquet.read_table(path).to_pylist())
    for row, original in zip(restored.to_pylist(), given, strict=True):
        assert row["id"] == original["id"]
        assert row["error"] is not None or row["restored"] == original["session"], row["id"]
    print(
        f"one process: {rows} rows, {good} restored, {read_only} of agents that are only read, "
        f"{damaged} damaged, {rows / seconds:.0f} rows a second"
    )


def run(engine: str, folder: Path) -> None:
    target = folder / (f"out-{engine}" if engine in FOLDERS else f"out-{engine}.parquet")
    source = folder / "in" if engine in ("spark", "ray") else folder / "in/*.parquet"
    threads = 1 if engine in KILLED else 0
    expected = parquet.read_table(folder / "expected.parquet").sort_by("id")
    mark = folder / f"killed-{engine}"
    if engine in KILLED:
        middle = expected.column("id")[expected.num_rows // 2].as_py()
        job: fleet.Compact = KilledOnce(middle, mark, at=AT, threads=threads)
    else:
        job = fleet.Compact(at=AT, threads=threads)
    began = time.monotonic()
    importlib.import_module(f"{engine}_fleet").run(str(source), str(target), job)
    seconds = time.monotonic() - began
    assert mark.exists() == (engine in KILLED), "no worker was killed"
    made = pa.concat_tables(parquet.read_table(path) for path in files(target)).sort_by("id")
    ids = made.column("id").to_pylist()
    assert ids == expected.column("id").to_pylist(), f"{len(ids)} rows, {len(set(ids))} ids"
    for name in expected.column_names:
        column = made.column(name).cast(expected.schema.field(name).type)
        assert column.to_pylist() == expected.column(name).to_pylist(), name
    killed = ", one worker killed" if mark.exists() else ""
    print(f"{engine}: {len(ids)} rows, the same bytes, {len(ids) / seconds:.0f} a second{killed}")
    shutil.rmtree(target) if target.is_dir() else os.remove(target)


def files(target: Path) -> list[Path]:
    return sorted(target.rglob("*.parquet")) if target.is_dir() else [target]


if __name__ == "__main__":
    what, place = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(place, int(sys.argv[3]))
    else:
        run(what, place)
