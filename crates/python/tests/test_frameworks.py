"""The adapters, with the frameworks themselves and a server that refuses what providers refuse."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import random
import unittest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest import mock

import anthropic
import epitome.httpx
import epitome.langchain
import epitome.litellm
import epitome.openai_agents
import epitome.pydantic_ai
import histories
import httpx2
import litellm
import openai
from agents import Agent as OpenAiAgent
from agents import Model, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, Usage
from agents import ModelResponse as AgentsResponse
from agents import ToolCallOutputItem, function_tool, set_tracing_disabled
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from litellm.exceptions import BadRequestError, ContextWindowExceededError
from litellm.integrations.custom_logger import CustomLogger
from litellm.router import Router
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import PrivateAttr
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.providers.anthropic import AnthropicProvider

URL = os.environ["TEST_SERVER"]
SEEDS = histories.seeds(100)
RECIPES = ["epitome", "clear-tool-uses", "s08", "ion"]
WINDOWS = [3_000, 8_000, 40_000]

set_tracing_disabled(True)
litellm.suppress_debug_info = True


def options(rng: random.Random) -> dict[str, Any]:
    return {"recipe": rng.choice(RECIPES), "window": rng.choice(WINDOWS), "count": "estimate"}


def text_of(path: str) -> str:
    return "".join(f"{path}: line {n} says what line {n} has to say\n" for n in range(200))


class Requests(httpx2.BaseTransport):
    """Sends requests, and keeps how long each was."""

    def __init__(self) -> None:
        self.inner = httpx2.HTTPTransport()
        self.sizes: list[int] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sizes.append(len(request.read()))
        return self.inner.handle_request(request)


class HttpxTest(unittest.TestCase):
    def test_the_client_of_anthropic(self) -> None:
        requests = Requests()
        transport = epitome.httpx.Transport(requests, window=12_000, count="estimate")
        client = anthropic.Anthropic(
            base_url=URL, api_key="none", http_client=httpx2.Client(transport=transport)
        )
        messages: list[Any] = [{"role": "user", "content": "Read all of it."}]
        for n in range(12):
            use = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"path": f"{n}"}}
            result = {
                "type": "tool_result",
                "tool_use_id": f"c{n}",
                "content": text_of(f"{n}.rs"),
                "cache_control": {"type": "ephemeral"},
            }
            messages[-1].pop("cache_control", None)
            if n:
                messages[-1]["content"][-1].pop("cache_control", None)
            messages += [
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result]},
            ]
            client.messages.create(model="scripted", max_tokens=100, messages=messages)
            with client.messages.stream(model="scripted", max_tokens=9, messages=messages) as it:
                it.get_final_message()
        self.assertLess(max(requests.sizes), 60_000)
        self.assertGreater(len(json.dumps(messages)), 100_000)

    def test_the_client_of_openai_and_await(self) -> None:
        async def talk() -> None:
            transport = epitome.httpx.AsyncTransport(window=12_000, count="estimate")
            client = openai.AsyncOpenAI(
                base_url=URL + "/v1",
                api_key="none",
                http_client=httpx2.AsyncClient(transport=transport),
            )
            turns = histories.conversation(random.Random(7))
            for n in range(len(turns)):
                part: Any = histories.chat([*turns[:n], histories.Turn("And now?")])
                await client.chat.completions.create(model="scripted", messages=part)
                items: Any = histories.responses([*turns[:n], histories.Turn("And now?")])
                await client.responses.create(model="scripted", input=items)

        asyncio.run(talk())

    def test_a_request_that_is_short_or_unknown_passes_unchanged(self) -> None:
        seen: list[bytes] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            seen.append(request.read())
            return httpx2.Response(200, json={})

        transport = epitome.httpx.Transport(httpx2.MockTransport(answer))
        client = httpx2.Client(transport=transport, base_url="http://model")
        bodies = [
            b'{"messages": [ {"role":"user","content":"Hello."} ], "x": 1.50}',
            b'{"messages": [{"role":"carrier","content":"Hello."}]}',
            b'{"input": "Hello."}',
            b"no JSON",
        ]
        for body in bodies:
            client.post("/v1/messages", content=body)
        client.get("/v1/models")
        self.assertEqual(seen, [*bodies, b""])

    def test_a_refusal_is_tried_again(self) -> None:
        sizes: list[int] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            sizes.append(len(request.read()))
            if len(sizes) == 1:
                why = {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}
                return httpx2.Response(400, json={"type": "error", "error": why})
            return httpx2.Response(200, json={})

        transport = epitome.httpx.Transport(httpx2.MockTransport(answer))
        client = httpx2.Client(transport=transport, base_url="http://model")
        turns = [histories.Turn("Read.")]
        for n in range(12):
            call = histories.Call(f"c{n}", "Read", {"path": f"{n}"}, text_of(f"{n}"))
            turns[0].steps.append(histories.Step("", [call]))
        body = {"messages": histories.anthropic(turns)}
        self.assertEqual(client.post("/v1/messages", json=body).status_code, 200)
        self.assertEqual(len(sizes), 2)
        self.assertLess(sizes[1], sizes[0])

    def test_another_conversation_is_not_sent_after_a_refusal(self) -> None:
        said = {name: histories.anthropic([reading(12, f"{name}/")]) for name in "ab"}
        sent: list[str] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            sent.append(request.read().decode())
            if len(sent) > 1:
                return httpx2.Response(200, json={})
            # The other one begins alike, and is sent before the refusal of this one is here.
            client.post("/v1/messages", json={"messages": said["b"]})
            why = {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}
            return httpx2.Response(400, json={"type": "error", "error": why})

        transport = epitome.httpx.Transport(httpx2.MockTransport(answer))
        client = httpx2.Client(transport=transport, base_url="http://model")
        client.post("/v1/messages", json={"messages": said["a"]})
        first, other, again = sent
        self.assertIn("b/11.rs", other)
        self.assertIn("a/11.rs", again)
        self.assertNotIn("b/11.rs", again)
        self.assertLess(len(again), len(first))

    def test_no_random_history_is_refused(self) -> None:
        for api, form in histories.FORMS.items():
            for seed in SEEDS:
                rng = random.Random(seed)
                transport = epitome.httpx.Transport(POOL, **options(rng))
                client = httpx2.Client(transport=transport, base_url=URL)
                for turns in histories.growing(rng):
                    body = {"model": "scripted", form.name: form.messages(turns)}
                    body |= histories.settings(api, turns)
                    with self.subTest(api=api, seed=seed):
                        answer = client.post(form.path(turns), json=body)
                        self.assertEqual(answer.status_code, 200, answer.text)


POOL = httpx2.HTTPTransport()


def langchain_messages(turns: list[histories.Turn]) -> list[AnyMessage]:
    said: list[AnyMessage] = []
    for turn in turns:
        words: Any = turn.user
        if turn.picture:
            shown = {"type": "image_url", "image_url": {"url": histories.address(turn.picture)}}
            words = [{"type": "text", "text": turn.user}, shown]
        said.append(HumanMessage(words))
        for step in turn.steps:
            made: Any = [{"name": it.name, "args": it.arguments, "id": it.id} for it in step.calls]
            content = langchain_content(step.text, step.thought)
            said.append(AIMessage(content, tool_calls=made))
            said += [
                ToolMessage(
                    histories.anthropic_result(it),
                    tool_call_id=it.id,
                    status="error" if it.failed else "success",
                )
                for it in step.calls
            ]
        if turn.end:
            said.append(AIMessage(langchain_content(turn.end, turn.thought)))
    return said


def langchain_content(words: str, thought: histories.Thought | None) -> Any:
    if thought is None:
        return words
    reasoning = {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
    return [reasoning, *([{"type": "text", "text": words}] if words else [])]


class LangChainTest(unittest.TestCase):
    def test_an_agent(self) -> None:
        histories.Server(URL).play(histories.reads(9))

        @tool
        def read(path: str) -> str:
            """Reads a file."""
            return text_of(path)

        middleware = epitome.langchain.EpitomeMiddleware(window=12_000, count="estimate")
        model: Any = ChatAnthropic(model="scripted", base_url=URL, api_key="none", max_retries=0)  # type: ignore[call-arg, arg-type]
        agent: Any = create_agent(model, [read], middleware=[middleware])
        state: Any = {"messages": [HumanMessage("Read all of it.")]}
        for _ in range(8):
            state = agent.invoke({"messages": [*state["messages"], HumanMessage("Go on.")]})
        asyncio.run(agent.ainvoke({"messages": [*state["messages"], HumanMessage("Go on.")]}))
        # The state of the agent has everything.
        whole = [it for it in state["messages"] if isinstance(it, ToolMessage)]
        self.assertTrue(all("line 199" in str(it.content) for it in whole))

    def test_no_random_history_is_refused(self) -> None:
        server = histories.Server(URL)
        model: Any = ChatAnthropic(model="scripted", base_url=URL, api_key="none")  # type: ignore[call-arg, arg-type]
        for seed in SEEDS:
            rng = random.Random(seed)
            middleware = epitome.langchain.EpitomeMiddleware(**options(rng))
            for turns in histories.growing(rng):
                sent: list[AnyMessage] = []
                said = langchain_messages(turns)
                request = Request(said)
                middleware.wrap_model_call(request, lambda it, sent=sent: sent.extend(it.messages))  # type: ignore[arg-type, misc]
                with self.subTest(seed=seed):
                    self.assertEqual(request.messages, said)
                    body = model._get_request_payload(sent)
                    server.send("/v1/messages", {**body, **histories.settings("anthropic", turns)})


    def test_a_trimmed_history_is_refused_and_a_smaller_one_is_not(self) -> None:
        server = histories.Server(URL)
        model: Any = ChatAnthropic(model="scripted", base_url=URL, api_key="none")  # type: ignore[call-arg, arg-type]
        turn = histories.Turn("Keep to TOML, and read all of it.")
        for n in range(12):
            call = histories.Call(f"c{n}", "Read", {"path": f"{n}"}, text_of(f"{n}"))
            turn.steps.append(histories.Step("", [call]))
        said = langchain_messages([turn])
        # The last messages alone: a result without its call, and the request of the user is gone.
        with self.assertRaises(AssertionError):
            server.send("/v1/messages", model._get_request_payload(said[-5:]))
        middleware = epitome.langchain.EpitomeMiddleware(window=8_000, count="estimate")
        sent: list[AnyMessage] = []
        middleware.wrap_model_call(Request(said), lambda it: sent.extend(it.messages))  # type: ignore[arg-type, return-value]
        server.send("/v1/messages", model._get_request_payload(sent))
        self.assertIn("Keep to TOML", str(sent))
        self.assertLess(len(str(sent)), len(str(said)) / 3)


    def test_a_checkpoint_is_rewound(self) -> None:
        @tool
        def read(path: str) -> str:
            """Reads a file."""
            return text_of(path)

        middleware = epitome.langchain.EpitomeMiddleware(window=12_000, count="estimate")
        sent = Sent()
        saver = InMemorySaver()
        agent: Any = create_agent(
            Reader(), [read], middleware=[middleware, sent], checkpointer=saver
        )
        thread: Any = {"configurable": {"thread_id": "t"}}

        def say(words: str, config: Any) -> list[list[AnyMessage]]:
            """Says something to the agent. Returns the requests of its turn."""
            before = len(sent.requests)
            agent.invoke({"messages": [HumanMessage(words)]}, config)
            return sent.requests[before:]

        say("Turn 0.", thread)
        second = say("Turn 1.", thread)
        fork = agent.get_state(thread).config
        third = say("Turn 2.", thread)
        say("Turn 3.", thread)
        abandoned = agent.get_state(thread).config
        other = say("Another way.", fork)
        more = say("And more.", thread)
        back = say("Turn 4.", abandoned)
        # The context was compacted before the fork, and after it.
        for request in (second[-1], third[-1]):
            self.assertIn("Digest of the conversation so far", str(request[0]))
        self.assertNotEqual(contents(second[-1])[0], contents(third[-1])[0])
        for request in [*other, *more]:
            for gone in ("Turn 2.", "Turn 3.", *(f" {n}.rs" for n in range(6, 12))):
                self.assertNotIn(gone, str([it.content for it in request]))
        for gone in ("Another way.", "And more."):
            self.assertNotIn(gone, str(back))
        server = histories.Server(URL)
        model: Any = ChatAnthropic(model="scripted", base_url=URL, api_key="none")  # type: ignore[call-arg, arg-type]
        for request in sent.requests:
            server.send("/v1/messages", model._get_request_payload(request))
            calls = [call["id"] for it in request if isinstance(it, AIMessage) for call in it.tool_calls]
            said = [it.content for it in request if isinstance(it, HumanMessage)]
            self.assertEqual((len(calls), len(said)), (len(set(calls)), len(set(map(str, said)))))
        # What is cached of the requests before the fork is sent again.
        self.assertEqual(contents(other[0][:-1]), contents(third[0][:-1]))
        self.assertEqual(contents(other[1][: len(other[0])]), contents(other[0]))

    def test_the_model_recalls_from_its_own_conversation(self) -> None:
        middleware = epitome.langchain.EpitomeMiddleware(window=8_000, count="estimate")
        [recall] = middleware.tools
        states = []
        for name in ("a", "b"):
            turn = histories.Turn("Read all of it.")
            for n in range(12):
                path = f"{name}/{n}.rs"
                call = histories.Call(f"c{n}", "Read", {"path": path}, text_of(path))
                turn.steps.append(histories.Step("", [call]))
            said = langchain_messages([turn])
            middleware.wrap_model_call(Request(said), lambda it: it)  # type: ignore[arg-type, return-value]
            asked = {"name": "recall", "args": {"ref": "#1"}, "id": "r1"}
            states.append({"messages": [*said, AIMessage("", tool_calls=[asked])]})
        # Both begin alike, and the second one was the last to use the context.
        for name, state in zip("aba", [*states, states[0]]):
            runtime = SimpleNamespace(state=state)
            self.assertIn(f"{name}/0.rs: line 150", recall.func(ref="#1", runtime=runtime))  # type: ignore[attr-defined]
        runtime = SimpleNamespace(state={"messages": [HumanMessage("Hello."), AIMessage("")]})
        answer = recall.func(ref="#1", runtime=runtime)  # type: ignore[attr-defined]
        self.assertEqual(answer, "nothing was removed")


    def test_a_view_that_fails_is_not_where_the_context_is(self) -> None:
        middleware = epitome.langchain.EpitomeMiddleware(window=8_000, count="estimate")
        [recall] = middleware.tools
        first, second = (langchain_messages([reading(12, f"{name}/")]) for name in "ab")
        runtime = SimpleNamespace(state={"messages": [*second, AIMessage("")]})

        async def answered(_: Any) -> None:
            pass

        async def talk() -> str:
            await middleware.awrap_model_call(Request(first), answered)  # type: ignore[arg-type]
            failure = mock.AsyncMock(side_effect=epitome.Error("a bug", "bug"))
            with mock.patch.object(epitome.AsyncContext, "body", failure):
                with self.assertLogs("epitome", "WARNING"):
                    await middleware.awrap_model_call(Request(second), answered)  # type: ignore[arg-type]
            return str(await recall.coroutine(ref="#1", runtime=runtime))  # type: ignore[attr-defined]

        self.assertIn("b/0.rs: line 150", asyncio.run(talk()))
        middleware.wrap_model_call(Request(first), lambda it: it)  # type: ignore[arg-type, return-value]
        failure = mock.Mock(side_effect=epitome.Error("a bug", "bug"))
        with mock.patch.object(epitome.Context, "body", failure):
            with self.assertLogs("epitome", "WARNING"):
                middleware.wrap_model_call(Request(second), lambda it: it)  # type: ignore[arg-type, return-value]
        self.assertIn("b/0.rs: line 150", recall.func(ref="#1", runtime=runtime))  # type: ignore[attr-defined]

    def test_threads_recall_each_from_its_own_conversation(self) -> None:
        middleware = epitome.langchain.EpitomeMiddleware(window=8_000, count="estimate")
        [recall] = middleware.tools

        def talk(name: str) -> set[str]:
            said = langchain_messages([reading(12, f"{name}/")])
            runtime = SimpleNamespace(state={"messages": [*said, AIMessage("")]})
            recalled = set()
            for _ in range(20):
                middleware.wrap_model_call(Request(said), lambda it: it)  # type: ignore[arg-type, return-value]
                recalled.add(recall.func(ref="#1", runtime=runtime))  # type: ignore[attr-defined]
            return recalled

        with ThreadPoolExecutor(2) as pool:
            both = [*pool.map(talk, "ab")]
        self.assertEqual(both, [{text_of("a/0.rs")}, {text_of("b/0.rs")}])


def contents(messages: list[AnyMessage]) -> list[Any]:
    return [(it.type, it.content, getattr(it, "tool_calls", None)) for it in messages]


class Sent(AgentMiddleware[Any, Any, Any]):
    """Keeps the messages of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[list[AnyMessage]] = []

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.requests.append([*request.messages])
        return handler(request)


