"""`epitome.Context` and `AsyncContext`, on every API."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import random
import tempfile
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

import epitome
import histories

URL = os.environ.get("TEST_SERVER")
SEEDS = histories.seeds(300)


def read(n: int, lines: int = 300) -> list[dict[str, Any]]:
    """A call that reads a file, and its result."""
    call = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"path": f"{n}.txt"}}
    result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"line of {n}\n" * lines}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def spelled(messages: list[Any]) -> list[tuple[str, list[Any]]]:
    """Messages in one spelling, those of one role joined."""
    joined: list[tuple[str, list[Any]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [{key: value for key, value in it.items() if value is not False} for it in blocks]
        if joined and joined[-1][0] == message["role"]:
            joined[-1][1].extend(blocks)
        else:
            joined.append((message["role"], list(blocks)))
    return joined


def under_each_heading(question: epitome.Question) -> str:
    lines = question["prompt"].splitlines()
    return "\n".join(f"{line}\nAll is read." for line in lines if line.startswith("## "))


class ContextTest(unittest.TestCase):
    def test_a_long_conversation_stays_below_its_window(self) -> None:
        context = epitome.Context(window=8_000, count="estimate")
        context.push({"role": "user", "content": "Read all of it."})
        for n in range(12):
            context.push(read(n))
            self.assertLessEqual(len(str(context.view())), 24_000)
        self.assertIn("finished", [event["event"] for event in context.events])
        self.assertEqual(context.refs["c0"], "#1")
        self.assertEqual(context.recall("#1"), "line of 0\n" * 300)
        self.assertTrue(context.is_changed)

    def test_a_short_conversation_is_not_changed(self) -> None:
        context = epitome.Context()
        messages = [{"role": "user", "content": "Hello."}]
        block = {"type": "text", "text": "Hello."}
        self.assertEqual(context.view(messages), [{"role": "user", "content": [block]}])
        self.assertEqual(context.events, [])
        self.assertFalse(context.is_changed)

    def test_whole_lists_and_news_are_the_same(self) -> None:
        news = epitome.Context(window=8_000, count="estimate")
        lists = epitome.Context(window=8_000, count="estimate")
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all of it."}]
        news.push(messages)
        for n in range(9):
            messages += read(n)
            news.push(read(n))
            self.assertEqual(news.view(), lists.view(messages))
        self.assertEqual(lists.view(messages[:1])[0]["content"][0]["text"], "Read all of it.")

    def test_a_step_says_whether_what_was_sent_has_changed(self) -> None:
        for seed in range(100):
            rng = random.Random(seed)
            options: dict[str, Any] = {"window": 8_000, "recipe": rng.choice(["epitome", "s08"])}
            steps = epitome.Context(count="estimate", **options)
            views = epitome.Context(count="estimate", **options)
            sent: list[Any] = []
            said = histories.anthropic(histories.conversation(rng))
            for message in said:
                views.push(message)
                whole = views.view()
                sent = steps.view() if steps.step(message) else [*sent, message]
                self.assertEqual(spelled(sent), spelled(whole), seed)

    def test_a_list_that_was_seen_before_is_answered_as_any_other(self) -> None:
        for seed in range(100):
            rng = random.Random(seed)
            options: dict[str, Any] = {"window": 8_000, "recipe": rng.choice(["epitome", "s08"])}
            kept = epitome.Context(count="estimate", **options)
            other = epitome.Context(count="estimate", **options)
            whole: list[Any] = histories.anthropic(histories.conversation(rng))
            end = 1
            for _ in range(25):
                end = self.use(rng, whole, end, kept, other)
                messages = whole[:end]
                # Without what is kept of the last call, the library reads the whole list.
                other._kept = None
                view = kept.view(messages)
                self.assertEqual(json.dumps(view), json.dumps(other.view(messages)), seed)
                self.assertEqual(kept.is_changed, other.is_changed)
                if rng.random() < 0.3:
                    view[-1]["content"] = "The program modifies what it was given."

    def use(
        self,
        rng: random.Random,
        whole: list[Any],
        end: int,
        kept: epitome.Context,
        other: epitome.Context,
    ) -> int:
        """What a program may do between two views. Returns how much of the list the next one has."""
        what = rng.randrange(7)
        if what == 0:
            return rng.randint(1, len(whole))
        if what == 1:
            for context in (kept, other):
                context.compact(target=0)
        if what == 2:
            self.assertEqual(kept.undo(), other.undo())
        if what == 3:
            for block in rng.choice(whole)["content"]:
                if isinstance(block, dict) and block["type"] == "tool_use":
                    # Equal for Python, and not the same JSON.
                    block["input"]["n"] = rng.choice([1, 1.0, True])
        return min(end + (what > 4), len(whole))

    def test_a_list_without_news_is_not_read_again(self) -> None:
        context = epitome.Context(count="estimate")
        messages: list[Any] = [{"role": "user", "content": "Read all of it."}, *read(0)]
        view = context.view(messages)
        with mock.patch.object(context, "_ask", side_effect=AssertionError("the library is used")):
            self.assertEqual(context.view(messages), view)
            self.assertIs(context.view(messages)[0], view[0])
        messages[0]["content"] = "Read some of it."
        self.assertIn("Read some of it.", str(context.view(messages)))
        # An object may be modified without being noticed: it is read each time.
        said = SimpleNamespace(model_dump=lambda **_: {"role": "user", "content": "One."})
        self.assertIn("One.", str(context.view([said])))  # type: ignore[list-item]
        said.model_dump = lambda **_: {"role": "user", "content": "Two."}
        self.assertIn("Two.", str(context.view([said])))  # type: ignore[list-item]

    def test_undo_search_usage_and_compact(self) -> None:
        context = epitome.Context(recipe="clear-tool-uses", count="estimate")
        context.push([{"role": "user", "content": "Read all of it."}])
        for n in range(5):
            context.push(read(n))
        before = context.view()
        self.assertIn("tokens", str(context.compact(target=0)))
        self.assertLess(len(str(context.view())), len(str(before)))
        self.assertEqual(context.search("line of 3", limit=1)[0]["text"], "line of 3")
        self.assertTrue(context.undo())
        self.assertEqual(context.view(), before)
        self.assertEqual(context.usage()["report"]["compactions"], 0)
        self.assertEqual(context.tool["name"], "compact")

    def test_a_question_for_a_summary_is_answered(self) -> None:
        questions = []

        def summaries(question: epitome.Question) -> str:
            questions.append(question)
            return under_each_heading(question)

        context = epitome.Context(recipe="pi", window=60_000, summaries=summaries)
        context.push({"role": "user", "content": "Read all of it."})
        for n in range(30):
            context.push([*read(n, 900), {"role": "user", "content": "And the next one."}])
            context.view()
        self.assertEqual(sorted(questions[0]), ["max_tokens", "prompt", "system"])
        self.assertIn("summarised", [event["event"] for event in context.events])

    def test_without_an_answer_the_context_stays_valid(self) -> None:
        def summaries(_: epitome.Question) -> str:
            raise TimeoutError("no answer in time")

        context = epitome.Context(recipe="pi", window=30_000, summaries=summaries)
        context.push({"role": "user", "content": "Read all of it."})
        for n in range(20):
            context.push([*read(n, 900), {"role": "user", "content": "And the next one."}])
            context.view()
        failed = [event for event in context.events if event["event"] == "failed"]
        self.assertIn("no answer in time", str(failed + context.events))

    def test_async(self) -> None:
        async def summaries(question: epitome.Question) -> epitome.Answer:
            await asyncio.sleep(0)
            return {"text": under_each_heading(question), "stopped": "end"}

        async def talk() -> list[str]:
            context = epitome.AsyncContext(recipe="pi", window=60_000, summaries=summaries)
            context.push({"role": "user", "content": "Read all of it."})
            for n in range(30):
                context.push([*read(n, 900), {"role": "user", "content": "And the next one."}])
                await context.view()
            await context.compact("the files")
            return [event["event"] for event in context.events]

        self.assertIn("summarised", asyncio.run(talk()))
        with self.assertRaises(epitome.Error):
            epitome.Context(summaries=summaries)  # type: ignore[arg-type]

    def test_a_refusal_makes_the_context_smaller(self) -> None:
        context = epitome.Context(recipe="clear-tool-uses")
        context.push({"role": "user", "content": "Read all of it."})
        for n in range(9):
            context.push(read(n, 900))
        sent = context.view()
        smaller = context.refused(400, "prompt is too long: 213462 tokens > 200000 maximum")
        assert smaller is not None
        self.assertLess(len(str(smaller["messages"])), len(str(sent)))
        self.assertIsNone(context.refused(401, "invalid x-api-key"))

    def test_a_log_is_resumed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            context = epitome.Context(log=folder, session="talk")
            context.push([{"role": "user", "content": "Read."}, *read(0)])
            view = context.view()
            log = context.log
            assert log is not None
            del context
            resumed = epitome.Context(log=folder)
            self.assertEqual(resumed.open(log)["messages"], 3)
            self.assertEqual(resumed.view(), view)

    def test_errors_have_a_kind_and_hints(self) -> None:
        with self.assertRaises(epitome.Error) as caught:
            epitome.Context(recipe="no-such-recipe")
        self.assertEqual(caught.exception.kind, "usage")
        self.assertIn("there are: ", caught.exception.hints[0])
        with self.assertRaises(epitome.Error) as caught:
            epitome.Context().recall("k1234567")
        self.assertEqual(caught.exception.kind, "not-found")
        with self.assertRaises(epitome.Error) as caught:
            epitome.Context(api="carrier-pigeon")  # type: ignore[arg-type]
        self.assertEqual(caught.exception.kind, "usage")
        options: list[tuple[str, Any]] = [
            ("count", "zzz"),
            ("window", 0),
            ("window", "x"),
            ("overhead", 1.5),
        ]
        for name, value in options:
            with self.subTest(name), self.assertRaises(epitome.Error) as caught:
                epitome.Context(**{name: value})
            self.assertIn(f"`{name}`", str(caught.exception))
            self.assertNotIn("u64", str(caught.exception))
        context = epitome.Context()
        usage: Any = {"input": "x"}
        context.push({"role": "user", "content": "Hello."}, usage)
        with self.assertRaises(epitome.Error) as caught:
            context.view()
        self.assertIn("`usage`: invalid type: string", str(caught.exception))
        self.assertNotIn("u64", str(caught.exception))
        with self.assertRaises(epitome.Error) as caught:
            context.compact(target=-1)
        self.assertIn("`target`: invalid value: integer `-1`", str(caught.exception))
        context.push({"role": "user", "content": object()})
        with self.assertRaises(epitome.Error):
            context.view()
        # What was refused is gone, and the context can be used.
        self.assertEqual(context.view(), [])
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.kind, str(again)), ("usage", str(caught.exception)))

    @unittest.skipUnless(URL, "no server")
    def test_no_view_of_a_random_history_is_refused(self) -> None:
        server = histories.Server(str(URL))
        for api, form in histories.FORMS.items():
            for seed in SEEDS:
                rng = random.Random(seed)
                recipe = rng.choice(["epitome", "clear-tool-uses", "s08", "ion"])
                window = rng.choice([3_000, 8_000, 40_000])
                context = epitome.Context(recipe, window=window, api=api, count="estimate")  # type: ignore[arg-type]
                for turns in histories.growing(rng):
                    with self.subTest(api=api, seed=seed, recipe=recipe):
                        body = context.body(form.messages(turns))
                        server.send(form.path(turns), {**histories.settings(api, turns), **body})


if __name__ == "__main__":
    unittest.main()
