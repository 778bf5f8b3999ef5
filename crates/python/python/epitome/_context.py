"""The context of an agent that is running."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, Union, cast

from ._errors import Error, decode, encode
from ._kept import Kept, NotJson, copied_messages
from ._native import Engine

Api = Literal["anthropic", "openai-chat", "openai-responses", "gemini-api"]
Message = Mapping[str, Any]
T = TypeVar("T")


class Question(TypedDict):
    """A question for the model that writes a summary."""

    system: str
    prompt: str
    max_tokens: int


class Answer(TypedDict, total=False):
    """An answer with what is known about it. A plain ``str`` is one that is complete."""

    text: str
    stopped: Literal["end", "length", "call", "refused"]
    usage: Mapping[str, int]


class Hit(TypedDict):
    """A line that contains a text."""

    ref: str
    line: int
    text: str


Reply = Union[str, Answer]
Summaries = Callable[[Question], Reply]
AsyncSummaries = Callable[[Question], Union[Reply, Awaitable[Reply]]]

#: Where the list of messages is in the body of a request.
LISTS = {"openai-chat": "messages", "openai-responses": "input", "gemini-api": "contents"}

#: The operations after which the next view is the same.
READING = ("usage", "recall")

_Steps = Generator[Question, "dict[str, Any]", T]


class _Base:
    """What contexts with and without ``await`` share. A generator yields the questions for
    summaries, and is sent the answers."""

    def __init__(
        self,
        recipe: str = "epitome",
        *,
        window: int = 200_000,
        api: Api = "anthropic",
        log: str | os.PathLike[str] | None = None,
        session: str | None = None,
        overhead: int = 0,
        summaries: bool = False,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        self._engine = Engine()
        options = {
            "api": api,
            "recipe": os.fspath(recipe),
            "window": window,
            "overhead": overhead,
            "log": None if log is None else os.fspath(log),
            "count": count,
        }
        decode(self._engine.start(encode(options)))
        hello = self._ask({"op": "hello", "summaries": summaries})
        #: The definition of the tool with which a model requests a compaction, for this API.
        self.tool: dict[str, Any] = hello["tool"]
        #: The API whose messages are pushed and viewed.
        self.api: str = hello["wire"]
        #: The file of the log; ``None`` if it is in memory.
        self.log: str | None = None
        #: What has happened, the oldest first: compactions, warnings, failures.
        self.events: list[dict[str, Any]] = []
        #: The reference of each call whose result is not sent in full, for ``recall``.
        self.refs: dict[str, str] = {}
        self._kept: Kept | None = None
        self._new: list[Any] = []
        self._usage: Mapping[str, int] | None = None
        if log is not None or session is not None:
            begin = {"op": "reset", "session": session or "session"}
            self.log = self._ask(begin).get("log")

    def _ask(self, request: dict[str, Any]) -> Any:
        if request["op"] not in READING:
            self._kept = None
        return decode(self._engine.answer(encode(request)))

    def _go_on(self, answer: Any) -> _Steps[Any]:
        """Has questions answered until the answer of the first request is there."""
        while "ask" in answer:
            reply = yield answer["ask"]
            answer = self._ask({"op": "answer", **reply})
        self.events.extend(answer.get("events", ()))
        return answer

    def _request(self, request: dict[str, Any]) -> _Steps[dict[str, Any]]:
        answer = yield from self._go_on(self._ask(request))
        self.refs = answer.get("refs", self.refs)
        return cast("dict[str, Any]", answer)

    def push(
        self, messages: Message | Iterable[Message], usage: Mapping[str, int] | None = None
    ) -> None:
        """Adds messages that are new: of the user, of the model, results of tools.

        They are of the API of this context, as they are sent and received. ``usage`` is what the
        service counted for the last response (``{"input": …, "output": …}``). They are read by
        the next ``view``. If one of them is not valid, that raises an ``Error`` and takes none of
        those pushed since the last ``view``: push the valid ones again.
        """
        self._new.extend([messages] if isinstance(messages, Mapping) else messages)
        self._usage = usage if usage is not None else self._usage

    def _again(
        self, messages: Sequence[Message] | None, usage: Mapping[str, int] | None
    ) -> dict[str, Any] | None:
        """What the last call returned, if it had the same list, and nothing was due in it."""
        kept = self._kept
        if kept is None or messages is None or usage is not None or self._usage is not None:
            return None
        is_same = len(messages) == len(kept.messages) and kept.begins([*messages])
        return kept.body() if is_same and not self._new else None

    def _view(
        self, messages: Sequence[Message] | None, usage: Mapping[str, int] | None
    ) -> _Steps[dict[str, Any]]:
        new, usage = self._new, usage if usage is not None else self._usage
        request: dict[str, Any] = {"op": "call", "messages": new}
        copy: list[Any] | None = None
        if messages is not None:
            if new:
                raise Error("`view` takes a whole list, or what was pushed, not both")
            request, copy = self._list_request([*messages])
        if usage is not None:
            request["usage"] = dict(usage)
        # What is refused is not tried again.
        self._new, self._usage = [], None
        return self._view_steps(request, copy, self._kept)

    def _list_request(self, messages: list[Any]) -> tuple[dict[str, Any], list[Any] | None]:
        """The request for a view of a whole list, and a copy of the list; none if there are objects
        in it that can be modified unseen."""
        kept = self._kept
        known = len(kept.messages) if kept is not None and kept.begins(messages) else 0
        before = kept.messages if kept is not None and known else []
        try:
            # A list that is modified meanwhile is kept as the library gets it.
            new = copied_messages(messages[known:])
        except NotJson:
            return {"op": "view", "messages": messages}, None
        return {"op": "call" if known else "view", "messages": new}, [*before, *new]

    def _view_steps(
        self, request: dict[str, Any], copy: list[Any] | None, before: Kept | None
    ) -> _Steps[dict[str, Any]]:
        events = len(self.events)
        body = self._body((yield from self._request(request)))
        if copy is None or len(self.events) > events:
            return body
        name = LISTS.get(self.api, "messages")
        view = copied_messages(body[name], () if before is None else before.view)
        self._kept = Kept(copy, body, name, view)
        return self._kept.body()

    def _body(self, answer: dict[str, Any]) -> dict[str, Any]:
        if self.api == "anthropic":
            return {"messages": answer["messages"] or []}
        return answer["body"] or {LISTS[self.api]: []}

    def _list(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", body[LISTS.get(self.api, "messages")])

    def _step(
        self, messages: Message | Iterable[Message], usage: Mapping[str, int] | None
    ) -> _Steps[bool]:
        self.push(messages, usage)
        request: dict[str, Any] = {"op": "step", "messages": self._new}
        if self._usage is not None:
            request["usage"] = dict(self._usage)
        self._new, self._usage = [], None
        return cast(bool, (yield from self._request(request))["changed"])

    def _compact(self, focus: str | None, target: int | None) -> _Steps[str | None]:
        self._push_now()
        request = {"op": "compact", "focus": focus, "target": target}
        answer = yield from self._request({k: v for k, v in request.items() if v is not None})
        return cast("str | None", answer["outcome"])

    def _refused(self, status: int | None, body: str) -> _Steps[dict[str, Any] | None]:
        answer = yield from self._request({"op": "refused", "status": status, "body": body})
        recovery = answer["refused"]
        if recovery["recovery"] in ("retry", "summarise"):
            return self._body(answer)
        if recovery["recovery"] == "final":
            raise Error(
                "the request stays too long", "refused", hints=tuple(recovery["because"])
            )
        return None

    def _push_now(self) -> None:
        """Adds what was pushed, without a compaction that is due."""
        new, usage = self._new, self._usage
        if new:
            self._new, self._usage = [], None
            request: dict[str, Any] = {"op": "push", "messages": new}
            self._ask(request if usage is None else {**request, "usage": dict(usage)})

    def undo(self) -> bool:
        """Takes the last compaction back. Returns whether there was one."""
        self._push_now()
        return cast(bool, self._ask({"op": "undo"})["undone"])

    def recall(self, ref: str) -> str:
        """The text that a name stands for: a reference in a stub (``k7f3a9c2``), calls of a digest
        (``#4``, ``#4–6``), a response of the model (``@7``).

        Raises ``Error`` of the kind ``not-found`` if nothing was removed under that name.
        """
        self._push_now()
        answer = self._ask({"op": "recall", "ref": ref})
        texts = [f"[{said['response']}] {said['text']}" for said in answer.get("said", ())]
        return "\n\n".join([*texts, answer["text"]])

    def search(self, text: str, limit: int = 100) -> list[Hit]:
        """The lines of the whole history that contain a text, in any case."""
        self._push_now()
        request = {"op": "recall", "search": text, "limit": limit}
        return cast("list[Hit]", self._ask(request)["hits"])

    def usage(self) -> dict[str, Any]:
        """How full the window is, in tokens, and what was saved: ``usage`` and ``report``."""
        self._push_now()
        return cast("dict[str, Any]", self._ask({"op": "usage"}))

    @property
    def is_changed(self) -> bool:
        """Whether anything is sent otherwise than it was said."""
        kept = self._kept
        if kept is not None and kept.is_changed is not None and not self._new:
            return kept.is_changed
        report = self.usage()["report"]
        is_shorter = report["compactions"] > 0 or report["said"] != report["sent"]
        is_changed = bool(self.refs) or is_shorter
        if self._kept is not None:
            self._kept.is_changed = is_changed
        return is_changed

    def open(self, log: str | os.PathLike[str]) -> dict[str, Any]:
        """Resumes a log: how many messages it has, and which calls have no result yet."""
        state = self._ask({"op": "open", "log": os.fspath(log)})
        self.log = state["log"]
        return cast("dict[str, Any]", state)


def _reply(reply: Reply) -> dict[str, Any]:
    return {"text": reply} if isinstance(reply, str) else dict(reply)


class Context(_Base):
    """A context that stays small: push what was said, send what ``view`` returns.

    ``recipe`` is one by name, or a file. ``window`` is the context window of the model in tokens,
    ``overhead`` what every request has in addition to the messages (prompt, tools). ``log`` is a
    folder in which every message is kept; without one the log is in memory. ``summaries`` is a
    function that asks a model a question and returns its answer; without one, the old part of a
    full context becomes a digest. ``count`` is how tokens are counted.

    A context belongs to one conversation. It may be used from several threads, one at a time.
    """

    def __init__(
        self,
        recipe: str = "epitome",
        *,
        window: int = 200_000,
        api: Api = "anthropic",
        log: str | os.PathLike[str] | None = None,
        session: str | None = None,
        overhead: int = 0,
        summaries: Summaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        # Modules that take long to import are imported where they are needed.
        if summaries is not None and _is_async(summaries):
            raise Error("`summaries` is async", hints=("use `AsyncContext`",))
        self._summaries = summaries
        super().__init__(
            recipe,
            window=window,
            api=api,
            log=log,
            session=session,
            overhead=overhead,
            summaries=summaries is not None,
            count=count,
        )

    def _run(self, steps: _Steps[T]) -> T:
        try:
            question = next(steps)
            while True:
                question = steps.send(self._answer(question))
        except StopIteration as end:
            return cast(T, end.value)

    def _answer(self, question: Question) -> dict[str, Any]:
        if self._summaries is None:
            return {"failed": "no function for summaries"}
        try:
            return _reply(self._summaries(question))
        except Exception as why:  # Without a summary the context stays as it is.
            return {"failed": str(why) or type(why).__name__}

    def body(
        self, messages: Sequence[Message] | None = None, usage: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """As ``view``, as the arguments of a request: ``create(model=…, **context.body())``."""
        again = self._again(messages, usage)
        return again if again is not None else self._run(self._view(messages, usage))

    def view(
        self, messages: Sequence[Message] | None = None, usage: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        """The messages to send now. What is due is done first.

        With ``messages``, the whole list of the conversation: what was said before is found again,
        and where the list differs the context goes back to that place. As long as the list and the
        view are the same, the messages are the same objects.
        """
        return self._list(self.body(messages, usage))

    def step(
        self, messages: Message | Iterable[Message], usage: Mapping[str, int] | None = None
    ) -> bool:
        """Adds messages that are new and does what is due, without spelling the view.

        Returns whether the view is another than that of the last call followed by these messages.
        A program that keeps the list that it sends appends them to it as long as this is false,
        and otherwise sends what ``view`` returns. It takes microseconds, however long the list is.
        """
        return self._run(self._step(messages, usage))

    def compact(self, focus: str | None = None, target: int | None = None) -> str | None:
        """Compacts now, and returns the outcome as a sentence.

        ``focus`` is what a summary pays attention to. Without a ``target`` in tokens a small
        context stays as it is.
        """
        return self._run(self._compact(focus, target))

    def refused(self, status: int | None, body: str) -> dict[str, Any] | None:
        """What to send in place of a request that the service refused with this status and body.

        ``None`` if the refusal is not about the length of the request. Raises ``Error`` of the kind
        ``refused`` if it cannot be made shorter.
        """
        return self._run(self._refused(status, body))


class AsyncContext(_Base):
    """As ``Context``, for programs with ``await``. ``summaries`` may be ``async``, and the event
    loop goes on while the library works."""

    def __init__(
        self,
        recipe: str = "epitome",
        *,
        window: int = 200_000,
        api: Api = "anthropic",
        log: str | os.PathLike[str] | None = None,
        session: str | None = None,
        overhead: int = 0,
        summaries: AsyncSummaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        self._summaries = summaries
        super().__init__(
            recipe,
            window=window,
            api=api,
            log=log,
            session=session,
            overhead=overhead,
            summaries=summaries is not None,
            count=count,
        )

    async def _run(self, steps: _Steps[T]) -> T:
        import asyncio

        reply: dict[str, Any] | None = None
        while True:
            done, value = await asyncio.to_thread(_step, steps, reply)
            if done:
                return cast(T, value)
            reply = await self._answer(value)

    async def _answer(self, question: Question) -> dict[str, Any]:
        if self._summaries is None:
            return {"failed": "no function for summaries"}
        try:
            reply = self._summaries(question)
            return _reply(await reply if isinstance(reply, Awaitable) else reply)
        except Exception as why:  # Without a summary the context stays as it is.
            return {"failed": str(why) or type(why).__name__}

    async def body(
        self, messages: Sequence[Message] | None = None, usage: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """See ``Context.body``."""
        again = self._again(messages, usage)
        return again if again is not None else await self._run(self._view(messages, usage))

    async def view(
        self, messages: Sequence[Message] | None = None, usage: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        """See ``Context.view``."""
        return self._list(await self.body(messages, usage))

    async def step(
        self, messages: Message | Iterable[Message], usage: Mapping[str, int] | None = None
    ) -> bool:
        """See ``Context.step``."""
        return await self._run(self._step(messages, usage))

    async def compact(self, focus: str | None = None, target: int | None = None) -> str | None:
        """See ``Context.compact``."""
        return await self._run(self._compact(focus, target))

    async def refused(self, status: int | None, body: str) -> dict[str, Any] | None:
        """See ``Context.refused``."""
        return await self._run(self._refused(status, body))


def _is_async(function: Callable[..., Any]) -> bool:
    import inspect

    return inspect.iscoroutinefunction(function)


def _step(steps: _Steps[Any], reply: dict[str, Any] | None) -> tuple[bool, Any]:
    """Goes on to the next question, or to the end."""
    try:
        return False, next(steps) if reply is None else steps.send(reply)
    except StopIteration as end:
        return True, end.value