class Reader(BaseChatModel):
    """A model that reads three files a turn, each once."""

    _steps: Iterator[int] = PrivateAttr(default_factory=itertools.count)

    @property
    def _llm_type(self) -> str:
        return "reader"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        turn, step = divmod(next(self._steps), 4)
        n = turn * 3 + step
        call: Any = {"name": "read", "args": {"path": f"{n}.rs"}, "id": f"c{n}"}
        message = AIMessage("", tool_calls=[call]) if step < 3 else AIMessage(f"Turn {turn} is over.")
        return ChatResult(generations=[ChatGeneration(message=message)])


class Request:
    """As much of a `ModelRequest` as the middleware sees."""

    system_message = None
    tools: list[Any] = []

    def __init__(self, messages: list[AnyMessage]) -> None:
        self.messages = messages

    def override(self, messages: list[AnyMessage]) -> Request:
        return Request(messages)


class OpenAiAgentsTest(unittest.TestCase):
    def test_a_run_with_a_session(self) -> None:
        histories.Server(URL).play(histories.reads(5))

        @function_tool
        def read(path: str) -> str:
            """Reads a file."""
            return text_of(path)

        client = openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none")
        smaller = epitome.openai_agents.InputFilter(window=12_000, count="estimate")
        agent = OpenAiAgent(
            "reader",
            instructions="You read.",
            tools=[read, smaller.recall_tool()],
            model=OpenAIResponsesModel("scripted", client),
        )

        async def talk() -> int:
            store = SQLiteSession("talk")
            session = epitome.openai_agents.EpitomeSession(store, window=12_000)
            for _ in range(5):
                config = RunConfig(call_model_input_filter=smaller)
                await Runner.run(agent, "Go on.", run_config=config, session=session)
            return len(await store.get_items())

        self.assertGreaterEqual(asyncio.run(talk()), 10)

    def test_each_model_recalls_from_its_own_conversation(self) -> None:
        smaller = epitome.openai_agents.InputFilter(window=8_000, count="estimate")

        async def run(folder: str, both: asyncio.Barrier) -> str:
            agent = OpenAiAgent("reader", tools=[smaller.recall_tool()], model=Recalling(both))
            config = RunConfig(call_model_input_filter=smaller)
            items: Any = histories.responses([reading(12, folder)])
            result = await Runner.run(agent, items, run_config=config)
            [output] = [it for it in result.new_items if isinstance(it, ToolCallOutputItem)]
            return str(output.output)

        async def talk() -> tuple[str, str]:
            both = asyncio.Barrier(2)
            return await asyncio.gather(run("a/", both), run("b/", both))

        first, second = asyncio.run(talk())
        self.assertIn("a/0.rs: line 150", first)
        self.assertIn("b/0.rs: line 150", second)

    def test_a_view_that_fails_is_not_where_the_context_is(self) -> None:
        smaller = epitome.openai_agents.InputFilter(window=8_000, count="estimate")

        async def talk() -> str:
            first, second = (histories.responses([reading(12, f"{name}/")]) for name in "ab")
            await smaller.items(first, None)  # type: ignore[arg-type]
            failure = mock.AsyncMock(side_effect=epitome.Error("a bug", "bug"))
            with mock.patch.object(epitome.AsyncContext, "body", failure):
                with self.assertLogs("epitome", "WARNING"):
                    await smaller.items(second, None)  # type: ignore[arg-type]
            return await smaller._recall("#1")

        self.assertIn("b/0.rs: line 150", asyncio.run(talk()))

    def test_no_random_history_is_refused(self) -> None:
        server = histories.Server(URL)
        for seed in SEEDS:
            rng = random.Random(seed)
            smaller = epitome.openai_agents.InputFilter(**options(rng))
            for turns in histories.growing(rng):
                items: Any = histories.responses(turns)
                sent = asyncio.run(smaller.items(items, "You read."))
                with self.subTest(seed=seed):
                    server.send("/v1/responses", {"input": sent})


