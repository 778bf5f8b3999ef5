"""Puts the messages of a framework in place of those of a view.

A framework's messages are said to the engine as Anthropic's, because its blocks have all that the
others have. What comes back unchanged is the framework's own object again, with all that the engine
knows nothing of; only what was edited is made new.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

V = TypeVar("V")
Role = Literal["user", "assistant"]
Block = dict[str, Any]


@dataclass
class Said(Generic[V]):
    """A message of a framework, or a part of one, and the blocks that it is for the engine."""

    role: Role
    blocks: list[Block]
    value: V


@dataclass
class Sent(Generic[V]):
    """What is sent: an object of the framework as it is, an edited one, or new blocks."""

    role: Role
    blocks: list[Block]
    #: The object that it was made of; ``None`` for a text of the engine.
    value: V | None
    is_edited: bool


def messages(said: Sequence[Said[Any]]) -> list[dict[str, Any]]:
    """The list that is said to the engine."""
    return [{"role": it.role, "content": it.blocks} for it in said if it.blocks]


def matched(view: Sequence[dict[str, Any]], said: Sequence[Said[V]]) -> Iterator[Sent[V]]:
    """What a view sends, in terms of what was said."""
    known = _Known(said)
    for message in view:
        role: Role = message["role"]
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        at = 0
        while at < len(blocks):
            found = known.find(role, blocks, at)
            if found is not None:
                yield Sent(role, found.blocks, found.value, is_edited=False)
                at += len(found.blocks)
                continue
            end = known.end(role, blocks, at)
            owner = known.owner(blocks[at:end])
            yield Sent(role, blocks[at:end], owner, is_edited=True)
            at = end


class _Known(Generic[V]):
    """What was said, by its first block and by its calls."""

    def __init__(self, said: Sequence[Said[V]]) -> None:
        self._said = said
        self._by_first: defaultdict[str, list[int]] = defaultdict(list)
        self._by_call: dict[str, int] = {}
        for n, it in enumerate(said):
            if it.blocks:
                self._by_first[it.role + _key(it.blocks[0])].append(n)
            for block in it.blocks:
                name = _name(block)
                if name is not None:
                    self._by_call[name] = n
        self._next = 0

    def find(self, role: Role, blocks: Sequence[Block], at: int) -> Said[V] | None:
        """The next thing that was said in just these blocks."""
        for n in self._by_first.get(role + _key(blocks[at]), ()):
            it = self._said[n]
            there = blocks[at : at + len(it.blocks)]
            if n >= self._next and [*map(_key, there)] == [*map(_key, it.blocks)]:
                self._next = n + 1
                return it
        return None

    def owner(self, blocks: Sequence[Block]) -> V | None:
        """The object that made a call among blocks, or has its result."""
        for block in blocks:
            n = self._by_call.get(_name(block) or "")
            if n is not None:
                self._next = max(self._next, n + 1)
                return self._said[n].value
        return None

    def end(self, role: Role, blocks: Sequence[Block], at: int) -> int:
        """Where the edited object ends that begins at a block."""
        if role == "user":
            return at + 1
        owner: int | None = None
        for end in range(at, len(blocks)):
            n = self._by_call.get(_name(blocks[end]) or "")
            if n is not None and owner is not None and n != owner:
                return end
            owner = n if owner is None else owner
        return len(blocks)


def _name(block: Block) -> str | None:
    if block["type"] == "tool_use":
        return f"call {block['id']}"
    if block["type"] == "tool_result":
        return f"result {block['tool_use_id']}"
    return None


def result_text(block: Block) -> str:
    """The text of a result."""
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _key(block: Block) -> str:
    """A block in one spelling."""
    if block["type"] == "tool_result":
        content = block.get("content") or ""
        if isinstance(content, list) and all(part["type"] == "text" for part in content):
            content = "\n".join(part["text"] for part in content)
        block = {**block, "content": content, "is_error": bool(block.get("is_error"))}
    return json.dumps(block, sort_keys=True)
