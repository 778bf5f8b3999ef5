"""A callback for LiteLLM.

    litellm.callbacks = [epitome.litellm.EpitomeCallback(window=200_000)]

``acompletion``, ``aresponses``, ``anthropic_messages``, the ``Router`` and the proxy then send
smaller requests. LiteLLM has no hook for ``completion`` without ``await``: call that of the
callback.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

import litellm
from litellm.exceptions import BadRequestError
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes

from ._context import LISTS, Api, AsyncContext, AsyncSummaries, Context, Summaries
from ._conversations import LOG, Conversation, Conversations, Given, counted, replaced
from ._errors import Error, encode

if TYPE_CHECKING:
    from litellm.types.utils import LLMResponseTypes

Known = Union[Conversation[Context], Conversation[AsyncContext]]

#: The calls that have lists of messages, and the API of each.
APIS: dict[CallTypes, Api] = {
    CallTypes.acompletion: "openai-chat",
    CallTypes.completion: "openai-chat",
    CallTypes.aresponses: "openai-responses",
    CallTypes.anthropic_messages: "anthropic",
}


class EpitomeCallback(CustomLogger):
    """Makes requests smaller whose conversation is too long. The options are those of ``Context``;
    the window is that of the model. Conversations are told apart by how they begin."""

    def __init__(
        self,
        *,
        recipe: str = "epitome",
        window: int = 200_000,
        log: str | os.PathLike[str] | None = None,
        summaries: Summaries | None = None,
        async_summaries: AsyncSummaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"window": window, "log": log, "count": count}

        def make(api: Api, overhead: int) -> Context:
            overhead = min(overhead, window // 2)
            return Context(recipe, api=api, overhead=overhead, summaries=summaries, **options)

        def make_async(api: Api, overhead: int) -> AsyncContext:
            asked = async_summaries if async_summaries is not None else summaries
            overhead = min(overhead, window // 2)
            return AsyncContext(recipe, api=api, overhead=overhead, summaries=asked, **options)

        self._sync = Conversations(make)
        self._async = Conversations(make_async)
        #: The definition of a tool with which the model reads what was removed. The program answers
        #: its calls with ``recall``.
        self.recall_tool: dict[str, Any] = RECALL

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Called by LiteLLM before each attempt of a call."""
        api = None if call_type is None else APIS.get(call_type)
        if api is None:
            return None
        request = _Request(api, kwargs)
        known = request.find(self._async)
        if known is None:
            return None
        try:
            body = await known.body_async(request.whole)
            return {**kwargs, **request.smaller(known, body)}
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
            return {**kwargs, request.name: request.whole}

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: LLMResponseTypes, call_type: CallTypes | None
    ) -> LLMResponseTypes | None:
        """Called by LiteLLM with each response: notes what the service counted."""
        sent = self._sent(request_data, call_type)
        if sent is not None:
            known, whole = sent
            known.count(whole, _usage(response))
        return None

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: CallTypes | None,
        fallback_depth: int | None = None,
    ) -> None:
        """Called by LiteLLM after each attempt that failed: the next one is smaller if this one was
        too long."""
        sent = self._sent(request_data, call_type)
        if sent is not None:
            known, whole = sent
            try:
                await known.refused_async(whole, *_refusal(exception))
            except Error as err:
                LOG.warning("a refused request is not tried again: %s", err)

    def _sent(
        self, request: Mapping[str, Any], call_type: CallTypes | None
    ) -> tuple[Conversation[AsyncContext], list[Any]] | None:
        """The conversation of a request that was sent, and its whole list."""
        api = None if call_type is None else APIS.get(call_type)
        if api is None:
            return None
        sent = _Request(api, request)
        known = sent.find(self._async)
        return None if known is None else (known, sent.whole)

    def completion(self, model: str, messages: Sequence[Any], **options: Any) -> Any:
        """As ``litellm.completion``, with a smaller request. A refusal because of length is tried
        again once."""
        request = _Request("openai-chat", {**options, "messages": [*messages]})
        known = request.find(self._sync)
        smaller = {"messages": request.whole}
        if known is None:
            return litellm.completion(model=model, **options, **smaller)
        try:
            smaller = request.smaller(known, known.body(request.whole))
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
        try:
            response = litellm.completion(model=model, **{**options, **smaller})
        except BadRequestError as refusal:
            again = self._recover(known, request, refusal)
            if again is None:
                raise
            response = litellm.completion(model=model, **{**options, **again})
        known.count(request.whole, _usage(response))
        return response

    def _recover(
        self, known: Conversation[Context], request: _Request, refusal: Exception
    ) -> dict[str, Any] | None:
        try:
            body = known.refused(request.whole, *_refusal(refusal))
            return None if body is None else request.smaller(known, body)
        except Error as err:
            LOG.warning("a refused request is not tried again: %s", err)
            return None

    def recall(self, ref: str, messages: Sequence[Any]) -> str:
        """A text that was removed from the conversation with these messages: the result of a call
        of ``recall_tool``. They are those that were given to ``completion``; for the other calls
        there is ``arecall``."""
        request = _Request("openai-chat", {"messages": [*messages]})
        known: Conversation[Context] | None = request.continued(self._sync)
        if known is None:
            waits: Conversation[AsyncContext] | None = request.continued(self._async)
            return NOTHING if waits is None else _recalled_here(waits, request, ref)
        try:
            return known.recall(request.whole, ref)
        except Error as err:
            return str(err)

    async def arecall(self, ref: str, messages: Sequence[Any], api: Api = "openai-chat") -> str:
        """As ``recall``, for the calls with ``await``: for ``acompletion``, or for the one that has
        this API."""
        request = _Request(api, {LISTS.get(api, "messages"): [*messages]})
        known: Conversation[AsyncContext] | None = request.continued(self._async)
        if known is None:
            return NOTHING
        try:
            return await known.recall_async(request.whole, ref)
        except Error as err:
            return str(err)


