"""A client of `epitome engine`: a context that stays small, over a pipe. Python 3.9, nothing else."""
import json
import subprocess


class EngineError(Exception):
    """What the engine could not do."""


class Engine:
    """`summarise`, if given, takes {"system", "prompt", "max_tokens"}, asks a model, and returns its text."""

    def __init__(self, *options, program="epitome", summarise=None):
        self.pipe = subprocess.Popen([program, "engine", *options], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.summarise = summarise
        self.about = self.ask("hello", summaries=summarise is not None)

    def ask(self, op, **more):
        self.pipe.stdin.write(json.dumps({"op": op, **more}) + "\n")
        self.pipe.stdin.flush()
        answer = json.loads(self.pipe.stdout.readline() or '{"error": {"message": "it ended"}}')
        if "error" in answer:
            raise EngineError(answer["error"]["message"])
        return self.ask("answer", **self.reply(answer["ask"])) if "ask" in answer else answer

    def reply(self, question):
        try:
            return {"text": self.summarise(question)}
        except Exception as why:  # Without a summary the context stays as it is.
            return {"failed": str(why)}

    def say(self, *messages, **usage):
        """Says what was said since the last time; returns what to send now: a request's body without model and tools."""
        answer = self.ask("call", messages=messages, **usage)
        return answer.get("body") or {"messages": answer["messages"]}

    def close(self):
        self.pipe.stdin.close()
        self.pipe.wait()


if __name__ == "__main__":  # engine.py PROGRAM OPTIONS…
    import sys, tempfile
    def summarise(question):  # In place of a model: the same under every heading.
        return "\n".join(line + "\nAll is read." for line in question["prompt"].splitlines() if line[:3] == "## ")

    with tempfile.TemporaryDirectory() as logs:  # Without --log, logs are kept in epitome's own folder.
        engine = Engine("--log", logs, *sys.argv[2:], program=sys.argv[1], summarise=summarise)
        log = engine.ask("reset", session="example")["log"]
        engine.say({"role": "user", "content": "Read all of it."})
        for n in range(5):
            call = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"path": f"{n}.txt"}}
            result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"a line of {n}\n" * 99}
            engine.say({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})
        print(engine.ask("compact", target=0)["outcome"])
        print(len(engine.say()["messages"]), engine.ask("undo")["undone"])
        print(engine.ask("open", log=log)["messages"])  # As after a restart: so many need not be said again.
        engine.close()
