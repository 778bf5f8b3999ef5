"""Makes sessions of recorded ones: each has its own id and its own text, and some are damaged."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

#: One of so many sessions is damaged.
DAMAGED = 50
FILES = 16


#: Longer sessions are left out, so that thousands fit on a disk.
LONGEST = 1 << 20


def sources(folder: Path) -> list[bytes]:
    """The recorded sessions of a folder, in the order of their names."""
    found = sorted(folder.rglob("*.jsonl"))
    return [path.read_bytes() for path in found if 0 < path.stat().st_size < LONGEST]


def varied(session: bytes, seed: int) -> bytes:
    """The session with other ids and another end: a prefix of whole lines, from half of it on."""
    chance = random.Random(seed)
    lines = session.splitlines(keepends=True)
    cut = lines[: chance.randint(max(1, len(lines) // 2), len(lines))]
    digits = f"{seed:04x}"
    ids = re.compile(rb"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{8})[0-9a-f]{4}")
    return ids.sub(lambda id: id[1] + digits.encode(), b"".join(cut))


def damaged(session: bytes, seed: int) -> bytes | None:
    """No session, for one of several reasons."""
    kinds = [None, b"", b"\xff\xfe\0", b"no session\n", b"[" * 100_000, b"{" + session[40:90]]
    return kinds[seed % len(kinds)]


def make(recorded: Path, count: int, target: Path) -> int:
    """Writes so many sessions as Parquet files. Returns how many of them are damaged."""
    found = sources(recorded)
    target.mkdir()
    schema = pa.schema({"id": pa.string(), "session": pa.binary()})
    each = -(-count // FILES)
    bad = 0
    for part in range(FILES):
        ids, values = [], []
        for n in range(part * each, min((part + 1) * each, count)):
            session: bytes | None = varied(found[n % len(found)], n)
            if n % DAMAGED == DAMAGED - 1:
                session = damaged(session or b"", n // DAMAGED)
                bad += 1
            ids.append(f"s{n:06}")
            values.append(session)
        columns = [pa.array(ids, pa.string()), pa.array(values, pa.binary())]
        table = pa.Table.from_arrays(columns, schema=schema)
        path = target / f"part-{part:02}.parquet"
        # Spark's snappy is built for two C libraries, and loads that for musl where both are.
        parquet.write_table(table, path, row_group_size=64, compression="zstd")
    return bad
