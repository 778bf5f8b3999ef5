"""The adapters, with the frameworks themselves and a server that refuses what providers refuse."""

from __future__ import annotations

import asyncio
import json
import os
import random
import unittest
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
from agents import OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, function_tool
from agents import set_tracing_disabled
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from litellm.exceptions import BadRequestError, ContextWindowExceededError
from litellm.integrations.custom_logger import CustomLogger
from litellm.router import Router
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

URL = os.environ["TEST_SERVER"]
SEEDS = histories.seeds(100)
RECIPES = ["epitome", "clear-tool-uses", "s08", "ion"]
WINDOWS = [3_000, 8_000, 40_000]

set_tracing_disabled(True)


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
            turns[0].steps.append(("", [call]))
        body = {"messages": histories.anthropic(turns)}
        self.assertEqual(client.post("/v1/messages", json=body).status_code, 200)
        self.assertEqual(len(sizes), 2)
        self.assertLess(sizes[1], sizes[0])

    def test_no_random_history_is_refused(self) -> None:
        for api, (form, path, key) in histories.FORMS.items():
            for seed in SEEDS:
                rng = random.Random(seed)
                transport = epitome.httpx.Transport(POOL, **options(rng))
                client = httpx2.Client(transport=transport, base_url=URL)
                for turns in histories.growing(rng):
                    body = {"model": "scripted", "max_tokens": 9, key: form(turns)}
                    with self.subTest(api=api, seed=seed):
                        answer = client.post(path, json=body)
                        self.assertEqual(answer.status_code, 200, answer.text)


POOL = httpx2.HTTPTransport()


def langchain_messages(turns: list[histories.Turn]) -> list[AnyMessage]:
    said: list[AnyMessage] = []
    for turn in turns:
        said.append(HumanMessage(turn.user))
        for words, calls in turn.steps:
            made: Any = [{"name": it.name, "args": it.arguments, "id": it.id} for it in calls]
            said.append(AIMessage(words, tool_calls=made))
            said += [
                ToolMessage(
                    it.result, tool_call_id=it.id, status="error" if it.failed else "success"
                )
                for it in calls
            ]
        if turn.end:
            said.append(AIMessage(turn.end))
    return said


class LangChainTest(unittest.TestCase):
    def test_an_agent(self) -> None:
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
                    server.send("/v1/messages", model._get_request_payload(sent))


    def test_a_trimmed_history_is_refused_and_a_smaller_one_is_not(self) -> None:
        server = histories.Server(URL)
        model: Any = ChatAnthropic(model="scripted", base_url=URL, api_key="none")  # type: ignore[call-arg, arg-type]
        turn = histories.Turn("Keep to TOML, and read all of it.")
        for n in range(12):
            call = histories.Call(f"c{n}", "Read", {"path": f"{n}"}, text_of(f"{n}"))
            turn.steps.append(("", [call]))
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
        self.assertEqual(callback.recall("#1", [*messages[:1]]), "nothing was removed")

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
                request = {"messages": histories.chat(turns), **LITELLM}
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


def reading(files: int) -> histories.Turn:
    """A turn in which files of some length are read."""
    turn = histories.Turn("Keep to TOML, and read all of it.")
    for n in range(files):
        call = histories.Call(f"c{n}", "Read", {"path": f"{n}.rs"}, text_of(f"{n}.rs"))
        turn.steps.append(("", [call]))
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
        said.append(ModelRequest([UserPromptPart(turn.user)]))
        for words, calls in turn.steps:
            made = [ToolCallPart(it.name, it.arguments, tool_call_id=it.id) for it in calls]
            said.append(ModelResponse([*([TextPart(words)] if words else []), *made]))
            results = [ToolReturnPart(it.name, it.result or "-", it.id) for it in calls]
            said.append(ModelRequest(results))
        if turn.end:
            said.append(ModelResponse([TextPart(turn.end)]))
    return said


class PydanticAiTest(unittest.TestCase):
    def model(self) -> AnthropicModel:
        client = anthropic.AsyncAnthropic(base_url=URL, api_key="none")
        return AnthropicModel("scripted", provider=AnthropicProvider(anthropic_client=client))

    def test_an_agent(self) -> None:
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
                with self.subTest(seed=seed):
                    server.send("/v1/messages", {"messages": messages})

        for seed in SEEDS:
            asyncio.run(one(seed))


if __name__ == "__main__":
    unittest.main()
