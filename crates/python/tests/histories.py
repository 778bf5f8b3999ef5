"""Random conversations that every API accepts, and a client for the scripted server.

They have texts, calls, pictures and reasoning. Reasoning must be signed by the scripted server: the
variable ``TEST_THOUGHTS`` has texts with their signatures. Without it there is no reasoning.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import struct
import urllib.parse
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WORDS = "the parser reads a line of the file and returns what it found before the end".split()


@dataclass
class Thought:
    """Reasoning of the model."""

    text: str
    signature: str


@dataclass
class Call:
    id: str
    name: str
    arguments: dict[str, Any]
    result: str
    failed: bool = False
    #: A picture in the result, as PNG in base64.
    picture: str | None = None


@dataclass
class Step:
    """A response of the model with calls."""

    text: str
    calls: list[Call]
    thought: Thought | None = None


@dataclass
class Turn:
    """A message of the user, and what the model did until the next one."""

    user: str
    steps: list[Step] = field(default_factory=list)
    end: str = ""
    #: A picture that the user sends, as PNG in base64.
    picture: str | None = None
    #: Reasoning before the end.
    thought: Thought | None = None


THOUGHTS = [Thought(*it) for it in json.loads(os.environ.get("TEST_THOUGHTS", "[]"))]


def seeds(usual: int) -> range:
    """The numbers of the histories that are tested. The variables name more of them."""
    first = int(os.environ.get("TEST_FIRST", "0"))
    return range(first, first + int(os.environ.get("TEST_HISTORIES", usual)))


def text(rng: random.Random, most: int) -> str:
    lines = []
    for _ in range(rng.randint(1, max(1, most // 8))):
        words = rng.choices(WORDS, k=rng.randint(1, 12))
        lines.append(" ".join([*words, str(rng.randint(0, 9_999))]))
    return "\n".join(lines)


def picture(rng: random.Random) -> str:
    """A white picture of any size."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    width, height = rng.randint(1, 2_000), rng.randint(1, 1_000)
    # One bit a pixel.
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = (b"\0" + b"\xff" * -(-width // 8)) * height
    chunks = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows, 1)), chunk(b"IEND", b"")]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def conversation(rng: random.Random) -> list[Turn]:
    """A conversation whose last turn has no end yet: the model is about to be called."""
    turns = []
    number = 0
    thoughts = THOUGHTS if rng.random() < 0.5 else []
    often = rng.choice([0.6, 1])
    with_pictures = rng.random() < 0.4
    for _ in range(rng.randint(1, 5)):
        turn = Turn(text(rng, 24))
        if with_pictures and rng.random() < 0.3:
            turn.picture = picture(rng)
        for n in range(rng.randint(0, 5)):
            calls = []
            for _ in range(rng.choice([1, 1, 1, 2, 3])):
                number += 1
                calls.append(_call(rng, number, with_pictures))
            step = Step(text(rng, 16) if rng.random() < 0.5 else "", calls)
            # With reasoning, the first response of a turn has some.
            if thoughts and (n == 0 or rng.random() < often):
                step.thought = rng.choice(thoughts)
            turn.steps.append(step)
        turn.end = text(rng, 40)
        if thoughts and rng.random() < 0.5:
            turn.thought = rng.choice(thoughts)
        turns.append(turn)
    turns[-1].end, turns[-1].thought = "", None
    return turns


def _call(rng: random.Random, number: int, with_pictures: bool) -> Call:
    arguments = rng.choice(
        [
            {"path": f"src/{rng.randint(0, 5)}.rs"},
            {"path": "a.rs", "content": text(rng, 200)},
            {"command": "cargo test"},
        ]
    )
    # Each result is of another size; some are empty, some are long.
    result = "" if rng.random() < 0.05 else text(rng, rng.choice([8, 80, 800]))
    name = "Write" if "content" in arguments else rng.choice(["Read", "Bash"])
    failed = rng.random() < 0.1
    # A result that failed has texts alone.
    shown = picture(rng) if with_pictures and not failed and rng.random() < 0.2 else None
    return Call(f"call_{number}", name, arguments, result, failed, shown)


def growing(rng: random.Random) -> list[list[Turn]]:
    """The same conversation at several moments, the last one whole."""
    turns = conversation(rng)
    moments = []
    for n in sorted({rng.randint(1, len(turns)), len(turns)}):
        last = turns[n - 1]
        part = [*turns[: n - 1], Turn(last.user, [*last.steps], picture=last.picture)]
        if last.steps and rng.random() < 0.5:
            shorter = last.steps[: rng.randint(0, len(last.steps))]
            moments.append([*part[:-1], Turn(last.user, shorter, picture=last.picture)])
        moments.append(part)
    return moments


