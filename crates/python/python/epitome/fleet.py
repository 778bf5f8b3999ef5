"""Sessions by the million: functions over Arrow batches, for Spark, Ray, Daft, DuckDB and Polars.

Each job is an object that an engine sends to its workers. It is a function of batches, and of
nothing else: it reads no settings and no folder of the machine, and a task that is repeated has the
same result. A session that cannot be worked on is a row with an ``error``, never an exception.

Needs ``pyarrow``: ``pip install epitome-context[arrow]``. ``docs/fleet.md`` has a guide.
"""

from __future__ import annotations

import base64
import datetime
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, Union

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

from . import _native
from ._errors import Error, decode, encode

Count = Literal["o200k", "estimate"]
Path = Union[str, "os.PathLike[str]"]
T = TypeVar("T")

#: A batch is worked on in pieces of about so many bytes: what is kept in memory of one is bounded.
PIECE = 64 << 20

_COMPACTED: Mapping[str, pa.DataType] = {
    "outcome": pa.string(),
    "agent": pa.string(),
    "compacted": pa.binary(),
    "pack": pa.binary(),
    "tokens_before": pa.int64(),
    "tokens_after": pa.int64(),
    "bytes_before": pa.int64(),
    "bytes_after": pa.int64(),
    "edits": pa.int64(),
    "blake3_before": pa.string(),
    "blake3_after": pa.string(),
}
_FACTS: Mapping[str, pa.DataType] = {
    "facts_before": pa.int64(),
    "facts_gone": pa.int64(),
}
_PRICE: Mapping[str, pa.DataType] = {
    "price_model": pa.string(),
    "price_next_before": pa.int64(),
    "price_next_after": pa.int64(),
    "price_later_before": pa.int64(),
    "price_later_after": pa.int64(),
}
_REDACTED: Mapping[str, pa.DataType] = {"redacted": pa.binary(), "redactions": pa.string()}
_INSPECTED: Mapping[str, pa.DataType] = {
    "agent": pa.string(),
    "session_id": pa.string(),
    "model": pa.string(),
    "cwd": pa.string(),
    "tokens": pa.int64(),
    "messages": pa.int64(),
    "messages_sent": pa.int64(),
    "turns": pa.int64(),
    "calls": pa.int64(),
    "faults": pa.int64(),
    "violations": pa.list_(pa.string()),
}
_RESTORED: Mapping[str, pa.DataType] = {
    "restored": pa.binary(),
    "blake3": pa.string(),
    "proved": pa.bool_(),
}
_ERROR: Mapping[str, pa.DataType] = {
    "error": pa.string(),
    "error_message": pa.string(),
    "error_hint": pa.string(),
}


