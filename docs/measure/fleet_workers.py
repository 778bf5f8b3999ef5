"""Sessions a second of `epitome.fleet`, with 1, 2 and 4 workers in turns.

Usage: python fleet_workers.py FOLDER [ROUNDS]

FOLDER has sessions (`*.jsonl`). Each is cut at the end of a line to at most 400 kB, and they are
repeated until there are 200. A worker is a thread of `Compact(threads=N)`. The cores that a row had are its
processor seconds by its seconds: on a machine with other work they are fewer than its workers.
"""

import gc
import os
import pathlib
import sys
import time

import pyarrow
from epitome import fleet

COUNT = 200
LARGEST = 400_000


def sessions(folder):
    """`COUNT` sessions: those of the folder, cut, again and again."""
    cut = []
    for path in sorted(pathlib.Path(folder).rglob("*.jsonl")):
        data = path.read_bytes()[:LARGEST]
        cut.append(data[: data.rfind(b"\n") + 1])
    cut = [data for data in cut if data]
    if not cut:
        sys.exit(f"{folder} has no sessions (*.jsonl)")
    return [cut[n % len(cut)] for n in range(COUNT)]


def main():
    data = sessions(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    size = sum(map(len, data))
    print(f"{len(data)} sessions, {size / len(data) / 1000:.0f} kB on average, {os.cpu_count()} cores")
    table = pyarrow.table({"id": [str(n) for n in range(len(data))], "session": data})
    fleet.Compact(threads=1)(table.slice(0, 2))
    print("| workers | sessions a second | cores that they had | sessions a core-second |")
    print("|---|---|---|---|")
    for _ in range(rounds):
        for workers in (1, 2, 4):
            gc.collect()
            begin, begin_cpu = time.perf_counter(), time.process_time()
            result = fleet.Compact(threads=workers)(table)
            seconds = time.perf_counter() - begin
            cpu = time.process_time() - begin_cpu
            failed = sum(value == "error" for value in result["outcome"].to_pylist())
            print(
                f"| {workers} | {COUNT / seconds:.1f} | {cpu / seconds:.2f} | {COUNT / cpu:.1f} |"
                + (f" {failed} errors" if failed else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
