"""A client of `epitome engine`: a context that stays small, over a pipe. Python 3.9, nothing else."""
import json
import subprocess


class EngineError(Exception):
    """What the engine could not do: its kind and message."""


class Engine:
    def __init__(self, *options, program="epitome"):
        self.pipe = subprocess.Popen([program, "engine", *options], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.about = self.ask("hello")

    def ask(self, op, **more):
        self.pipe.stdin.write(json.dumps({"op": op, **more}, ensure_ascii=False) + "\n")
        self.pipe.stdin.flush()
        answer = json.loads(self.pipe.stdout.readline() or '{"error": {"message": "it ended"}}')
        if "error" in answer:
            raise EngineError(answer["error"]["message"])
        return answer

    def begin(self, session, window=None):
        return self.ask("reset", session=session, **({"window": window} if window else {}))

    def say(self, *messages, usage=None):
        """Says what was said since the last time; returns the messages to send now."""
        more = {"usage": usage} if usage else {}
        return self.ask("call", messages=list(messages), **more)["messages"]

    def recall(self, ref):
        return self.ask("recall", ref=ref)["text"]

    def close(self):
        self.pipe.stdin.close()
        self.pipe.wait()


if __name__ == "__main__":
    import sys

    engine = Engine(*sys.argv[2:], program=sys.argv[1])
    engine.begin("example")
    engine.say({"role": "user", "content": "Read all of it."})
    for n in range(5):
        call = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"path": f"{n}.txt"}}
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": "a line\n" * 99}
        view = engine.say({"role": "assistant", "content": [call]},
                          {"role": "user", "content": [result]})
    engine.ask("compact")
    view = engine.say()
    print(view[2]["content"][0]["content"])
    print(engine.ask("undo")["undone"], len(engine.say()[2]["content"][0]["content"]))
    engine.close()
