"""Stored sessions: each function does what the command of that name does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Union, cast

from ._errors import decode, encode
from ._native import call

Session = Union[str, "os.PathLike[str]"]
Count = Literal["o200k", "estimate"]
Json = dict[str, Any]


def _call(name: str, **request: Any) -> Any:
    return decode(call(name, encode(request)))


def _named(session: Session, agent: str | None, count: Count = "o200k") -> Json:
    return {"session": os.fspath(session), "agent": agent, "count": count}


def _path(path: Session | None) -> str | None:
    return None if path is None else os.fspath(path)


def compact(
    session: Session,
    *,
    recipe: Session | None = None,
    target: int | None = None,
    dry_run: bool = False,
    out: Session | None = None,
    force: bool = False,
    agent: str | None = None,
    count: Count = "o200k",
) -> Json:
    """Compacts a stored session in place, or plans that (``dry_run``), or writes a copy (``out``).

    ``session`` is a file, an id, or the beginning of an id. What is removed is in the archive, and
    ``restore`` gives it back. The report is that of ``epitome compact --json``.
    """
    return cast(
        Json,
        _call(
            "compact",
            **_named(session, agent, count),
            recipe=_path(recipe),
            target=target,
            dry_run=dry_run,
            out=_path(out),
            force=force,
        ),
    )


def restore(
    session: Session,
    *,
    dry_run: bool = False,
    out: Session | None = None,
    force: bool = False,
    partial: bool = False,
    agent: str | None = None,
) -> Json:
    """Restores what the agent wrote, byte for byte. The report is that of ``epitome restore``."""
    return cast(
        Json,
        _call(
            "restore",
            **_named(session, agent),
            dry_run=dry_run,
            out=_path(out),
            force=force,
            partial=partial,
        ),
    )


def inspect(session: Session, *, agent: str | None = None, count: Count = "o200k") -> Json:
    """Where the bytes and tokens of a session go, and whether it is valid."""
    return cast(Json, _call("inspect", **_named(session, agent, count)))


def losses(session: Session, *, agent: str | None = None, count: Count = "o200k") -> Json:
    """What compactions removed from a session's context, and what of it was needed later."""
    return cast(Json, _call("losses", **_named(session, agent, count)))


def search(
    words: str, *, agent: str | None = None, project: Session | None = None, limit: int = 20
) -> list[Json]:
    """Searches all sessions of this machine; the best hits first.

    All words must occur in one message. ``"several words"``, ``begin*``, ``-word``, ``agent:``,
    ``project:``, ``role:`` and ``session:`` work as in ``epitome search``.
    """
    found = _call("search", words=words, agent=agent, project=_path(project), limit=limit)
    return cast("list[Json]", found)


def sessions(*, agent: str | None = None, project: Session | None = None) -> list[Json]:
    """The sessions of this machine, and what compacting each would save."""
    return cast("list[Json]", _call("sessions", agent=agent, project=_path(project)))


def simulate(
    sessions: Session | Sequence[Session],
    *,
    recipes: Sequence[str] = (),
    commands: Sequence[str] = (),
    window: int | None = None,
    overhead: int | None = None,
    target: float | None = None,
    model: str | None = None,
    agent: str | None = None,
    count: Count = "o200k",
) -> Json:
    """Replays sessions under recipes: what they keep of what was used later, and what they cost.

    ``commands`` are policies of your own, which come before the recipes in the report: programs
    that are started by the shell, as ``epitome simulate --policy-command`` does.
    ``target`` is the size to which a forced compaction reduces the context, as a share of its
    tokens, from 0 to 1.
    """
    several = [sessions] if isinstance(sessions, (str, os.PathLike)) else sessions
    return cast(
        Json,
        _call(
            "simulate",
            sessions=[os.fspath(session) for session in several],
            agent=agent,
            recipes=list(recipes),
            commands=list(commands),
            window=window,
            overhead=overhead,
            target=target,
            model=model,
            count=count,
        ),
    )


def redact(text: str, *, find: Sequence[str] = ()) -> str:
    """A text without secrets and personal data: each is replaced by ``[REDACTED:rule-1]``.

    ``find`` are ``secrets``, ``pii``, or rules by name; both kinds by default.
    """
    return cast(str, _call("redact", text=text, find=list(find))["text"])


def render(
    session: Session,
    format: Literal["html", "markdown", "json", "jsonl"] = "markdown",
    *,
    detail: Literal["conversation", "calls", "steps", "full"] | None = None,
    as_sent: bool = False,
    redact: bool = True,
    agent: str | None = None,
) -> str:
    """A session with its sub-agents as one text, without secrets and personal data."""
    return cast(
        str,
        _call(
            "render",
            **_named(session, agent),
            format=format,
            detail=detail,
            as_sent=as_sent,
            redact=redact,
        )["text"],
    )