class Recalling(Model):
    """A model that recalls the result of the first call, once all runs have sent a request."""

    def __init__(self, all_runs: asyncio.Barrier) -> None:
        self.all_runs = all_runs
        self.is_done = False

    async def get_response(self, *_: Any, **__: Any) -> AgentsResponse:
        if self.is_done:
            text = ResponseOutputText(text="So.", type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m1", content=[text], role="assistant", status="completed", type="message"
            )
            return AgentsResponse(output=[message], usage=Usage(), response_id=None)
        await self.all_runs.wait()
        self.is_done = True
        call = ResponseFunctionToolCall(
            arguments='{"ref": "#1"}', call_id="r1", name="recall", type="function_call"
        )
        return AgentsResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


class LiteLlmTest(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(setattr, litellm, "callbacks", [])

    def test_a_trimmed_history_is_refused_and_a_smaller_one_is_not(self) -> None:
        messages = histories.chat([reading(12)])
        # LiteLLM's own function: a result without its call, and the request of the user is gone.
        trimmed = litellm.utils.trim_messages(messages, model="gpt-4o", max_tokens=4_000)
        self.assertNotIn("Keep to TOML", str(trimmed))
        with self.assertRaises(BadRequestError):
            litellm.completion(messages=trimmed, **LITELLM)
        callback = epitome.litellm.EpitomeCallback(window=8_000, count="estimate")
        callback.completion(messages=messages, **LITELLM)
        sent = sent_without_await(callback, messages)
        self.assertIn("Keep to TOML", str(sent))
        self.assertLess(len(str(sent)), len(str(messages)) / 3)
        self.assertEqual(messages, histories.chat([reading(12)]))

    def test_each_kind_of_call(self) -> None:
        callback = epitome.litellm.EpitomeCallback(window=8_000, count="estimate")
        calls = Calls()
        litellm.callbacks = [callback, calls]
        deployment = {"model": "anthropic/scripted", "api_base": URL, "api_key": "none"}
        router = Router([{"model_name": "router", "litellm_params": deployment}])
        chat, anthropic_form = histories.chat([reading(12)]), histories.anthropic([reading(12)])

        async def talk() -> None:
            await litellm.acompletion(messages=chat, **LITELLM)
            await router.acompletion("router", chat)
            await litellm.aresponses(input=histories.responses([reading(12)]), **LITELLM)
            await litellm.anthropic_messages(
                max_tokens=100, messages=anthropic_form, **deployment
            )
            async for _ in await litellm.acompletion(messages=chat, stream=True, **LITELLM):
                pass

        asyncio.run(talk())
        self.assertEqual(len(calls.sent), 5)
        for messages in calls.sent:
            self.assertIn("Keep to TOML", str(messages))
            self.assertLess(len(str(messages)), len(str(chat)) / 3)

    def test_an_agent_recalls_what_was_removed(self) -> None:
        histories.Server(URL).play(histories.reads(3))
        callback = epitome.litellm.EpitomeCallback(window=8_000, count="estimate")
        messages: list[Any] = [{"role": "user", "content": "Read all of it."}]
        for n in range(12):
            reply = callback.completion(messages=messages, tools=[callback.recall_tool], **LITELLM)
            message = reply.choices[0].message
            messages.append(message)
            for call in message.tool_calls or ():
                result = {"role": "tool", "tool_call_id": call.id, "content": text_of(f"{n}.rs")}
                messages.append(result)
            if not message.tool_calls:
                messages.append({"role": "user", "content": "Go on."})
        callback.completion(messages=messages, **LITELLM)
        self.assertIn("0.rs: line 150", callback.recall("#1", messages))
        self.assertIn("nothing was removed", callback.recall("k1234567", messages))
        other = [{"role": "user", "content": "Hello."}]
        self.assertEqual(callback.recall("#1", other), "nothing was removed")

    def test_each_model_recalls_from_its_own_conversation(self) -> None:
        callback = epitome.litellm.EpitomeCallback(window=8_000, count="estimate")
        both = {name: histories.chat([reading(12, f"{name}/")]) for name in "ab"}
        for name, messages in both.items():
            sent_without_await(callback, messages)
        recalled = [callback.recall("#1", both[name]) for name in "aba"]
        self.assertEqual(recalled, [text_of(f"{name}/0.rs") for name in "aba"])

    def test_each_model_recalls_from_its_own_conversation_with_await(self) -> None:
        callback = epitome.litellm.EpitomeCallback(window=8_000, count="estimate")
        litellm.callbacks = [callback]
        both = {name: histories.chat([reading(12, f"{name}/")]) for name in "ab"}

        async def talk() -> list[str]:
            for messages in both.values():
                await litellm.acompletion(messages=messages, **LITELLM)
            recalled = [await callback.arecall("#1", both[name]) for name in "aba"]
            # Without `await` the context cannot go elsewhere.
            return [*recalled, *(callback.recall("#1", both[name]) for name in "ab")]

        texts = [text_of(f"{name}/0.rs") for name in "abaa"]
        elsewhere = "another conversation is read: use `arecall`"
        self.assertEqual(asyncio.run(talk()), [*texts, elsewhere])

    def test_a_further_attempt_is_of_the_same_conversation(self) -> None:
        callback = epitome.litellm.EpitomeCallback(count="estimate")
        whole = {"messages": histories.chat([reading(12)])}
        acompletion = litellm.types.utils.CallTypes.acompletion

        async def talk() -> list[Any]:
            first = await callback.async_pre_call_deployment_hook(whole, acompletion) or {}
            second = await callback.async_pre_call_deployment_hook(first, acompletion) or {}
            why = ContextWindowExceededError(
                "This model's maximum context length is 8192 tokens", "scripted", "openai"
            )
            await callback.async_post_call_failure_deployment_hook(second, why, acompletion)
            third = await callback.async_pre_call_deployment_hook(second, acompletion) or {}
            return [first["messages"], second["messages"], third["messages"]]

        first, second, third = asyncio.run(talk())
        self.assertEqual(first, second)
        self.assertLess(len(str(third)), len(str(second)))
        self.assertIn("Keep to TOML", str(third))

    def test_the_same_list_for_two_apis_is_of_two_conversations(self) -> None:
        callback = epitome.litellm.EpitomeCallback(window=8_000, count="estimate")
        request = {"messages": histories.anthropic([reading(12)])}
        kinds = litellm.types.utils.CallTypes

        async def talk() -> list[Any]:
            calls = (kinds.anthropic_messages, kinds.acompletion)
            return [await callback.async_pre_call_deployment_hook(request, it) for it in calls]

        shorter, unknown = asyncio.run(talk())
        self.assertLess(len(str(shorter)), len(str(request)) / 3)
        self.assertEqual(unknown, request)

    def test_what_a_message_has_beside_its_text_stays(self) -> None:
        thought = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]
        end = {"role": "assistant", "content": "All is read.", "thinking_blocks": thought}
        messages = [*histories.chat([reading(12)]), end, {"role": "user", "content": "Go on."}]
        callback = epitome.litellm.EpitomeCallback(window=8_000, count="estimate")
        sent = sent_without_await(callback, messages)
        self.assertEqual(sent[-2:], messages[-2:])
        self.assertLess(len(sent), len(messages))

    def test_no_random_history_is_refused(self) -> None:
        async def one(seed: int) -> None:
            rng = random.Random(seed)
            callback = epitome.litellm.EpitomeCallback(**options(rng))
            litellm.callbacks = [callback]
            for turns in histories.growing(rng):
                request = litellm_request(turns)
                with self.subTest(seed=seed):
                    if seed % 2:
                        callback.completion(**request)
                    else:
                        await litellm.acompletion(**request)

        async def all_of_them() -> None:
            for seed in SEEDS:
                await one(seed)

        asyncio.run(all_of_them())


