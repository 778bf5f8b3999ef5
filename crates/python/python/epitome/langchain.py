"""A middleware for agents of LangChain 1.x.

    agent = create_agent(model, tools, middleware=[epitome.langchain.EpitomeMiddleware()])

The state of the agent keeps every message; only what the model gets is smaller. The model has a
tool ``recall``, with which it reads what was removed.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from ._context import Api, AsyncContext, AsyncSummaries, Context, Summaries
from ._conversations import LOG, Conversations, counted
from ._errors import Error
from ._matching import Block, Said, Sent, matched, messages, result_text

Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class EpitomeMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives the model a context that stays small. The options are those of ``Context``; the window
    is that of the model."""

    def __init__(
        self,
        *,
        recipe: str = "epitome",
        window: int = 200_000,
        log: str | os.PathLike[str] | None = None,
        summaries: Summaries | None = None,
        async_summaries: AsyncSummaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
        recall: bool = True,
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
        self.tools = [self._recall_tool()] if recall else []

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        said = [_said(message) for message in request.messages]
        known = self._sync.find("anthropic", _body(request, said))
        if known is None:
            return handler(request)
        try:
            body = known.body(messages(said), _usage(request.messages))
            if body is not None:
                request = request.override(messages=_rebuilt(body["messages"], said))
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
        return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any]:
        said = [_said(message) for message in request.messages]
        known = self._async.find("anthropic", _body(request, said))
        if known is None:
            return await handler(request)
        try:
            body = await known.body_async(messages(said), _usage(request.messages))
            if body is not None:
                request = request.override(messages=_rebuilt(body["messages"], said))
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
        return await handler(request)

    def _recall_tool(self) -> Any:
        def recall(ref: str, runtime: ToolRuntime) -> str:
            said = _before_call(runtime)
            known = self._sync.begun_with(_first(said))
            if known is None:
                return "nothing was removed"
            try:
                return known.recall(messages(said), ref)
            except Error as err:
                return str(err)

        async def recall_async(ref: str, runtime: ToolRuntime) -> str:
            said = _before_call(runtime)
            known = self._async.begun_with(_first(said))
            if known is None:
                return "nothing was removed"
            try:
                return await known.recall_async(messages(said), ref)
            except Error as err:
                return str(err)

        return StructuredTool.from_function(
            recall, recall_async, name="recall", description=RECALL
        )


#: What the model reads about the tool.
RECALL = (
    "Returns a text that was removed from the conversation, by the name that stands in its place: "
    "a reference such as k7f3a9c2, or the number of a call such as #4."
)


def _before_call(runtime: ToolRuntime) -> list[Said[AnyMessage]]:
    """The messages of the request whose response has the call of a tool."""
    whole: list[AnyMessage] = runtime.state["messages"]
    ends = [n for n, message in enumerate(whole) if isinstance(message, AIMessage)]
    return [_said(message) for message in whole[: ends[-1] if ends else len(whole)]]


def _first(said: Sequence[Said[AnyMessage]]) -> list[Any]:
    return [said[0].value.id, said[0].blocks] if said else []


def _body(request: ModelRequest[Any], said: Sequence[Said[AnyMessage]]) -> dict[str, Any]:
    """What tells the conversation apart, and what every request has beside its messages."""
    prompt = request.system_message.text if request.system_message else None
    tools = [getattr(it, "args", None) or getattr(it, "description", it) for it in request.tools]
    return {"messages": [_first(said)] if said else [], "system": prompt, "tools": str(tools)}


def _usage(sent: Sequence[BaseMessage]) -> dict[str, int] | None:
    """What the service counted for the last response, if nothing else was said since."""
    last = next((it for it in reversed(sent) if isinstance(it, AIMessage)), None)
    return counted({"usage": last.usage_metadata}) if last and last.usage_metadata else None


