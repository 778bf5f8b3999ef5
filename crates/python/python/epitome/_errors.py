"""The error of this package, and the JSON between it and the library."""

from __future__ import annotations

import json
from typing import Any


class Error(Exception):
    """What went wrong. Programs compare ``kind``, never the text.

    ``kind`` is a word such as ``not-found``, ``usage``, ``locked`` or ``invariant``; ``hints`` say
    what to do about it, and ``causes`` are the errors behind it, the nearest first.
    """

    def __init__(
        self,
        message: str,
        kind: str = "usage",
        hints: tuple[str, ...] = (),
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.hints = hints
        self.causes = causes

    def __str__(self) -> str:
        return ": ".join([str(self.args[0]), *self.causes])

    def __reduce__(self) -> tuple[Any, ...]:
        return (Error, (self.args[0], self.kind, self.hints, self.causes))


def encode(value: Any) -> bytes:
    """A value as JSON for the library."""
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
    except (TypeError, ValueError) as err:
        raise Error(f"this is no JSON: {err}") from err
    return text.encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    """Objects of the providers' SDKs and of frameworks (pydantic models) as JSON."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"an object of type {type(value).__name__}")
    return dump(mode="json", exclude_none=True)


def decode(answer: str) -> Any:
    """An answer of the library. Raises the error that it has."""
    value = json.loads(answer)
    if isinstance(value, dict) and "error" in value:
        error = value["error"]
        if isinstance(error, dict):
            raise Error(
                error["message"],
                error["kind"],
                tuple(error.get("hints", ())),
                tuple(error.get("causes", ())),
            )
    return value