#: A model of the scripted server, for LiteLLM.
LITELLM: dict[str, Any] = {
    "model": "openai/scripted",
    "api_base": URL + "/v1",
    "api_key": "none",
    "max_retries": 0,
}


def litellm_request(turns: list[histories.Turn]) -> dict[str, Any]:
    """A conversation with reasoning goes to Anthropic's API: LiteLLM sends it no other one."""
    messages = histories.chat(turns)
    if not histories.reasons(turns):
        return {"messages": messages, **LITELLM}
    signatures = {it.text: it.signature for it in histories.THOUGHTS}
    for message in messages:
        thought = message.get("reasoning_content")
        if thought:
            block = {"type": "thinking", "thinking": thought, "signature": signatures[thought]}
            message["thinking_blocks"] = [block]
    more = histories.settings("anthropic", turns)
    if "thinking" in more:
        # It does not know that this model reasons.
        more["allowed_openai_params"] = ["thinking"]
    return {"messages": messages, **LITELLM, "model": "anthropic/scripted", "api_base": URL, **more}


def reading(files: int, folder: str = "") -> histories.Turn:
    """A turn in which files of some length are read."""
    turn = histories.Turn("Keep to TOML, and read all of it.")
    for n in range(files):
        path = f"{folder}{n}.rs"
        call = histories.Call(f"c{n}", "Read", {"path": path}, text_of(path))
        turn.steps.append(histories.Step("", [call]))
    return turn


