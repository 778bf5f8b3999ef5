"""The contexts of the conversations that pass a client: each request has its whole list."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from ._context import LISTS, Api, AsyncContext, Context, _Base

LOG = logging.getLogger("epitome")

#: How many conversations are remembered. One that was forgotten is compacted as a new one.
MOST = 128

#: How many lists that were given back are remembered of each conversation.
MOST_GIVEN = 32

C = TypeVar("C", bound=_Base)


class Given(NamedTuple):
    """A list that was given back to a framework, and the list that it was made of."""

    given: list[Any]
    whole: list[Any]


class Conversation(Generic[C]):
    """A conversation and its context.

    Conversations that begin alike share it. So everything that asks the context goes to a list
    first, and nothing else uses the context until the answer is there: not another task, and not
    another thread.
    """

    def __init__(self, context: C, api: Api, begin: str) -> None:
        self.context = context
        self.api = api
        #: Names the first message.
        self.begin = begin
        #: What the service counted for the list where the context is.
        self.usage: dict[str, int] | None = None
        #: For an adapter whose framework keeps what it was given, the newest last.
        self.given: deque[Given] = deque(maxlen=MOST_GIVEN)
        #: The list where the context is; ``None`` if a view failed since.
        self._list: list[Any] | None = None
        self._lock = threading.Lock()
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def body(
        self: Conversation[Context], messages: Sequence[Any], usage: Mapping[str, int] | None = None
    ) -> dict[str, Any] | None:
        """What to send in place of a whole list; ``None`` if the list is sent as it is."""
        with self._lock:
            body = self._go_to(messages, usage)
            return body if self.context.is_changed else None

    def refused(
        self: Conversation[Context], messages: Sequence[Any], status: int | None, body: str
    ) -> dict[str, Any] | None:
        """What to send in place of a whole list whose request was refused."""
        with self._lock:
            if self._list != messages:
                self._go_to(messages)
            return self.context.refused(status, body)

    def recall(self: Conversation[Context], messages: Sequence[Any], ref: str) -> str:
        """A text that was removed from a whole list."""
        with self._lock:
            if self._list != messages:
                self._go_to(messages)
            return self.context.recall(ref)

    def recall_here(self, messages: Sequence[Any], ref: str) -> str | None:
        """As ``recall``, where nothing can be awaited; ``None`` if the context is elsewhere."""
        # A task of this thread may have the lock until it is awaited.
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self.context.recall(ref) if self._list == messages else None
        finally:
            self._lock.release()

    def count(self, messages: Sequence[Any], usage: dict[str, int] | None) -> None:
        """Notes what the service counted for the request and the response of a whole list."""
        if self._list == messages:
            self.usage = usage

    def _usage_before(self, messages: Sequence[Any]) -> dict[str, int] | None:
        """What was counted for the last request, if this list continues that one."""
        before = self._list
        continues = before is not None and [*messages[: len(before)]] == before
        return self.usage if continues else None

    def _go_to(
        self: Conversation[Context], messages: Sequence[Any], usage: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        usage = usage if usage is not None else self._usage_before(messages)
        self._list = None
        body = self.context.body(messages, usage)
        self._list, self.usage = [*messages], None
        return body

    async def body_async(
        self: Conversation[AsyncContext],
        messages: Sequence[Any],
        usage: Mapping[str, int] | None = None,
    ) -> dict[str, Any] | None:
        """See ``body``."""
        async with self._alone():
            body = await self._go_to_async(messages, usage)
            return body if self.context.is_changed else None

    async def refused_async(
        self: Conversation[AsyncContext], messages: Sequence[Any], status: int | None, body: str
    ) -> dict[str, Any] | None:
        """See ``refused``."""
        async with self._alone():
            if self._list != messages:
                await self._go_to_async(messages)
            return await self.context.refused(status, body)

    async def recall_async(
        self: Conversation[AsyncContext], messages: Sequence[Any], ref: str
    ) -> str:
        """See ``recall``."""
        async with self._alone():
            if self._list != messages:
                await self._go_to_async(messages)
            return self.context.recall(ref)

    async def _go_to_async(
        self: Conversation[AsyncContext],
        messages: Sequence[Any],
        usage: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        usage = usage if usage is not None else self._usage_before(messages)
        self._list = None
        body = await self.context.body(messages, usage)
        self._list, self.usage = [*messages], None
        return body

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Keeps out the other tasks of this event loop, and other threads with theirs."""
        tasks = self._tasks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with tasks:
            while not self._lock.acquire(blocking=False):
                await asyncio.sleep(0.001)
            try:
                yield
            finally:
                self._lock.release()


class Conversations(Generic[C]):
    """The contexts of several conversations, which are told apart by how they begin."""

    def __init__(self, make: Callable[[Api, int], C]) -> None:
        self._make = make
        self._known: OrderedDict[str, Conversation[C]] = OrderedDict()
        self._lock = threading.Lock()

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
        with self._lock:
            if key not in self._known:
                # Roughly four bytes are a token; prompt and tools are in no message.
                overhead = len(json.dumps([prompt, body.get("tools")])) // 4
                context = self._make(api, overhead)
                self._known[key] = Conversation(context, api, _key(messages[0]))
            self._known.move_to_end(key)
            while len(self._known) > MOST:
                self._known.popitem(last=False)
            return self._known[key]

    def __iter__(self) -> Iterator[Conversation[C]]:
        """The conversations, the one that was used last at the beginning."""
        with self._lock:
            return iter([*reversed(self._known.values())])

    def begun_with(self, first: Any) -> Conversation[C] | None:
        """The newest conversation that has this first message."""
        begin = _key(first)
        return next((it for it in self if it.begin == begin), None)


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