def _said(message: AnyMessage) -> Said[AnyMessage]:
    if isinstance(message, ToolMessage):
        content = [_block(it) for it in _parts(message)]
        texts = all(it["type"] == "text" for it in content)
        result: Block = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id,
            "content": "\n".join(it["text"] for it in content) if texts else content,
        }
        if message.status == "error":
            result["is_error"] = True
        return Said("user", [result], message)
    if isinstance(message, AIMessage):
        blocks = [_block(it) for it in _parts(message) if _is_said(it)]
        calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
        for call in calls:
            given = call["args"] if isinstance(call["args"], dict) else {"text": call["args"]}
            use = {"type": "tool_use", "id": call["id"], "name": call["name"], "input": given}
            blocks.append(use)
        return Said("assistant", blocks, message)
    return Said("user", [it for it in map(_block, _parts(message)) if it.get("text") != ""], message)


def _parts(message: BaseMessage) -> list[Any]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}]
    return [{"type": "text", "text": it} if isinstance(it, str) else it for it in message.content]


def _is_said(part: dict[str, Any]) -> bool:
    """Whether a part of a response is one that the engine counts. Calls are added by themselves;
    reasoning without a signature is the model's own affair."""
    if part["type"] == "text":
        return bool(part["text"])
    return part["type"] == "thinking" and bool(part.get("signature"))


def _block(part: dict[str, Any]) -> Block:
    """A part of a content as Anthropic's. What has no such form is a text that names it."""
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] == "thinking":
        signature = part["signature"]
        return {"type": "thinking", "thinking": part["thinking"], "signature": signature}
    if part["type"] == "image_url":
        given = part["image_url"]
        url = given["url"] if isinstance(given, dict) else given
        return _image(url)
    if part["type"] == "image" and "base64" in part:
        return _image(f"data:{part.get('mime_type', 'image/png')};base64,{part['base64']}")
    if part["type"] == "image" and "source" in part:
        return {"type": "image", "source": part["source"]}
    return {"type": "text", "text": f"[{part['type']}]"}


def _image(url: str) -> Block:
    head, _, data = url.partition(";base64,")
    if not data:
        return {"type": "image", "source": {"type": "url", "url": url}}
    media = head.removeprefix("data:")
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def _rebuilt(
    view: Sequence[dict[str, Any]], said: Sequence[Said[AnyMessage]]
) -> list[AnyMessage]:
    # What is in no message of Anthropic's (a system message that is empty) is sent as it is.
    return [_message(sent) for sent in matched(view, said)]


def _message(sent: Sent[AnyMessage]) -> AnyMessage:
    message = sent.value
    if message is not None and not sent.is_edited:
        return message
    if isinstance(message, ToolMessage):
        return message.model_copy(update={"content": result_text(sent.blocks[0])})
    if isinstance(message, AIMessage):
        return _response(message, sent.blocks)
    texts = [block["text"] for block in sent.blocks if block["type"] == "text"]
    if sent.role == "assistant":
        return AIMessage("\n".join(texts))
    if texts:
        return HumanMessage("\n".join(texts))
    return HumanMessage([dict(block) for block in sent.blocks])


def _response(message: AIMessage, blocks: Sequence[Block]) -> AIMessage:
    """A response whose arguments were shortened, or whose reasoning was removed."""
    inputs = {block["id"]: block["input"] for block in blocks if block["type"] == "tool_use"}
    calls = [{**it, "args": inputs.get(it["id"], it["args"])} for it in message.tool_calls]
    content: Any = message.content
    if isinstance(content, list):
        thinks = any(block["type"] == "thinking" for block in blocks)
        content = [
            {**it, "input": inputs[it["id"]]}
            if isinstance(it, dict) and it["type"] == "tool_use" and it["id"] in inputs
            else it
            for it in content
            if thinks or not isinstance(it, dict) or it["type"] != "thinking"
        ]
    return message.model_copy(update={"tool_calls": calls, "content": content})
