"""A history processor for pydantic-ai.

    agent = Agent(model, capabilities=[ProcessHistory(epitome.pydantic_ai.HistoryProcessor())])

What the model gets is smaller. A processor's result replaces the history of the run; what was
removed is in the context of the processor, and ``agent.tool(processor.recall)`` gives it back to
the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Union

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ._context import Api, AsyncContext, AsyncSummaries
from ._conversations import LOG, Conversation, Conversations, Given
from ._errors import Error
from ._matching import Block, Said, Sent, matched, messages, result_text

#: A part of a request with the request itself, or a response.
Value = tuple[ModelMessage, Union[ModelRequestPart, None]]


class HistoryProcessor:
    """Makes histories smaller. The options are those of ``AsyncContext``; the window is that of the
    model."""

    def __init__(
        self,
        *,
        recipe: str = "epitome",
        window: int = 200_000,
        overhead: int = 0,
        log: str | os.PathLike[str] | None = None,
        summaries: AsyncSummaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        def make(api: Api, more: int) -> AsyncContext:
            return AsyncContext(
                recipe,
                window=window,
                api=api,
                log=log,
                overhead=overhead,
                summaries=summaries,
                count=count,
            )

        self._conversations = Conversations(make)

    async def __call__(self, history: list[ModelMessage]) -> list[ModelMessage]:
        whole = [*history]
        before = self._before(history)
        if before is not None:
            _, (sent, sent_whole) = before
            whole = [*sent_whole, *history[len(sent) :]]
        said = _said_by(whole)
        known = self._conversations.find("anthropic", {"messages": messages(said)})
        if known is None:
            return history
        try:
            body = await known.body_async(messages(said))
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
            return whole
        if body is None:
            return whole
        given = list(_rebuilt(body["messages"], said))
        known.given.append(Given([*given], whole))
        return given

    def _before(
        self, history: Sequence[ModelMessage]
    ) -> tuple[Conversation[AsyncContext], Given] | None:
        """The conversation that a history continues, and the list that it continues: the framework
        gives what it was given back, with news behind it."""
        for known in self._conversations:
            # One conversation may be continued twice.
            for given in reversed(known.given):
                head = history[: len(given.given)]
                if len(head) == len(given.given) and all(map(_is, head, given.given)):
                    return known, given
        return None

    async def recall(self, ctx: RunContext[Any], ref: str) -> str:
        """Returns a text that was removed from the conversation, by the name that stands in its
        place: a reference such as k7f3a9c2, or the number of a call such as #4."""
        before = self._before(ctx.messages)
        if before is None:
            return "nothing was removed"
        known, given = before
        try:
            return await known.recall_async(messages(_said_by(given.whole)), ref)
        except Error as err:
            return str(err)


def _is(one: ModelMessage, other: ModelMessage) -> bool:
    return one is other or one == other


def _said_by(history: Sequence[ModelMessage]) -> list[Said[Value]]:
    return [each for message in history for each in _said(message)]


def _said(message: ModelMessage) -> Iterator[Said[Value]]:
    if isinstance(message, ModelResponse):
        yield Said("assistant", [*_response_blocks(message)], (message, None))
        return
    for part in message.parts:
        yield Said("user", _request_blocks(part), (message, part))


def _request_blocks(part: ModelRequestPart) -> list[Block]:
    if isinstance(part, ToolReturnPart):
        text = part.model_response_str()
        return [{"type": "tool_result", "tool_use_id": part.tool_call_id, "content": text}]
    if isinstance(part, RetryPromptPart):
        text = part.model_response()
        if part.tool_name is None:
            return [{"type": "text", "text": text}]
        return [
            {
                "type": "tool_result",
                "tool_use_id": part.tool_call_id,
                "content": text,
                "is_error": True,
            }
        ]
    if isinstance(part, UserPromptPart):
        given = [part.content] if isinstance(part.content, str) else part.content
        texts = [it if isinstance(it, str) else f"[{type(it).__name__}]" for it in given]
        return [{"type": "text", "text": text} for text in texts if text]
    if isinstance(part, SystemPromptPart):
        return []
    return []


def _response_blocks(message: ModelResponse) -> Iterator[Block]:
    for part in message.parts:
        if isinstance(part, TextPart) and part.content:
            yield {"type": "text", "text": part.content}
        elif isinstance(part, ThinkingPart) and part.signature and part.content:
            signature = part.signature
            yield {"type": "thinking", "thinking": part.content, "signature": signature}
        elif isinstance(part, ToolCallPart):
            yield {
                "type": "tool_use",
                "id": part.tool_call_id,
                "name": part.tool_name,
                "input": part.args_as_dict(),
            }


def _rebuilt(
    view: Sequence[dict[str, Any]], said: Sequence[Said[Value]]
) -> Iterator[ModelMessage]:
    """The messages of a view. Parts that say nothing to the engine, such as the prompt, are in the
    first request."""
    silent = [
        it.value[1]
        for it in said
        if not it.blocks and it.role == "user" and it.value[1] is not None
    ]
    parts: list[ModelRequestPart] = list(silent)
    of: ModelRequest | None = None
    for sent in matched(view, said):
        if sent.role == "user":
            if sent.value is not None and isinstance(sent.value[0], ModelRequest):
                of = sent.value[0]
            parts.extend(_request_parts(sent))
            continue
        if parts:
            yield ModelRequest(parts) if of is None else replace(of, parts=parts)
            parts, of = [], None
        yield _response(sent)
    if parts:
        yield ModelRequest(parts) if of is None else replace(of, parts=parts)


def _request_parts(sent: Sent[Value]) -> list[ModelRequestPart]:
    part = None if sent.value is None else sent.value[1]
    if part is not None and not sent.is_edited:
        return [part]
    if isinstance(part, ToolReturnPart):
        shorter: Any = result_text(sent.blocks[0])
        return [replace(part, content=shorter)]
    if isinstance(part, RetryPromptPart):
        return [replace(part, content=result_text(sent.blocks[0]))]
    return [UserPromptPart(block["text"]) for block in sent.blocks if block["type"] == "text"]


def _response(sent: Sent[Value]) -> ModelResponse:
    message = None if sent.value is None else sent.value[0]
    if not isinstance(message, ModelResponse):
        texts = [TextPart(block["text"]) for block in sent.blocks if block["type"] == "text"]
        return ModelResponse(texts)
    if not sent.is_edited:
        return message
    inputs = {block["id"]: block["input"] for block in sent.blocks if block["type"] == "tool_use"}
    thinks = any(block["type"] == "thinking" for block in sent.blocks)
    parts = [
        replace(part, args=inputs[part.tool_call_id])
        if isinstance(part, ToolCallPart) and part.tool_call_id in inputs
        else part
        for part in message.parts
        if thinks or not isinstance(part, ThinkingPart)
    ]
    return replace(message, parts=parts)
