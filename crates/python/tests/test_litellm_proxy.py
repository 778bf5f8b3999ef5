"""The callback in LiteLLM's proxy, a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path
from typing import Any

import histories

URL = os.environ["TEST_SERVER"]

#: The module that the configuration of the proxy names.
CALLBACK = """
from epitome.litellm import EpitomeCallback

callback = EpitomeCallback(window=8_000, count="estimate")
"""

CONFIGURATION = f"""
model_list:
  - model_name: any
    litellm_params: {{model: openai/scripted, api_base: {URL}/v1, api_key: none}}
litellm_settings:
  callbacks: smaller.callback
general_settings:
  master_key: sk-test
"""


class Proxy:
    """LiteLLM's proxy, until it is closed."""

    def __init__(self, folder: Path) -> None:
        (folder / "smaller.py").write_text(CALLBACK)
        (folder / "config.yaml").write_text(CONFIGURATION)
        program = os.fspath(Path(sys.executable).with_name("litellm"))
        line = [program, "--config", "config.yaml", "--host", "127.0.0.1", "--port", "0"]
        self._process = subprocess.Popen(
            line, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        printed = []
        assert self._process.stdout is not None
        for words in self._process.stdout:
            printed.append(words)
            if "running on" in words:
                self.url = words.split("running on ")[1].split()[0]
                return
        raise AssertionError("".join(printed))

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def complete(self, messages: list[Any]) -> Any:
        """The response to a request with these messages."""
        headers = {"content-type": "application/json", "authorization": "Bearer sk-test"}
        body = json.dumps({"model": "any", "messages": messages}).encode()
        request = urllib.request.Request(f"{self.url}/v1/chat/completions", body, headers)
        with urllib.request.urlopen(request) as response:
            return json.load(response)


class LiteLlmProxyTest(unittest.TestCase):
    def test_the_proxy_sends_smaller_requests(self) -> None:
        turn = histories.Turn("Keep to TOML, and read all of it.")
        counted = []
        with tempfile.TemporaryDirectory() as folder, Proxy(Path(folder)) as proxy:
            for n in range(12):
                call = histories.Call(f"c{n}", "Read", {"path": f"{n}.rs"}, f"line of {n}\n" * 600)
                turn.steps.append(histories.Step("", [call]))
                response = proxy.complete(histories.chat([turn]))
                counted.append(response["usage"]["prompt_tokens"])
        # The scripted server counts what it gets: four bytes are a token.
        whole = len(json.dumps(histories.chat([turn]))) // 4
        self.assertGreater(whole, 20_000)
        self.assertLess(max(counted), 8_000)


if __name__ == "__main__":
    unittest.main()
