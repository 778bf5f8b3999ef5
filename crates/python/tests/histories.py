"""Random conversations that every API accepts, and a client for the scripted server."""

from __future__ import annotations

import http.client
import json
import os
import random
import urllib.parse
from dataclasses import dataclass, field
from typing import Any

WORDS = "the parser reads a line of the file and returns what it found before the end".split()


@dataclass
class Call:
    id: str
    name: str
    arguments: dict[str, Any]
    result: str
    failed: bool = False


@dataclass
class Turn:
    """A message of the user, and what the model did until the next one."""

    user: str
    steps: list[tuple[str, list[Call]]] = field(default_factory=list)
    end: str = ""


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


def conversation(rng: random.Random) -> list[Turn]:
    """A conversation whose last turn has no end yet: the model is about to be called."""
    turns = []
    number = 0
    for _ in range(rng.randint(1, 5)):
        turn = Turn(text(rng, 24))
        for _ in range(rng.randint(0, 5)):
            calls = []
            for _ in range(rng.choice([1, 1, 1, 2, 3])):
                number += 1
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
                calls.append(Call(f"call_{number}", name, arguments, result, failed))
            said = text(rng, 16) if rng.random() < 0.5 else ""
            turn.steps.append((said, calls))
        turn.end = text(rng, 40)
        turns.append(turn)
    turns[-1].end = ""
    return turns


def growing(rng: random.Random) -> list[list[Turn]]:
    """The same conversation at several moments, the last one whole."""
    turns = conversation(rng)
    moments = []
    for n in sorted({rng.randint(1, len(turns)), len(turns)}):
        part = [*turns[: n - 1], Turn(turns[n - 1].user, list(turns[n - 1].steps))]
        if part[-1].steps and rng.random() < 0.5:
            shorter = Turn(part[-1].user, part[-1].steps[: rng.randint(0, len(part[-1].steps))])
            moments.append([*part[:-1], shorter])
        moments.append(part)
    return moments


def anthropic(turns: list[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.user})
        for said, calls in turn.steps:
            blocks: list[dict[str, Any]] = [{"type": "text", "text": said}] if said else []
            blocks += [
                {"type": "tool_use", "id": it.id, "name": it.name, "input": it.arguments}
                for it in calls
            ]
            messages.append({"role": "assistant", "content": blocks})
            results = [
                {"type": "tool_result", "tool_use_id": it.id, "content": it.result}
                | ({"is_error": True} if it.failed else {})
                for it in calls
            ]
            messages.append({"role": "user", "content": results})
        if turn.end:
            messages.append({"role": "assistant", "content": turn.end})
    return messages


def chat(turns: list[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    for turn in turns:
        messages.append({"role": "user", "content": turn.user})
        for said, calls in turn.steps:
            made = [
                {
                    "id": it.id,
                    "type": "function",
                    "function": {"name": it.name, "arguments": json.dumps(it.arguments)},
                }
                for it in calls
            ]
            messages.append({"role": "assistant", "content": said or None, "tool_calls": made})
            messages += [
                {"role": "tool", "tool_call_id": it.id, "content": it.result} for it in calls
            ]
        if turn.end:
            messages.append({"role": "assistant", "content": turn.end})
    return messages


def responses(turns: list[Turn]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in turns:
        items.append({"role": "user", "content": turn.user})
        for said, calls in turn.steps:
            if said:
                items.append(_said(said))
            items += [
                {
                    "type": "function_call",
                    "call_id": it.id,
                    "name": it.name,
                    "arguments": json.dumps(it.arguments),
                }
                for it in calls
            ]
            items += [
                {"type": "function_call_output", "call_id": it.id, "output": it.result}
                for it in calls
            ]
        if turn.end:
            items.append(_said(turn.end))
    return items


def _said(words: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


FORMS = {
    "anthropic": (anthropic, "/v1/messages", "messages"),
    "openai-chat": (chat, "/v1/chat/completions", "messages"),
    "openai-responses": (responses, "/v1/responses", "input"),
}


class Server:
    """The scripted server: it refuses what the provider would refuse."""

    def __init__(self, url: str) -> None:
        address = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(str(address.hostname), address.port)

    def send(self, path: str, body: dict[str, Any]) -> None:
        """Sends a request, and raises what the server has against it."""
        content = json.dumps({"model": "scripted", "max_tokens": 100, **body})
        headers = {"content-type": "application/json"}
        self.connection.request("POST", path, content, headers)
        answer = self.connection.getresponse()
        reply = answer.read()
        if answer.status != 200:
            raise AssertionError(f"refused: {reply.decode()}\n{content}")
