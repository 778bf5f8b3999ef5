"""What is kept of the last call with a whole list, to answer the same list without the library.

A program may modify its messages in place, so that the identity of a list says nothing. A copy is
kept instead, which has the program's own strings: comparing it takes a fraction of a microsecond a
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class _Number:
    """A number or a truth value. For Python ``1``, ``1.0`` and ``True`` are equal, not for JSON."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        given = other.value if isinstance(other, _Number) else other
        return type(given) is type(self.value) and repr(given) == repr(self.value)

    def model_dump(self, **_: Any) -> float:
        """For ``encode``."""
        return self.value


class NotJson(Exception):
    """A value may be modified without being noticed."""


def copied(value: Any) -> Any:
    """A copy of JSON that is equal to the value as long as that is the same JSON.

    Raises ``NotJson`` for values of other types.
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise NotJson
        return {key: copied(each) for key, each in value.items()}
    if kind is list:
        return [copied(each) for each in value]
    if kind is bool or kind is int or kind is float:
        return _Number(value)
    raise NotJson


def copied_messages(messages: Sequence[Any], before: Sequence[Any] = ()) -> list[Any]:
    """Copies of messages. Those that are equal to the copies in ``before`` are taken from there."""
    both = zip(before, messages)
    begin = [old if old == new else copied(new) for old, new in both]
    return [*begin, *map(copied, messages[len(begin) :])]


def _restored(copy: Any) -> Any:
    if isinstance(copy, dict):
        return {key: _restored(each) for key, each in copy.items()}
    if isinstance(copy, list):
        return [_restored(each) for each in copy]
    return copy.value if isinstance(copy, _Number) else copy


class Kept:
    """A list, and what a view of it was."""

    def __init__(
        self, messages: list[Any], body: dict[str, Any], name: str, view: list[Any]
    ) -> None:
        #: A copy of the list.
        self.messages = messages
        #: A copy of the messages of the view.
        self.view = view
        #: Whether anything is sent otherwise than it was said, once it is known.
        self.is_changed: bool | None = None
        self._body = body
        self._name = name

    def begins(self, messages: list[Any]) -> bool:
        """Whether a list begins with this one."""
        length = len(self.messages)
        head = messages if len(messages) == length else messages[:length]
        return self.messages == head

    def body(self) -> dict[str, Any]:
        """The body of the view. The program may have modified the messages that it was given."""
        if self.view != self._body[self._name]:
            self._body = {**self._body, self._name: _restored(self.view)}
        return {**self._body, self._name: [*self._body[self._name]]}
