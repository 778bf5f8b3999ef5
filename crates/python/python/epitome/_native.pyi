from typing import Any

class Engine:
    def __new__(cls) -> Engine: ...
    def start(self, options: bytes) -> str: ...
    def answer(self, line: bytes) -> str: ...

class Fleet:
    def __new__(cls, options: bytes) -> Fleet: ...
    def compact(
        self,
        ids: list[str | None],
        sessions: list[bytes | None],
        agents: list[str | None] | None,
    ) -> dict[str, list[Any]]: ...
    def inspect(
        self,
        ids: list[str | None],
        sessions: list[bytes | None],
        agents: list[str | None] | None,
    ) -> dict[str, list[Any]]: ...
    def redact(
        self,
        ids: list[str | None],
        sessions: list[bytes | None],
        agents: list[str | None] | None,
    ) -> dict[str, list[Any]]: ...
    def restore(
        self,
        sessions: list[bytes | None],
        packs: list[bytes | None],
        hashes: list[str | None] | None,
    ) -> dict[str, list[Any]]: ...

def call(name: str, request: bytes) -> str: ...