class Calls(CustomLogger):
    """Keeps the lists that LiteLLM sends."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[list[Any]] = []

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> None:
        self.sent.append(kwargs.get("messages") or kwargs["input"])


def sent_without_await(callback: epitome.litellm.EpitomeCallback, messages: list[Any]) -> list[Any]:
    """The list that a callback sends in place of this one."""
    response = litellm.ModelResponse()
    with mock.patch.object(litellm, "completion", return_value=response) as completion:
        callback.completion(messages=messages, **LITELLM)
    sent: list[Any] = completion.call_args.kwargs["messages"]
    return sent


def pydantic_messages(turns: list[histories.Turn]) -> list[ModelMessage]:
    said: list[ModelMessage] = []
    for turn in turns:
        words: Any = turn.user
        if turn.picture:
            words = [turn.user, binary(turn.picture)]
        said.append(ModelRequest([UserPromptPart(words)]))
        for step in turn.steps:
            made = [ToolCallPart(it.name, it.arguments, tool_call_id=it.id) for it in step.calls]
            said.append(ModelResponse([*response_parts(step.text, step.thought), *made]))
            said.append(ModelRequest([tool_return(it) for it in step.calls]))
        if turn.end:
            said.append(ModelResponse(response_parts(turn.end, turn.thought)))
    return said


def response_parts(words: str, thought: histories.Thought | None) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    if thought:
        signature = thought.signature
        part = ThinkingPart(thought.text, signature=signature, provider_name="anthropic")
        parts.append(part)
    return [*parts, TextPart(words)] if words else parts


def tool_return(call: histories.Call) -> ToolReturnPart:
    words = call.result or "-"
    content: Any = [words, binary(call.picture)] if call.picture else words
    return ToolReturnPart(call.name, content, call.id)


def binary(picture: str) -> BinaryContent:
    return BinaryContent(base64.b64decode(picture), media_type="image/png")


class PydanticAiTest(unittest.TestCase):
    def model(self) -> AnthropicModel:
        client = anthropic.AsyncAnthropic(base_url=URL, api_key="none")
        return AnthropicModel("scripted", provider=AnthropicProvider(anthropic_client=client))

    def test_an_agent(self) -> None:
        histories.Server(URL).play(histories.reads(5))
        processor = epitome.pydantic_ai.HistoryProcessor(window=12_000, count="estimate")
        agent = Agent(self.model(), capabilities=[ProcessHistory(processor)])

        @agent.tool_plain
        def read(path: str) -> str:
            """Reads a file."""
            return text_of(path)

        history: list[ModelMessage] = []
        for _ in range(5):
            result = agent.run_sync("Go on.", message_history=history)
            history = result.all_messages()
        self.assertGreaterEqual(len(history), 2)

    def test_each_model_recalls_from_its_own_conversation(self) -> None:
        processor = epitome.pydantic_ai.HistoryProcessor(window=8_000, count="estimate")

        async def run(folder: str, both: asyncio.Barrier) -> str:
            recalled: list[str] = []

            async def answer(messages: list[ModelMessage], _: Any) -> ModelResponse:
                if recalled:
                    return ModelResponse([TextPart("So.")])
                await both.wait()
                return ModelResponse([ToolCallPart("recall", {"ref": "#1"}, tool_call_id="r1")])

            agent = Agent(FunctionModel(answer), capabilities=[ProcessHistory(processor)])

            @agent.tool
            async def recall(ctx: RunContext[object], ref: str) -> str:
                recalled.append(await processor.recall(ctx, ref))
                return recalled[0]

            await agent.run("Go on.", message_history=pydantic_messages([reading(12, folder)]))
            return recalled[0]

        async def talk() -> tuple[str, str]:
            both = asyncio.Barrier(2)
            return await asyncio.gather(run("a/", both), run("b/", both))

        first, second = asyncio.run(talk())
        self.assertIn("a/0.rs: line 150", first)
        self.assertIn("b/0.rs: line 150", second)

    def test_other_conversations_do_not_displace_what_was_given(self) -> None:
        processor = epitome.pydantic_ai.HistoryProcessor(window=8_000, count="estimate")
        other = pydantic_messages([histories.Turn("Another one."), reading(12, "b/")])

        async def talk() -> str:
            given = await processor(pydantic_messages([reading(12, "a/")]))
            for _ in range(130):
                await processor(other)
            context: Any = SimpleNamespace(messages=given)
            return await processor.recall(context, "#1")

        self.assertEqual(asyncio.run(talk()), text_of("a/0.rs"))

    def test_threads_recall_each_from_its_own_conversation(self) -> None:
        processor = epitome.pydantic_ai.HistoryProcessor(window=8_000, count="estimate")

        async def talk(name: str) -> set[str]:
            recalled = set()
            for _ in range(20):
                given = await processor(pydantic_messages([reading(12, f"{name}/")]))
                context: Any = SimpleNamespace(messages=given)
                recalled.add(await processor.recall(context, "#1"))
            return recalled

        with ThreadPoolExecutor(2) as pool:
            # Each thread has an event loop of its own.
            both = [*pool.map(lambda name: asyncio.run(talk(name)), "ab")]
        self.assertEqual(both, [{text_of("a/0.rs")}, {text_of("b/0.rs")}])

    def test_no_random_history_is_refused(self) -> None:
        server = histories.Server(URL)
        model = self.model()

        async def one(seed: int) -> None:
            rng = random.Random(seed)
            processor = epitome.pydantic_ai.HistoryProcessor(**options(rng))
            given: list[ModelMessage] = []
            before: list[ModelMessage] = []
            for turns in histories.growing(rng):
                whole = pydantic_messages(turns)
                if whole[: len(before)] == before:
                    # As the framework does: what was given back, and what is new.
                    history = [*given, *whole[len(before) :]]
                else:
                    history = whole
                given, before = await processor(history), whole
                parameters = ModelRequestParameters()
                _, messages = await model._map_message(given, parameters, {})
                body = {"messages": messages, **histories.settings("anthropic", turns)}
                with self.subTest(seed=seed):
                    server.send("/v1/messages", body)

        for seed in SEEDS:
            asyncio.run(one(seed))


if __name__ == "__main__":
    unittest.main()
