"""The examples of `docs/python.md`, with the scripted model in place of the services."""

from __future__ import annotations

import os
import re
import unittest
from pathlib import Path
from typing import Any

import histories

PAGE = Path(__file__).parents[3] / "docs/python.md"


class DocsTest(unittest.TestCase):
    def test_the_examples_run(self) -> None:
        url = os.environ["TEST_SERVER"]
        # The agents of the page have no tools but `recall`.
        histories.Server(url).play([])
        os.environ.update(
            ANTHROPIC_API_KEY="none",
            ANTHROPIC_BASE_URL=url,
            OPENAI_API_KEY="none",
            OPENAI_BASE_URL=url + "/v1",
            # Otherwise its traces are sent to OpenAI.
            OPENAI_AGENTS_DISABLE_TRACING="1",
        )
        examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
        self.assertGreaterEqual(len(examples), 8)
        names: dict[str, Any] = {"__name__": "example"}
        for example in examples:
            with self.subTest(example=example):
                exec(compile(example, str(PAGE), "exec"), names)


if __name__ == "__main__":
    unittest.main()