def reasons(turns: list[Turn]) -> bool:
    """Whether the model of a conversation reasons."""
    return any(step.thought for turn in turns for step in turn.steps)


def anthropic(turns: list[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        said: Any = turn.user
        if turn.picture:
            said = [_anthropic_picture(turn.picture), {"type": "text", "text": turn.user}]
        messages.append({"role": "user", "content": said})
        for step in turn.steps:
            blocks = [*_thinking(step.thought)]
            blocks += [{"type": "text", "text": step.text}] if step.text else []
            blocks += [
                {"type": "tool_use", "id": it.id, "name": it.name, "input": it.arguments}
                for it in step.calls
            ]
            messages.append({"role": "assistant", "content": blocks})
            results = [
                {"type": "tool_result", "tool_use_id": it.id, "content": anthropic_result(it)}
                | ({"is_error": True} if it.failed else {})
                for it in step.calls
            ]
            messages.append({"role": "user", "content": results})
        if turn.end:
            end: Any = turn.end
            if turn.thought:
                end = [*_thinking(turn.thought), {"type": "text", "text": turn.end}]
            messages.append({"role": "assistant", "content": end})
    return messages


def _thinking(thought: Thought | None) -> list[dict[str, Any]]:
    if thought is None:
        return []
    return [{"type": "thinking", "thinking": thought.text, "signature": thought.signature}]


def _anthropic_picture(picture: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": picture}
    return {"type": "image", "source": source}


def anthropic_result(call: Call) -> Any:
    if not call.picture:
        return call.result
    words = [{"type": "text", "text": call.result}] if call.result else []
    return [*words, _anthropic_picture(call.picture)]


def chat(turns: list[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    for turn in turns:
        said: Any = turn.user
        if turn.picture:
            shown = {"type": "image_url", "image_url": {"url": address(turn.picture)}}
            said = [{"type": "text", "text": turn.user}, shown]
        messages.append({"role": "user", "content": said})
        for step in turn.steps:
            made = [
                {
                    "id": it.id,
                    "type": "function",
                    "function": {"name": it.name, "arguments": json.dumps(it.arguments)},
                }
                for it in step.calls
            ]
            response = {"role": "assistant", "content": step.text or None, "tool_calls": made}
            messages.append(response | _reasoning_content(step.thought))
            # Results have no pictures here.
            messages += [
                {"role": "tool", "tool_call_id": it.id, "content": it.result} for it in step.calls
            ]
        if turn.end:
            end = {"role": "assistant", "content": turn.end}
            messages.append(end | _reasoning_content(turn.thought))
    return messages


def _reasoning_content(thought: Thought | None) -> dict[str, Any]:
    return {} if thought is None else {"reasoning_content": thought.text}


def address(picture: str) -> str:
    return f"data:image/png;base64,{picture}"


def responses(turns: list[Turn]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in turns:
        said: Any = turn.user
        if turn.picture:
            shown = {"type": "input_image", "detail": "auto", "image_url": address(turn.picture)}
            said = [{"type": "input_text", "text": turn.user}, shown]
        items.append({"role": "user", "content": said})
        for step in turn.steps:
            response = [_said(step.text)] if step.text else []
            response += [
                {
                    "type": "function_call",
                    "call_id": it.id,
                    "name": it.name,
                    "arguments": json.dumps(it.arguments),
                }
                for it in step.calls
            ]
            items += _reasoned(step.thought, response, len(items))
            items += [
                {"type": "function_call_output", "call_id": it.id, "output": _output(it)}
                for it in step.calls
            ]
        if turn.end:
            items += _reasoned(turn.thought, [_said(turn.end)], len(items))
    return items


def _said(words: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def _reasoned(
    thought: Thought | None, response: list[dict[str, Any]], number: int
) -> list[dict[str, Any]]:
    """A response with its reasoning. The ids of items that the scripted server sends after
    reasoning begin so: it refuses them where the reasoning is missing."""
    if thought is None:
        return response
    reasoning = {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [{"type": "summary_text", "text": thought.text}],
        "encrypted_content": thought.signature,
    }
    names = {"message": "msg", "function_call": "fc"}
    after = [
        {**it, "id": f"{names[it['type']]}_r_{number}_{n}"} for n, it in enumerate(response)
    ]
    return [reasoning, *after]


def _output(call: Call) -> Any:
    if not call.picture:
        return call.result
    words = [{"type": "input_text", "text": call.result}] if call.result else []
    return [*words, {"type": "input_image", "detail": "auto", "image_url": address(call.picture)}]


def gemini(turns: list[Turn]) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    for turn in turns:
        said: list[Any] = [{"text": turn.user}]
        contents.append({"role": "user", "parts": [*said, *_inline(turn.picture)]})
        signature: str | None = None
        for step in turn.steps:
            parts: list[dict[str, Any]] = []
            if step.thought:
                signature = step.thought.signature
                parts.append({"text": step.thought.text, "thought": True})
            parts += [{"text": step.text}] if step.text else []
            calls = [{"functionCall": {"name": it.name, "args": it.arguments}} for it in step.calls]
            if signature:
                calls[0]["thoughtSignature"] = signature  # type: ignore[assignment]
            contents.append({"role": "model", "parts": [*parts, *calls]})
            results = [
                {
                    "functionResponse": {
                        "name": it.name,
                        "response": {"error" if it.failed else "output": it.result},
                    }
                }
                for it in step.calls
            ]
            shown = [part for it in step.calls for part in _inline(it.picture)]
            contents.append({"role": "user", "parts": [*results, *shown]})
        if turn.end:
            end: list[Any] = [{"text": turn.end}]
            if turn.thought:
                end = [{"text": turn.thought.text, "thought": True}, *end]
            contents.append({"role": "model", "parts": end})
    return contents


def _inline(picture: str | None) -> list[dict[str, Any]]:
    return [{"inlineData": {"mimeType": "image/png", "data": picture}}] if picture else []


@dataclass
class Form:
    """An API: how it spells a conversation, and where the list is in the body of a request."""

    messages: Callable[[list[Turn]], list[dict[str, Any]]]
    name: str
    #: The path, without and with reasoning.
    paths: tuple[str, str]

    def path(self, turns: list[Turn]) -> str:
        return self.paths[reasons(turns)]


GEMINI = "/v1beta/models/{}:generateContent"
FORMS = {
    "anthropic": Form(anthropic, "messages", ("/v1/messages", "/v1/messages")),
    "openai-chat": Form(chat, "messages", ("/v1/chat/completions", "/v1/chat/completions")),
    "openai-responses": Form(responses, "input", ("/v1/responses", "/v1/responses")),
    # Models of the third generation want the signatures of calls.
    "gemini-api": Form(gemini, "contents", (GEMINI.format("scripted"), GEMINI.format("gemini-3"))),
}


def settings(api: str, turns: list[Turn]) -> dict[str, Any]:
    """What a request with this conversation has in addition to its messages and the model.

    In thinking mode Anthropic refuses a loop of calls that begins without reasoning. Where not every
    response reasons, a digest may end in the middle of a turn with none left (SHORTCOMINGS.md says
    so): such a conversation is sent without that mode.
    """
    always = all(step.thought for turn in turns for step in turn.steps)
    if api != "anthropic" or not reasons(turns) or not always:
        return {"max_tokens": 9}
    return {"max_tokens": 9_000, "thinking": {"type": "enabled", "budget_tokens": 1_024}}


def reads(turns: int) -> list[dict[str, Any]]:
    """The steps of a model that reads three files in each of so many turns."""
    steps: list[dict[str, Any]] = []
    for n in range(0, 3 * turns, 3):
        paths = [f"{n + more}.rs" for more in range(3)]
        steps += [{"calls": [{"name": "read", "input": {"path": path}}]} for path in paths]
        steps.append({"text": "That was all."})
    return steps


class Server:
    """The scripted server: it refuses what the provider would refuse."""

    def __init__(self, url: str) -> None:
        address = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(str(address.hostname), address.port)

    def play(self, steps: list[dict[str, Any]]) -> None:
        """Has the server answer with these steps from now on: ``text``, ``calls``, or both. After
        the last one it answers with a text."""
        self._post("/script", json.dumps(steps))
        self.connection.close()

    def send(self, path: str, body: dict[str, Any]) -> None:
        """Sends a request, and raises what the server has against it."""
        self._post(path, json.dumps({"model": "scripted", "max_tokens": 100, **body}))

    def _post(self, path: str, content: str) -> None:
        headers = {"content-type": "application/json"}
        self.connection.request("POST", path, content, headers)
        answer = self.connection.getresponse()
        reply = answer.read()
        if answer.status != 200:
            raise AssertionError(f"refused: {reply.decode()}\n{content}")
