"""The contexts of the conversations that pass a client: each request has its whole list."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from ._context import LISTS, Api, _Base

LOG = logging.getLogger("epitome")

#: How many conversations are remembered. One that was forgotten is compacted as a new one.
MOST = 128

C = TypeVar("C", bound=_Base)


class Conversation(Generic[C]):
    """A conversation: its context, and what the service counted for its last response."""

    def __init__(self, context: C, api: Api, begin: str) -> None:
        self.context = context
        self.api = api
        #: Names the first message.
        self.begin = begin
        self.usage: dict[str, int] | None = None
        #: The list of the last request, for an adapter that must know where the context is.
        #: Conversations that begin alike share it.
        self.last: list[Any] = []
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )
        #: For an adapter whose framework keeps what it was given: that, and what it was made of.
        self.given: tuple[list[Any], list[Any]] | None = None


    def lock(self) -> asyncio.Lock:
        """Held while a context with ``await`` goes to a list and something is read from it: another
        conversation that begins alike would move it meanwhile."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


class Conversations(Generic[C]):
    """The contexts of several conversations, which are told apart by how they begin."""

    def __init__(self, make: Callable[[Api, int], C]) -> None:
        self._make = make
        self._known: OrderedDict[str, Conversation[C]] = OrderedDict()

    def find(self, api: Api, body: Mapping[str, Any]) -> Conversation[C] | None:
        """The conversation that a request continues, or a new one. ``None`` if the request has no
        list of messages."""
        messages = body.get(LISTS.get(api, "messages"))
        if not isinstance(messages, list) or not messages:
            return None
        # Histories that another request refers to are not here.
        if body.get("previous_response_id") or body.get("conversation"):
            return None
        prompt = {key: body.get(key) for key in ("system", "instructions", "systemInstruction")}
        key = _key([api, prompt, _beginning(messages)])
        if key not in self._known:
            # Roughly four bytes are a token; prompt and tools are in no message.
            overhead = len(json.dumps([prompt, body.get("tools")])) // 4
            self._known[key] = Conversation(
                self._make(api, overhead), api, _key(messages[0])
            )
        self._known.move_to_end(key)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return self._known[key]

    def __iter__(self) -> Iterator[Conversation[C]]:
        return iter([*self._known.values()])

    def begun_with(self, first: Any) -> Conversation[C] | None:
        """The newest conversation that has this first message."""
        begin = _key(first)
        found = (it for it in reversed(self._known.values()) if it.begin == begin)
        return next(found, None)


def _beginning(messages: list[Any]) -> list[Any]:
    """The messages that tell a conversation apart: prompts, which others may have as well, and the
    first message that is none."""
    for n, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("system", "developer"):
            return messages[: n + 1]
    return messages


def _key(first: Any) -> str:
    text = json.dumps(_without_marks(first), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_marks(value: Any) -> Any:
    """A value without the marks for a cache, which move from request to request."""
    if isinstance(value, list):
        return [_without_marks(each) for each in value]
    if isinstance(value, dict):
        return {key: _without_marks(each) for key, each in value.items() if key != "cache_control"}
    return value


def replaced(body: Mapping[str, Any], view: Mapping[str, Any]) -> dict[str, Any]:
    """A request with the messages of a view."""
    new = {**body, **view}
    for key in ("instructions",):
        if body.get(key) and view.get(key):
            new[key] = f"{body[key]}\n\n{view[key]}"
    mark = _last_mark(body.get("messages"))
    if mark is not None and new["messages"]:
        last = new["messages"][-1]
        if isinstance(last.get("content"), str) and last["content"]:
            last["content"] = [{"type": "text", "text": last["content"]}]
        # Reasoning cannot be marked.
        marked = ("text", "image", "document", "tool_use", "tool_result", "image_url")
        if isinstance(last.get("content"), list) and last["content"]:
            block = last["content"][-1]
            if block.get("type") in marked:
                block["cache_control"] = mark
    return new


def _last_mark(messages: Any) -> Any:
    """The last mark for a cache in the messages of a request."""
    for message in reversed(messages if isinstance(messages, list) else []):
        content = message.get("content") if isinstance(message, dict) else None
        for block in reversed(content if isinstance(content, list) else []):
            if isinstance(block, dict) and block.get("cache_control") is not None:
                return block["cache_control"]
    return None


def counted(reply: Any) -> dict[str, int] | None:
    """What a service counted, of any API, as the engine takes it."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None
    if "prompt_tokens" in usage:
        return {"input": usage["prompt_tokens"], "output": usage.get("completion_tokens", 0)}
    if "input_tokens" not in usage:
        return None
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    read = usage["input_tokens"] + sum(usage.get(key) or 0 for key in cached)
    return {"input": read, "output": usage.get("output_tokens", 0)}
