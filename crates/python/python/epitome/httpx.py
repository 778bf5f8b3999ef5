"""A transport for ``httpx2`` and ``httpx``, on which the clients of Anthropic and OpenAI stand.

    client = anthropic.Anthropic(http_client=httpx2.Client(transport=epitome.httpx.Transport()))

Every request that has a list of messages is made smaller when its conversation is too long; all
else, and every request that epitome does not understand, passes unchanged.
"""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ._context import LISTS, Api, AsyncContext, AsyncSummaries, Context, Summaries
from ._conversations import LOG, Conversation, Conversations, counted, replaced
from ._errors import Error

if TYPE_CHECKING:
    import httpx2 as httpx
else:
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx

#: The ends of the paths whose bodies have messages, and the API of each.
PATHS: dict[str, Api] = {
    "/messages": "anthropic",
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    ":generateContent": "gemini-api",
    ":streamGenerateContent": "gemini-api",
}


def _api(request: httpx.Request) -> Api | None:
    if request.method != "POST":
        return None
    path = request.url.path
    return next((api for end, api in PATHS.items() if path.endswith(end)), None)


def _body(content: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _with_body(request: httpx.Request, body: dict[str, Any]) -> httpx.Request:
    headers = [(k, v) for k, v in request.headers.multi_items() if k.lower() != "content-length"]
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return type(request)(
        request.method,
        request.url,
        headers=headers,
        content=content,
        extensions=request.extensions,
    )


def _is_json(response: httpx.Response) -> bool:
    return "json" in response.headers.get("content-type", "")


class Transport(httpx.BaseTransport):
    """Makes requests smaller before ``wrapped`` sends them. The options are those of ``Context``;
    the window is that of the model. A refusal because of length is tried again once, smaller."""

    def __init__(
        self,
        wrapped: httpx.BaseTransport | None = None,
        *,
        recipe: str = "epitome",
        window: int = 200_000,
        log: str | os.PathLike[str] | None = None,
        summaries: Summaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        self.wrapped = httpx.HTTPTransport() if wrapped is None else wrapped

        def make(api: Api, overhead: int) -> Context:
            return Context(
                recipe,
                window=window,
                api=api,
                log=log,
                overhead=min(overhead, window // 2),
                summaries=summaries,
                count=count,
            )

        self._conversations = Conversations(make)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        api = _api(request)
        body = None if api is None else _body(request.read())
        known = None if api is None or body is None else self._conversations.find(api, body)
        if body is None or known is None:
            return self.wrapped.handle_request(request)
        response = self.wrapped.handle_request(self._smaller(request, body, known))
        if response.status_code in (400, 413):
            response.read()
            view = self._recover(known, body, response)
            if view is not None:
                response.close()
                again = _with_body(request, replaced(body, view))
                response = self.wrapped.handle_request(again)
        elif response.status_code == 200 and _is_json(response):
            known.count(body[_list_of(known)], counted(_body(response.read())))
        return response

    def _smaller(
        self, request: httpx.Request, body: dict[str, Any], known: Conversation[Context]
    ) -> httpx.Request:
        try:
            view = known.body(body[_list_of(known)])
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
            return request
        return request if view is None else _with_body(request, replaced(body, view))

    def _recover(
        self, known: Conversation[Context], body: dict[str, Any], response: httpx.Response
    ) -> dict[str, Any] | None:
        try:
            return known.refused(body[_list_of(known)], response.status_code, response.text)
        except Error as err:
            LOG.warning("a refused request is not tried again: %s", err)
            return None

    def close(self) -> None:
        self.wrapped.close()

    def __enter__(self) -> Transport:
        self.wrapped.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.wrapped.__exit__(exc_type, exc_value, traceback)


class AsyncTransport(httpx.AsyncBaseTransport):
    """As ``Transport``, for ``AsyncClient``."""

    def __init__(
        self,
        wrapped: httpx.AsyncBaseTransport | None = None,
        *,
        recipe: str = "epitome",
        window: int = 200_000,
        log: str | os.PathLike[str] | None = None,
        summaries: AsyncSummaries | None = None,
        count: Literal["o200k", "estimate"] = "o200k",
    ) -> None:
        self.wrapped = httpx.AsyncHTTPTransport() if wrapped is None else wrapped

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

        self._conversations = Conversations(make)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        api = _api(request)
        body = None if api is None else _body(await request.aread())
        known = None if api is None or body is None else self._conversations.find(api, body)
        if body is None or known is None:
            return await self.wrapped.handle_async_request(request)
        smaller = await self._smaller(request, body, known)
        response = await self.wrapped.handle_async_request(smaller)
        if response.status_code in (400, 413):
            await response.aread()
            view = await self._recover(known, body, response)
            if view is not None:
                await response.aclose()
                again = _with_body(request, replaced(body, view))
                response = await self.wrapped.handle_async_request(again)
        elif response.status_code == 200 and _is_json(response):
            known.count(body[_list_of(known)], counted(_body(await response.aread())))
        return response

    async def _smaller(
        self, request: httpx.Request, body: dict[str, Any], known: Conversation[AsyncContext]
    ) -> httpx.Request:
        try:
            view = await known.body_async(body[_list_of(known)])
        except Error as err:
            LOG.warning("a request is sent unchanged: %s", err)
            return request
        return request if view is None else _with_body(request, replaced(body, view))

    async def _recover(
        self, known: Conversation[AsyncContext], body: dict[str, Any], response: httpx.Response
    ) -> dict[str, Any] | None:
        messages = body[_list_of(known)]
        try:
            return await known.refused_async(messages, response.status_code, response.text)
        except Error as err:
            LOG.warning("a refused request is not tried again: %s", err)
            return None

    async def aclose(self) -> None:
        await self.wrapped.aclose()

    async def __aenter__(self) -> AsyncTransport:
        await self.wrapped.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.wrapped.__aexit__(exc_type, exc_value, traceback)


def _list_of(known: Conversation[Any]) -> str:
    return LISTS.get(known.api, "messages")
