"""A small agent on a provider's own SDK. It sends what `epitome engine` says, and nothing else.

usage: loop.py CLIENT EPITOME URL WIRE RECIPE. CLIENT is docs/clients/engine.py; at URL a scripted model
answers, which refuses what the provider would. Prints how many requests it sent.
"""
import importlib.util
import json
import sys

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ABOUT = "Reads a file."


class Anthropic:
    def __init__(self, url):
        import anthropic

        self.api = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
        self.requests = 0

    def prompt(self, words):
        return [{"role": "user", "content": words}]

    def ask(self, view):
        request = dict(model="scripted", max_tokens=4096, messages=view["messages"],
                       thinking={"type": "enabled", "budget_tokens": 1024},
                       tools=[{"name": "read", "description": ABOUT, "input_schema": SCHEMA}])
        self.requests += 1
        if self.requests % 2:
            reply = self.api.messages.create(**request)
        else:
            with self.api.messages.stream(**request) as stream:
                reply = stream.get_final_message()
        said = [plain(block, "type", "text", "thinking", "signature", "id", "name", "input")
                for block in reply.content]
        calls = [(block["id"], block["input"]) for block in said if block["type"] == "tool_use"]
        return [{"role": "assistant", "content": said}], calls

    def results(self, answered):
        return [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "content": text} for call, text in answered]}]


class Chat:
    def __init__(self, url):
        import openai

        self.api = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        self.requests = 0

    def prompt(self, words):
        return [{"role": "user", "content": words}]

    def ask(self, view):
        tool = {"name": "read", "description": ABOUT, "parameters": SCHEMA}
        self.requests += 1
        reply = self.api.chat.completions.create(
            model="scripted", tools=[{"type": "function", "function": tool}], **view["body"])
        said = plain(reply.choices[0].message, "role", "content", "tool_calls")
        calls = [(call["id"], json.loads(call["function"]["arguments"]))
                 for call in said.get("tool_calls") or []]
        return [said], calls

    def results(self, answered):
        return [{"role": "tool", "tool_call_id": call, "content": text} for call, text in answered]


class Responses(Chat):
    def ask(self, view):
        tool = {"type": "function", "name": "read", "description": ABOUT, "parameters": SCHEMA,
                "strict": False}
        self.requests += 1
        reply = self.api.responses.create(model="scripted", tools=[tool], store=False,
                                          include=["reasoning.encrypted_content"], **view["body"])
        said = [item.model_dump(exclude_none=True, mode="json") for item in reply.output]
        calls = [(item["call_id"], json.loads(item["arguments"]))
                 for item in said if item["type"] == "function_call"]
        return said, calls

    def results(self, answered):
        return [{"type": "function_call_output", "call_id": call, "output": text}
                for call, text in answered]


WIRES = {"anthropic": Anthropic, "openai-chat": Chat, "openai-responses": Responses}


def plain(said, *keys):
    said = said.model_dump(exclude_none=True, mode="json")
    return {key: value for key, value in said.items() if key in keys}


def text_of(path):
    return "".join(f"{path}: line {n} says what line {n} has to say\n" for n in range(90))


def main(client, program, url, wire, recipe):
    spec = importlib.util.spec_from_file_location("engine", client)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    engine = module.Engine("--no-log", "--wire", wire, "--recipe", recipe, "--window", "30000",
                           program=program)
    model = WIRES[wire](url)
    new = model.prompt("Read all of the files, please.")
    while True:
        view = engine.ask("call", messages=new)
        # What is sent then is not what was sent before.
        if model.requests in (4, 8):
            engine.ask("compact", target=0)
            view = engine.ask("call")
        said, calls = model.ask(view)
        if not calls:
            break
        new = said + model.results([(call, text_of(given["path"])) for call, given in calls])
    engine.close()
    print(json.dumps({"requests": model.requests}))


main(*sys.argv[1:])
