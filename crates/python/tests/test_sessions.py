"""The functions on stored sessions, in a home of their own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import epitome

ID = "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5"
SESSIONS = Path(os.environ["TEST_SESSIONS"])

#: A policy that empties every result.
POLICY = """
import json, sys

def emptied(messages):
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "tool_result":
                part["content"] = ""
    return messages

context = []
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "reset":
        context = []
    if request["op"] == "call":
        context += emptied(request["messages"])
    sent = emptied(request["messages"]) if request["op"] == "force" else context
    print(json.dumps({"messages": sent}), flush=True)
"""


class SessionsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        home = Path(folder.name)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "EPITOME_"))}
        os.environ.clear()
        os.environ.update(variables, HOME=str(home))
        place = home / ".pi/agent/sessions/--work--"
        place.mkdir(parents=True)
        self.session = place / f"2026-11-21T01-33-00-000Z_{ID}.jsonl"
        shutil.copy(SESSIONS / "pi/pricing.jsonl", self.session)
        self.original = self.session.read_bytes()

    def test_a_session_is_compacted_and_restored(self) -> None:
        plan = epitome.compact(self.session, dry_run=True)
        self.assertEqual(self.session.read_bytes(), self.original)
        report = epitome.compact(self.session, recipe="epitome")
        context = report["context_tokens"]
        self.assertLess(context["after"], context["before"])
        self.assertEqual(plan["context_tokens"], context)
        self.assertNotEqual(self.session.read_bytes(), self.original)
        lost = epitome.losses(self.session)
        self.assertEqual(len(lost["compactions"]), 1)
        self.assertEqual(epitome.inspect(str(self.session))["compactions_in_effect"], 1)
        epitome.restore(self.session)
        self.assertEqual(self.session.read_bytes(), self.original)

    def test_a_copy_is_written(self) -> None:
        out = self.session.with_name("small.jsonl")
        epitome.compact(self.session, out=out, target=1_000)
        self.assertLess(out.stat().st_size, len(self.original))
        self.assertEqual(self.session.read_bytes(), self.original)

    def test_sessions_are_listed_searched_simulated_and_inspected(self) -> None:
        [row] = epitome.sessions()
        self.assertEqual((row["agent"], Path(row["session"])), ("pi", self.session))
        self.assertEqual(epitome.sessions(agent="claude"), [])
        inspected = epitome.inspect(ID[:13], count="estimate")
        self.assertEqual(inspected["agent"], "pi")
        hits = epitome.search("Hungary", limit=3)
        self.assertTrue(0 < len(hits) <= 3 and hits[0]["agent"] == "pi")
        report = epitome.simulate(self.session, recipes=["s06"], count="estimate")
        self.assertEqual([it["recipe"] for it in report["recipes"]], ["none", "s06"])

    def test_a_policy_is_a_command(self) -> None:
        policy = self.session.with_name("policy.py")
        policy.write_text(POLICY)
        command = f"{sys.executable} {policy}"
        report = epitome.simulate(
            self.session, recipes=["s06"], commands=[command], count="estimate"
        )
        none, mine, s06 = report["recipes"]
        self.assertEqual([it["recipe"] for it in (none, mine, s06)], ["none", command, "s06"])
        self.assertLess(mine["context"], none["context"])
        self.assertEqual((mine["rules"], mine["violations"]), (1, []))
        with self.assertRaises(epitome.Error) as caught:
            epitome.simulate(self.session, commands=["exit 3"], count="estimate")
        self.assertEqual(caught.exception.kind, "usage")

    def test_pages_are_rendered_without_secrets(self) -> None:
        self.assertTrue(epitome.render(self.session, "html").startswith("<!"))
        self.assertIn("Hungary", epitome.render(self.session, detail="conversation"))
        secret = "DB_PASSWORD=tr0ub4dor-and-3"
        redacted = "DB_PASSWORD=[REDACTED:password-assignment-1]"
        self.assertEqual(epitome.redact(secret), redacted)
        self.assertEqual(epitome.redact("ada@example.org", find=["secrets"]), "ada@example.org")

    def test_an_option_that_means_nothing_is_an_error_that_names_it(self) -> None:
        def simulate(**options: Any) -> Callable[[], Any]:
            return lambda: epitome.simulate([], recipes=["s06"], **options)

        number = "a whole number of at least 0"
        cases: list[tuple[str, Callable[[], Any]]] = [
            ("`target`: invalid value: 7, expected a share", simulate(target=7)),
            ("`window`: invalid value: 0, expected at least 1 token", simulate(window=0)),
            ("an `overhead` of 20 fills a `window` of 10", simulate(window=10, overhead=20)),
            ("`count`: unknown value `zzz`, expected `o200k` or", simulate(count="zzz")),
            ("Out of range float", simulate(target=float("nan"))),
            (
                f'`target`: invalid type: string "x", expected {number}',
                lambda: epitome.compact(self.session, target="x"),  # type: ignore[arg-type]
            ),
            (
                "`format`: unknown value `pdf`, expected one of `html`",
                lambda: epitome.render(self.session, "pdf"),  # type: ignore[arg-type]
            ),
            (
                "`count`: unknown value `zzz`",
                lambda: epitome.inspect(self.session, count="zzz"),  # type: ignore[arg-type]
            ),
            ("`agent`: no agent is called `zzz`", lambda: epitome.sessions(agent="zzz")),
        ]
        for message, work in cases:
            with self.subTest(message):
                with self.assertRaises(epitome.Error) as caught:
                    work()
                self.assertEqual(caught.exception.kind, "usage")
                self.assertIn(message, str(caught.exception))
        self.assertEqual(self.session.read_bytes(), self.original)

    def test_a_recipe_is_a_path_as_well(self) -> None:
        recipe = self.session.with_name("mine.toml")
        recipe.write_text('name = "mine"\nabout = "Mine."\nstages = {}\n', "utf-8")
        plan = epitome.compact(self.session, recipe=recipe, dry_run=True)
        self.assertEqual(plan["recipe"], "mine")

    def test_what_is_not_there_is_an_error(self) -> None:
        with self.assertRaises(epitome.Error) as caught:
            epitome.inspect("no-such-session")
        self.assertEqual(caught.exception.kind, "not-found")
        with self.assertRaises(epitome.Error) as caught:
            epitome.compact(self.session, recipe="no-such-recipe")
        self.assertEqual(caught.exception.kind, "usage")


if __name__ == "__main__":
    unittest.main()
