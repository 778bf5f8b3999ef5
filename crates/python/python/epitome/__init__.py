"""Keeps the context of AI agents small and valid, and gives every byte back.

``Context`` keeps the context of a running agent; the functions work on stored sessions, as the
commands of the program ``epitome`` do, and return the same JSON.
"""

from ._context import Answer, Api, AsyncContext, Context, Hit, Message, Question
from ._errors import Error
from ._sessions import (
    compact,
    inspect,
    losses,
    redact,
    render,
    restore,
    search,
    sessions,
    simulate,
)

__all__ = [
    "Answer",
    "Api",
    "AsyncContext",
    "Context",
    "Error",
    "Hit",
    "Message",
    "Question",
    "compact",
    "inspect",
    "losses",
    "redact",
    "render",
    "restore",
    "search",
    "sessions",
    "simulate",
]
