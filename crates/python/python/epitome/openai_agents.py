"""Filters for the Agents SDK of OpenAI.

    config = RunConfig(call_model_input_filter=epitome.openai_agents.InputFilter())
    await Runner.run(agent, "Go.", run_config=config, session=session)

The session keeps every item; only what the model gets is smaller.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from agents import FunctionTool, TResponseInputItem, function_tool
from agents.memory import Session, SessionSettings
from agents.run import CallModelData, ModelInputData

from ._context import Api, AsyncContext, AsyncSummaries
from ._conversations import LOG, Conversation, Conversations
from ._errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Request(NamedTuple):
    """A request, as it was before it was made smaller."""

    conversations: Conversations[AsyncContext]
    known: Conversation[AsyncContext]
    items: list[Any]


#: The last request of this run. The tools of a run are called by the task that sends its requests,
#: or by tasks that this one begins.
_SENT: ContextVar[_Request | None] = ContextVar("epitome", default=None)


class _Smaller:
    """The contexts of conversations with the Responses API."""

    def __init__(
        self,
        *,
        recipe: str = "epitome",
        window: int = 200_000,
        log: str | os.PathLike[str] | None = None,
        summaries: AsyncSummaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        def make(api: Api, overhead: int) -> AsyncContext:
            return AsyncContext(
                recipe,
                window=window,
                api=api,
                log=log,
                overhead=min(overhead, window // 2),
                summaries=summaries,
                count=count,
            )

        self.conversations = Conversations(make)

    async def items(
        self, items: Sequence[TResponseInputItem], instructions: str | None, tools: Any = None
    ) -> list[TResponseInputItem]:
        """The items to send."""
        body = {"input": list(items), "instructions": instructions, "tools": tools}
        known = self.conversations.find("openai-responses", body)
        if known is None:
            return list(items)
        whole = list(items)
        _SENT.set(_Request(self.conversations, known, whole))
        try:
            view = await known.body_async(whole)
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
            return list(items)
        return list(items) if view is None else cast("list[Any]", view["input"])


class InputFilter(_Smaller):
    """A ``call_model_input_filter``. The options are those of ``AsyncContext``; the window is that
    of the model."""

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        sent = data.model_data
        tools = [getattr(tool, "params_json_schema", tool.name) for tool in data.agent.tools]
        items = await self.items(sent.input, sent.instructions, str(tools))
        return ModelInputData(input=items, instructions=sent.instructions)

    def recall_tool(self) -> FunctionTool:
        """A tool with which the model reads what was removed from its own conversation."""

        @function_tool
        async def recall(ref: str) -> str:
            """Returns a text that was removed from the conversation, by the name that stands in
            its place: a reference such as k7f3a9c2, or the number of a call such as #4."""
            return await self._recall(ref)

        return recall

    async def _recall(self, ref: str) -> str:
        sent = _SENT.get()
        if sent is None or sent.conversations is not self.conversations:
            return "nothing was removed"
        try:
            return await sent.known.recall_async(sent.items, ref)
        except Error as err:
            return str(err)


class EpitomeSession:
    """A session that keeps everything in another one, and gives back what fits the window."""

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session: Session,
        *,
        recipe: str = "epitome",
        window: int = 200_000,
        log: str | os.PathLike[str] | None = None,
        summaries: AsyncSummaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        self.session = session
        self.session_id = session.session_id
        self._smaller = _Smaller(
            recipe=recipe, window=window, log=log, summaries=summaries, count=count
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        items = await self.session.get_items(limit)
        return items if limit is not None else await self._smaller.items(items, None)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self.session.add_items(items)

    async def pop_item(self) -> TResponseInputItem | None:
        return await self.session.pop_item()

    async def clear_session(self) -> None:
        await self.session.clear_session()