class _Request:
    """The arguments of a call."""

    def __init__(self, api: Api, kwargs: Mapping[str, Any]) -> None:
        self.api: Api = api
        self.kwargs = kwargs
        #: The name of the list of messages among the arguments.
        self.name = LISTS.get(api, "messages")
        #: The list that the program has given.
        self.whole: Any = kwargs.get(self.name)

    def find(self, conversations: Conversations[Any]) -> Any:
        """The conversation that this request continues, or a new one."""
        known = self.continued(conversations)
        if known is None and isinstance(self.whole, list):
            known = conversations.find(self.api, {**self.kwargs, self.name: _plain(self.whole)})
        return known

    def continued(self, conversations: Conversations[Any]) -> Any:
        """The conversation whose last request had this list. A further attempt of a call may have
        the list that was sent: the whole one is put in its place."""
        if not self.whole:
            return None
        for known in conversations:
            for given, whole in reversed(known.given):
                if known.api == self.api and self.whole in (given, whole):
                    self.whole = whole
                    return known
        return None

    def smaller(self, known: Known, body: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments with the messages of a view; without one, with the whole list."""
        given = {self.name: self.whole}
        if body is not None:
            given = replaced({**given, "instructions": self.kwargs.get("instructions")}, body)
            given = {name: value for name, value in given.items() if value is not None}
            if self.api == "openai-chat":
                given[self.name] = _originals(given[self.name], self.whole)
        known.given.append(Given(given[self.name], self.whole))
        return given


def _recalled_here(known: Conversation[AsyncContext], request: _Request, ref: str) -> str:
    try:
        recalled = known.recall_here(request.whole, ref)
    except Error as err:
        return str(err)
    return "another conversation is read: use `arecall`" if recalled is None else recalled


def _plain(messages: Sequence[Any]) -> list[Any]:
    """Messages as JSON. Those of LiteLLM are objects."""
    return [it if isinstance(it, dict) else json.loads(encode(it)) for it in messages]


def _originals(view: Sequence[dict[str, Any]], said: Sequence[Any]) -> list[Any]:
    """A view with the program's own messages for those that are not edited: they may have more
    than the API knows, such as ``thinking_blocks``."""
    places: defaultdict[str, deque[int]] = defaultdict(deque)
    plain = _plain(said)
    for n, message in enumerate(plain):
        places[_name(message)].append(n)
    sent: list[Any] = []
    at = 0
    for message in view:
        found = places[_name(message)]
        while found and found[0] < at:
            found.popleft()
        if not found:
            sent.append(message)
            continue
        at = found[0] + 1
        sent.append(_with_edits(said[found[0]], plain[found[0]], message))
    return sent


def _name(message: Mapping[str, Any]) -> str:
    """What a message has in common with an edited one."""
    role = message.get("role")
    if role == "tool":
        return f"result {message.get('tool_call_id')}"
    calls = message.get("tool_calls")
    if calls:
        return f"calls {[call.get('id') for call in calls]}"
    return f"{role} {_text(message)}"


def _text(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        return "\n".join(part["text"] for part in content)
    return content or ""


def _with_edits(original: Any, plain: dict[str, Any], message: dict[str, Any]) -> Any:
    """A message of the program: itself, or a copy with shorter arguments or a shorter result."""
    edits = {}
    if _text(plain) != _text(message):
        edits["content"] = message.get("content")
    if plain.get("tool_calls") and _arguments(plain) != _arguments(message):
        edits["tool_calls"] = message["tool_calls"]
    return {**plain, **edits} if edits else original


def _arguments(message: Mapping[str, Any]) -> list[Any]:
    return [call.get("function") for call in message["tool_calls"]]


def _usage(response: Any) -> dict[str, int] | None:
    usage = response.get("usage") if isinstance(response, dict) else getattr(response, "usage", None)
    dump = getattr(usage, "model_dump", None)
    return counted({"usage": usage if dump is None else dump()})


def _refusal(exception: Exception) -> tuple[int | None, str]:
    """The status and the text of a refusal."""
    status = getattr(exception, "status_code", None)
    return (status if isinstance(status, int) else None), str(exception)


#: The answer to ``recall`` in a conversation that was sent as it is.
NOTHING = "nothing was removed"

RECALL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "recall",
        "description": "Returns a text that was removed from the conversation, by the name that "
        "stands in its place: a reference such as k7f3a9c2, or the number of a call such as #4.",
        "parameters": {
            "type": "object",
            "properties": {"ref": {"type": "string"}},
            "required": ["ref"],
        },
    },
}