class _Job:
    """A function over batches. ``_made`` is made where the work is done: it is never pickled."""

    _options: dict[str, Any]
    _keep: dict[str, pa.DataType]
    _results: dict[str, pa.DataType]
    _made: _native.Fleet | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema({**self._keep, **self._results})

    def batches(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.RecordBatch]:
        """The results of batches, one by one. Only one piece of a batch is in memory."""
        for batch in batches:
            for part in _parts(batch):
                for piece in _pieces(part, self._weighed()):
                    yield self._batch(piece)

    def reader(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> pa.RecordBatchReader:
        """The results of batches as a reader, which engines read while they are made."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches(batches))

    def table(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """The result of a table."""
        return pa.Table.from_batches(self.batches([table]), schema=self.schema)

    def __call__(self, batches: Any) -> Any:
        """The form that engines call: a table gives a table, an iterator of batches an iterator."""
        if isinstance(batches, (pa.Table, pa.RecordBatch)):
            return self.table(batches)
        return self.batches(batches)

    def _check(self) -> None:
        """Raises an error for wrong options where the job is made, and not in each task."""
        for name in self._keep:
            if name in self._results:
                raise Error(
                    f"`id`, `keep`: the result has a column `{name}` of its own",
                    hints=("rename the column of the table",),
                )
        self._fleet()

    def _fleet(self) -> _native.Fleet:
        if self._made is None:
            self._made = _fleet(self._options)
        return self._made

    def _weighed(self) -> str:
        raise NotImplementedError

    def _columns(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        raise NotImplementedError

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = self._columns(batch)
        kept = [_cast(batch, name, kind) for name, kind in self._keep.items()]
        made = [pa.array(columns[name], type) for name, type in self._results.items()]
        return pa.RecordBatch.from_arrays(kept + made, schema=self.schema)


class _SessionJob(_Job):
    """A function over a column of sessions, and what names its columns."""

    _id: str
    _session: str
    _agent: str | None

    def _weighed(self) -> str:
        return self._session

    def _read(
        self, batch: pa.RecordBatch
    ) -> tuple[list[str | None], list[bytes | None], list[str | None] | None]:
        ids = _cast(batch, self._id, pa.string()).to_pylist()
        agents = None
        if self._agent is not None:
            agents = _cast(batch, self._agent, pa.string()).to_pylist()
        return ids, _bytes(batch, self._session), agents


class Compact(_SessionJob):
    """Compacts sessions.

    ``id`` and ``session`` name columns: texts, and the bytes of sessions (binary, or text). ``agent``
    names a column with the agents of sessions; without one they are recognised. ``keep`` are further
    columns that the result has as well, with their types.

    The result has a row for each session, in order. ``compacted`` are the bytes that ``epitome
    compact`` leaves of the same file, and ``pack`` is what it removed: ``Restore`` needs both. ``pack``
    is null where ``outcome`` is ``"nothing"``, and ``compacted`` is then the session itself. ``facts``,
    ``price`` and ``redact`` add columns, and each takes time.

    ``at`` is the time of the compaction; by default it is now, once, so that a repeated task makes the
    same bytes. ``threads`` is how many sessions are worked on at once, by default one per core: give 1
    where the engine itself runs a task on each core.
    """

    def __init__(
        self,
        *,
        id: str = "id",
        session: str = "session",
        agent: str | None = None,
        keep: Mapping[str, pa.DataType] | None = None,
        recipe: Path | None = None,
        target: int | None = None,
        window: int | None = None,
        count: Count = "o200k",
        facts: bool = False,
        price: bool = False,
        redact: bool = False,
        find: Sequence[str] = (),
        threads: int = 0,
        at: datetime.datetime | None = None,
    ) -> None:
        self._id, self._session, self._agent = id, session, agent
        self._options = {
            **_common(at, threads),
            **_recipe(recipe),
            "target": target,
            "window": window,
            "count": count,
            "facts": facts,
            "price": price,
            "redact": redact,
            "find": list(find),
        }
        self._keep = _kept(id, keep)
        self._results = {
            **_COMPACTED,
            **(_FACTS if facts else {}),
            **(_PRICE if price else {}),
            **(_REDACTED if redact else {}),
            **_ERROR,
        }
        self._check()

    def _columns(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        ids, sessions, agents = self._read(batch)
        columns = self._fleet().compact(ids, sessions, agents)
        columns["compacted"] = [
            session if outcome == "nothing" else made
            for session, made, outcome in zip(sessions, columns["compacted"], columns["outcome"])
        ]
        return columns


class Inspect(_SessionJob):
    """Says what sessions are: agent, model, folder, tokens, messages, turns, calls, faults.

    The columns are named as for ``Compact``. ``violations`` are rules of the agent's format that the
    session breaks.
    """

    def __init__(
        self,
        *,
        id: str = "id",
        session: str = "session",
        agent: str | None = None,
        keep: Mapping[str, pa.DataType] | None = None,
        count: Count = "o200k",
        threads: int = 0,
    ) -> None:
        self._id, self._session, self._agent = id, session, agent
        self._options = {**_common(None, threads), "count": count}
        self._keep = _kept(id, keep)
        self._results = {**_INSPECTED, **_ERROR}
        self._check()

    def _columns(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        return self._fleet().inspect(*self._read(batch))


class Redact(_SessionJob):
    """Replaces secrets and personal data in sessions, which stay sessions of their agents.

    The columns are named as for ``Compact``. ``find`` are ``secrets``, ``pii``, or rules by name.
    ``redactions`` counts what each rule replaced, as a JSON object.
    """

    def __init__(
        self,
        *,
        id: str = "id",
        session: str = "session",
        agent: str | None = None,
        keep: Mapping[str, pa.DataType] | None = None,
        find: Sequence[str] = (),
        threads: int = 0,
    ) -> None:
        self._id, self._session, self._agent = id, session, agent
        self._options = {**_common(None, threads), "redact": True, "find": list(find)}
        self._keep = _kept(id, keep)
        self._results = {**_REDACTED, **_ERROR}
        self._check()

    def _columns(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        return self._fleet().redact(*self._read(batch))


class Restore(_Job):
    """Gives the bytes of compacted sessions back.

    ``compacted``, ``pack`` and ``blake3`` name the columns of that name that ``Compact`` made. In the
    result, ``restored`` are the bytes, ``blake3`` is their hash, and ``proved`` says whether they are
    proved to be what was compacted. Where they are not (the pack of another session, or a session
    that an agent continued), ``proved`` is false, and ``restored`` is as much as could be restored.
    That is not an error.
    """

    def __init__(
        self,
        *,
        id: str = "id",
        compacted: str = "compacted",
        pack: str = "pack",
        blake3: str | None = "blake3_before",
        keep: Mapping[str, pa.DataType] | None = None,
        threads: int = 0,
    ) -> None:
        self._compacted, self._pack, self._blake3 = compacted, pack, blake3
        self._options = _common(None, threads)
        self._keep = _kept(id, keep)
        self._results = {**_RESTORED, **_ERROR}
        self._check()

    def _weighed(self) -> str:
        return self._compacted

    def _columns(self, batch: pa.RecordBatch) -> dict[str, list[Any]]:
        sessions = _bytes(batch, self._compacted)
        packs = _bytes(batch, self._pack)
        hashes = None
        if self._blake3 is not None:
            hashes = _cast(batch, self._blake3, pa.string()).to_pylist()
        columns = self._fleet().restore(sessions, packs, hashes)
        columns["restored"] = [
            session if made is None and error is None else made
            for session, made, error in zip(sessions, columns["restored"], columns["error"])
        ]
        return columns


def compact_batches(
    batches: Iterable[pa.RecordBatch | pa.Table], **options: Any
) -> Iterator[pa.RecordBatch]:
    """Compacts the sessions in batches, with the options of ``Compact``."""
    return Compact(**options).batches(batches)


def restore_batches(
    batches: Iterable[pa.RecordBatch | pa.Table], **options: Any
) -> Iterator[pa.RecordBatch]:
    """Restores the sessions in batches, with the options of ``Restore``."""
    return Restore(**options).batches(batches)


def read_parquet(path: Path, *, rows: int = 64) -> Iterator[pa.RecordBatch]:
    """The batches of a Parquet file, of at most so many rows each.

    Raises an ``OSError`` if the file cannot be opened, and an ``Error`` if it is no Parquet file.
    """
    _check_rows(rows)
    try:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=rows)
    except pa.ArrowInvalid as err:
        what = f"{os.fspath(path)} is no Parquet file, or it is damaged"
        raise Error(what, "unreadable", causes=(str(err),)) from err


def write_parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes batches to a Parquet file as they come, and returns the number of rows.

    The file has its name when it is complete: a killed process leaves another file or none.
    """
    target = os.fspath(path)
    rows = 0
    with parquet.ParquetWriter(target + ".part", schema, compression="zstd") as writer:
        for batch in batches:
            if not schema.equals(batch.schema):
                there = ", ".join(str(field) for field in batch.schema)
                raise Error("a batch has other columns than `schema`", hints=(f"it has: {there}",))
            writer.write_batch(batch)
            rows += batch.num_rows
    os.replace(target + ".part", target)
    return rows


def read_jsonl(
    path: Path, *, id: str = "id", session: str = "session", rows: int = 64
) -> Iterator[pa.RecordBatch]:
    """The batches of a file of JSON lines: two columns, of texts and of bytes.

    The member ``session`` is the text of a session, or ``{"base64": …}`` of its bytes, or an object:
    the body of a request to a model, with ``messages``. The member ``id`` is a text or a number.
    Empty lines are skipped.

    Raises an ``OSError`` if the file cannot be opened. Raises an ``Error`` that names the line if a
    line is not such an object, or if none of the first ``rows`` lines has a member ``session``.
    """
    _check_rows(rows)
    schema = pa.schema({id: pa.string(), session: pa.binary()})
    with open(path, "rb") as lines:
        objects = _json_objects(lines, path)
        is_first = True
        while part := list(itertools.islice(objects, rows)):
            if is_first and not any(session in value for _, value in part):
                place, value = part[0]
                there = ", ".join(value)
                what = f"{place}: no member is called `{session}`"
                raise Error(what, hints=(f"there are: {there}",))
            is_first = False
            ids = [_member(place, value, id, _id_from_json) for place, value in part]
            made = [_member(place, value, session, _from_json) for place, value in part]
            columns = [pa.array(ids, pa.string()), pa.array(made, pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def write_jsonl(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Writes batches as JSON lines, and returns the number of rows.

    Bytes that are no UTF-8, such as packs, are ``{"base64": …}``. The file has its name when it is
    complete.
    """
    target = os.fspath(path)
    rows = 0
    with open(target + ".part", "w", encoding="utf-8") as file:
        for batch in batches:
            for row in batch.to_pylist():
                file.write(_json_line(row))
            rows += batch.num_rows
    os.replace(target + ".part", target)
    return rows


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise Error(f"`rows`: invalid value: {rows}, expected at least 1")


def _json_objects(lines: Iterable[bytes], path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects in a file of JSON lines, each with its place, for messages."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"line {number} of {os.fspath(path)}"
        try:
            value = json.loads(line.decode("utf-8"))
        except json.JSONDecodeError as err:
            cause = f"{err.msg}, at character {err.colno}"
            raise Error(f"{place} is no JSON", "unreadable", causes=(cause,)) from err
        except (ValueError, RecursionError) as err:
            raise Error(f"{place} is no JSON", "unreadable", causes=(str(err),)) from err
        if not isinstance(value, dict):
            raise Error(f"{place} is no JSON object", "unreadable")
        yield place, value


def _member(place: str, value: dict[str, Any], name: str, read: Callable[[Any], T]) -> T:
    """A member of an object, as ``read`` reads it."""
    try:
        return read(value.get(name))
    except (Error, TypeError, ValueError) as err:
        what = f"{place}: the member `{name}` cannot be read"
        raise Error(what, "unreadable", causes=(str(err),)) from err


def _id_from_json(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TypeError("it is neither a text nor a whole number")
    return str(value).encode()


def _from_json(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"base64"}:
        text = value["base64"]
        if not isinstance(text, str):
            raise TypeError("`base64` is no text")
        return base64.b64decode("".join(text.split()), validate=True)
    return encode(value)


def _json_line(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, ensure_ascii=False, default=_to_json) + "\n"
    except TypeError as err:
        hints = ("cast the column to a text before",)
        raise Error("a row cannot be written as JSON", causes=(str(err),), hints=hints) from err


def _to_json(value: Any) -> Any:
    if not isinstance(value, bytes):
        raise TypeError(f"JSON has no {type(value).__name__}")
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _kept(id: str, keep: Mapping[str, pa.DataType] | None) -> dict[str, pa.DataType]:
    """The columns that the result has as they were, with their types."""
    kept = {id: pa.string()}
    if not isinstance(keep or {}, Mapping):
        raise Error(
            f"`keep`: invalid type: {type(keep).__name__}, expected a dictionary of columns and types",
            hints=('for example `keep={"day": pyarrow.int64()}`',),
        )
    for name, kind in (keep or {}).items():
        try:
            kept[name] = pa.field(name, kind).type
        except (TypeError, ValueError) as err:
            raise Error(f"`keep`: the column `{name}` has no type", causes=(str(err),)) from err
    return kept


def _common(at: datetime.datetime | None, threads: int) -> dict[str, Any]:
    if not isinstance(at, (datetime.datetime, type(None))):
        raise Error(f"`at`: invalid type: {type(at).__name__}, expected a `datetime.datetime`")
    time = datetime.datetime.now(datetime.timezone.utc) if at is None else at.astimezone()
    return {"at": time.isoformat(timespec="seconds"), "threads": threads}


def _recipe(recipe: Path | None) -> dict[str, Any]:
    """A recipe by its name, or the text of its file: workers do not have the file."""
    if recipe is None or (isinstance(recipe, str) and not recipe.endswith(".toml")):
        return {"recipe": recipe}
    path = os.fspath(recipe)
    with open(path, "rb") as file:
        text = file.read()
    try:
        return {"recipe_text": text.decode("utf-8")}
    except UnicodeDecodeError as err:
        raise Error(f"{path} is no text in UTF-8", "unreadable", causes=(str(err),)) from err


def _fleet(options: dict[str, Any]) -> _native.Fleet:
    try:
        return _native.Fleet(encode(options))
    except ValueError as err:
        decode(str(err))
        raise


def _parts(batch: Any) -> list[pa.RecordBatch]:
    if isinstance(batch, pa.Table):
        batches: list[pa.RecordBatch] = batch.to_batches()
        return batches
    if isinstance(batch, pa.RecordBatch):
        return [batch]
    kind = type(batch).__name__
    raise Error(f"invalid type of a batch: {kind}, expected a `RecordBatch` or `Table` of pyarrow")


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The column with this name."""
    found = batch.schema.get_all_field_indices(name)
    if len(found) != 1:
        what = "several columns are" if found else "no column is"
        there = ", ".join(batch.schema.names)
        raise Error(f"{what} called `{name}`", hints=(f"there are: {there}",))
    return batch.column(found[0])


def _cast(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """A column as one of another type."""
    column = _column(batch, name)
    try:
        return column.cast(kind)
    except pa.ArrowException as err:
        # The message of pyarrow may quote a whole session.
        cause = str(err)[:200]
        what = f"the column `{name}`, of the type {column.type}, cannot be read as {kind}"
        raise Error(what, causes=(cause,)) from None


def _binary(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of bytes, whatever an engine calls them: texts, views, or binaries."""
    column = _column(batch, name)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return column
    is_text = pa.types.is_string(column.type)
    return _cast(batch, name, pa.binary() if is_text else pa.large_binary())


def _bytes(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    values: list[bytes | None] = _binary(batch, name).to_pylist()
    return values


def _pieces(batch: pa.RecordBatch, column: str) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, in pieces of about ``PIECE`` bytes of a column, and at least one row."""
    lengths = pc.call_function("binary_length", [_binary(batch, column)]).to_pylist()
    begin, size = 0, 0
    for row, length in enumerate(lengths):
        if size + (length or 0) > PIECE and row > begin:
            yield batch.slice(begin, row - begin)
            begin, size = row, 0
        size += length or 0
    if begin < len(lengths):
        yield batch.slice(begin)
