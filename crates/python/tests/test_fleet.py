"""Jobs over Arrow batches, and the first example of `docs/fleet.md`."""

from __future__ import annotations

import datetime
import os
import pickle
import re
import tempfile
import unittest
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import epitome
import pyarrow as pa  # type: ignore[import-untyped]
from epitome import fleet

SESSIONS = Path(os.environ["TEST_SESSIONS"])
PAGE = Path(__file__).parents[3] / "docs/fleet.md"
PI = (SESSIONS / "pi/pricing.jsonl").read_bytes()
CLAUDE = (SESSIONS / "claude/pricing.jsonl").read_bytes()
AT = datetime.datetime(2026, 11, 26, tzinfo=datetime.timezone.utc)


def table() -> pa.Table:
    sessions = pa.array([PI, b"no session", None, CLAUDE], pa.binary())
    return pa.table({"id": ["a", "b", "c", "d"], "session": sessions, "day": [1, 2, 3, 4]})


class FleetTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_sessions_are_compacted_and_restored(self) -> None:
        small = fleet.Compact(at=AT, keep={"day": pa.int64()})(table())
        self.assertEqual(small.column("id").to_pylist(), ["a", "b", "c", "d"])
        self.assertEqual(small.column("day").to_pylist(), [1, 2, 3, 4])
        outcomes = ["compacted", "error", "error", "compacted"]
        self.assertEqual(small.column("outcome").to_pylist(), outcomes)
        errors = [None, "unknown-format", "usage", None]
        self.assertEqual(small.column("error").to_pylist(), errors)
        back = fleet.Restore()(small)
        self.assertEqual(back.column("restored").to_pylist(), [PI, None, None, CLAUDE])
        self.assertEqual(back.column("proved").to_pylist(), [True, False, False, True])

    def test_a_pickled_job_and_other_pieces_make_the_same_rows(self) -> None:
        job = fleet.Compact(at=AT)
        expected = job(table())
        again = pickle.loads(pickle.dumps(job))
        piece, fleet.PIECE = fleet.PIECE, 1
        try:
            batches = list(again(iter(table().to_batches())))
        finally:
            fleet.PIECE = piece
        self.assertEqual([batch.num_rows for batch in batches], [1, 1, 1, 1])
        self.assertEqual(pa.Table.from_batches(batches), expected.combine_chunks())

    def test_bytes_have_several_types(self) -> None:
        expected = fleet.Compact(at=AT)(table().slice(0, 1))
        for kind in (pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view()):
            sessions = pa.table({"id": ["a"], "session": pa.array([PI]).cast(kind)})
            self.assertEqual(fleet.Compact(at=AT)(sessions), expected, kind)

    def test_sessions_are_inspected_and_redacted(self) -> None:
        rows = fleet.Inspect()(table()).to_pylist()
        self.assertEqual([row["agent"] for row in rows], ["pi", None, None, "claude"])
        self.assertEqual((rows[3]["cwd"], rows[3]["violations"]), ("/home/dev/project", []))
        redacted = fleet.Redact()(table()).column("redacted").to_pylist()
        self.assertIn(b"/home/dev", CLAUDE)
        self.assertNotIn(b"/home/dev", redacted[3])

    def test_columns_on_request(self) -> None:
        [row] = fleet.Compact(at=AT, facts=True, price=True, redact=True)(table().slice(3)).to_pylist()
        self.assertGreater(row["facts_gone"], 0)
        self.assertLess(row["price_next_after"], row["price_next_before"])
        self.assertNotIn(b"/home/dev", row["redacted"])

    def test_files_are_read_and_written(self) -> None:
        job = fleet.Compact(at=AT)
        expected = job(table())
        parquet = self.folder / "rows.parquet"
        self.assertEqual(fleet.write_parquet(parquet, job.schema, job([table()])), 4)
        self.assertEqual(pa.Table.from_batches(fleet.read_parquet(parquet)), expected)
        lines = self.folder / "rows.jsonl"
        rows = table().select(["id", "session"]).to_batches()
        self.assertEqual(fleet.write_jsonl(lines, rows), 4)
        read = pa.Table.from_batches(fleet.read_jsonl(lines))
        self.assertEqual(read.column("session").to_pylist(), [PI, b"no session", None, CLAUDE])
        self.assertEqual(sorted(os.listdir(self.folder)), ["rows.jsonl", "rows.parquet"])

    def test_packs_are_lines_of_json_as_well(self) -> None:
        small = fleet.Compact(at=AT)(table().slice(0, 1))
        lines = self.folder / "rows.jsonl"
        fleet.write_jsonl(lines, small.to_batches())
        read = pa.Table.from_batches(fleet.read_jsonl(lines, session="pack"))
        self.assertEqual(read.column("pack"), small.column("pack"))

    def test_the_body_of_a_request_is_a_session(self) -> None:
        line = '{"id":"r","session":{"messages":[{"role":"user","content":"Hello."}]}}\n'
        (self.folder / "rows.jsonl").write_text(line, "utf-8")
        [batch] = fleet.read_jsonl(self.folder / "rows.jsonl")
        self.assertEqual(fleet.Compact(at=AT)(batch).column("error").to_pylist(), [None])

    def test_wrong_options_are_an_error_where_the_job_is_made(self) -> None:
        with self.assertRaises(epitome.Error) as raised:
            fleet.Compact(recipe="no-such-recipe")
        self.assertIn("no-such-recipe", str(raised.exception))
        with self.assertRaises(epitome.Error):
            fleet.Redact(find=["no-such-rule"])

    def error(self, work: Callable[[], Any]) -> epitome.Error:
        with self.assertRaises(epitome.Error) as raised:
            work()
        return raised.exception

    def test_an_option_that_would_be_ignored_is_an_error_that_names_it(self) -> None:
        options: list[tuple[str, Callable[[], Any]]] = [
            ("`count`", lambda: fleet.Compact(count="zzz")),  # type: ignore[arg-type]
            ("`count`", lambda: fleet.Inspect(count="zzz")),  # type: ignore[arg-type]
            ("`window`", lambda: fleet.Compact(window=0)),
            ("`find`", lambda: fleet.Compact(find=["secrets"])),
            ("`window`", lambda: fleet.Compact(window="x")),  # type: ignore[arg-type]
            ("`target`", lambda: fleet.Compact(target=2e5)),  # type: ignore[arg-type]
            ("`threads`", lambda: fleet.Restore(threads=-1)),
            ("`at`", lambda: fleet.Compact(at="now")),  # type: ignore[arg-type]
            ("`keep`", lambda: fleet.Compact(keep=["day"])),  # type: ignore[arg-type]
            ("`day`", lambda: fleet.Compact(keep={"day": "no-type"})),
            ("`agent`", lambda: fleet.Inspect(id="agent")),
            ("`error`", lambda: fleet.Restore(keep={"error": pa.string()})),
        ]
        for name, work in options:
            with self.subTest(name):
                error = self.error(work)
                self.assertEqual(error.kind, "usage")
                self.assertIn(name, str(error))
                self.assertNotIn("u64", str(error))

    def test_a_column_that_is_missing_or_of_another_type_is_an_error_that_names_it(self) -> None:
        missing = self.error(lambda: fleet.Compact(session="text")(table()))
        self.assertEqual(str(missing), "no column is called `text`")
        self.assertEqual(missing.hints, ("there are: id, session, day",))
        for job in (fleet.Compact(id="no"), fleet.Redact(agent="no"), fleet.Restore(pack="no")):
            self.assertEqual(self.error(lambda: job(table())).kind, "usage")
        wrong = self.error(lambda: fleet.Inspect(session="day")(table()))
        self.assertIn("the column `day`, of the type int64", str(wrong))
        # The error of pyarrow quotes the session.
        kept = self.error(lambda: fleet.Inspect(keep={"session": pa.int64()})(table()))
        self.assertIn("the column `session`", str(kept))
        self.assertLess(len(str(kept)), 400)
        batches = self.error(lambda: list(fleet.Inspect()(iter([b"bytes"]))))
        self.assertIn("bytes", str(batches))

    def test_a_line_that_cannot_be_read_is_an_error_with_its_number(self) -> None:
        path = self.folder / "rows.jsonl"
        good = b'{"id":1,"session":"x"}\n\n'
        lines = [
            (b"nope", "line 3 of PATH is no JSON: Expecting value, at character 1"),
            (b'"\xff"', "line 3 of PATH is no JSON: 'utf-8' codec"),
            (b"[1]", "line 3 of PATH is no JSON object"),
            (b'{"id":[]}', "line 3 of PATH: the member `id` cannot be read"),
            (b'{"session":{"base64":"!"}}', "line 3 of PATH: the member `session` cannot be read"),
            (b'{"session":{"base64":5}}', "line 3 of PATH: the member `session` cannot be read"),
            (b'{"session":"\\ud800"}', "line 3 of PATH: the member `session` cannot be read"),
        ]
        for line, expected in lines:
            path.write_bytes(good + line)
            with self.subTest(line):
                error = self.error(lambda: list(fleet.read_jsonl(path)))
                self.assertEqual(error.kind, "unreadable")
                self.assertIn(expected.replace("PATH", str(path)), str(error))
        path.write_bytes(good)
        [batch] = fleet.read_jsonl(path)
        self.assertEqual(batch.to_pylist(), [{"id": "1", "session": b"x"}])
        error = self.error(lambda: list(fleet.read_jsonl(path, session="text")))
        self.assertEqual(error.hints, ("there are: id, session",))

    def test_what_cannot_be_read_or_written_is_an_error(self) -> None:
        path = self.folder / "rows"
        path.write_text("no Parquet", "utf-8")
        self.assertEqual(self.error(lambda: list(fleet.read_parquet(path))).kind, "unreadable")
        rows = table().to_batches()
        other = pa.schema({"a": pa.int64()})
        self.assertIn("`schema`", str(self.error(lambda: fleet.write_parquet(path, other, rows))))
        times = pa.record_batch({"at": pa.array([AT])})
        self.assertIn("datetime", str(self.error(lambda: fleet.write_jsonl(path, [times]))))
        readers: list[Callable[..., Iterable[Any]]] = [fleet.read_jsonl, fleet.read_parquet]
        for read in readers:
            self.assertIn("`rows`", str(self.error(lambda: list(read(path, rows=0)))))
            with self.assertRaises(FileNotFoundError):
                list(read(self.folder / "missing"))

    def test_hints_name_nothing_that_a_table_does_not_have(self) -> None:
        small = fleet.Compact(at=AT)(table().slice(0, 1))
        packs = pa.array([b"no pack"], pa.binary())
        damaged = small.set_column(small.schema.get_field_index("pack"), "pack", packs)
        [row] = fleet.Restore()(damaged).to_pylist()
        self.assertEqual(row["error"], "archive")
        hint = "the pack is damaged, or it is not the pack of this session"
        self.assertEqual(row["error_hint"], hint)
        recipe = self.error(lambda: fleet.Compact(recipe="no-such-recipe"))
        self.assertNotIn("/nonexistent", str(recipe.hints))

    def test_the_first_example_of_the_page_runs(self) -> None:
        found = re.search(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
        assert found is not None
        example = found[1].replace("sessions/", f"{SESSIONS}/pi/")
        os.chdir(self.folder)
        exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})


if __name__ == "__main__":
    unittest.main()
