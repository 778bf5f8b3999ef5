"""An async client of `epitome engine`: many contexts in one process. Python 3.9, nothing else."""
import asyncio
import json


class EngineError(Exception):
    """What the engine could not do."""


class Engine:
    """`summarise`, if given, takes {"system", "prompt", "max_tokens"}, awaits a model, and returns its text."""

    @classmethod
    async def start(cls, *options, program="epitome", summarise=None):
        engine, pipe = cls(), asyncio.subprocess.PIPE
        engine.process = await asyncio.create_subprocess_exec(program, "engine", *options, stdin=pipe, stdout=pipe,
                                                              limit=1 << 30)
        engine.summarise, engine.turn = summarise, asyncio.Lock()
        engine.about = await engine.ask("hello", summaries=summarise is not None)
        return engine

    async def ask(self, op, **more):
        async with self.turn:  # An answer a line, in the order of the requests.
            self.process.stdin.write(json.dumps({"op": op, **more}).encode() + b"\n")
            await self.process.stdin.drain()
            answer = json.loads(await self.process.stdout.readline() or b'{"error": {"message": "it ended"}}')
        if "error" in answer:
            raise EngineError(answer["error"]["message"])
        if "ask" not in answer:
            return answer
        try:  # While a model writes a summary for this context, the others go on.
            reply = {"text": await self.summarise(answer["ask"])}
        except Exception as why:  # Without a summary the context stays as it is.
            reply = {"failed": str(why)}
        return await self.ask("answer", **{key: more[key] for key in ("context",) if key in more}, **reply)

    def context(self, name):
        return Context(self, name)

    async def close(self):
        self.process.stdin.close()
        await self.process.wait()


class Context:
    def __init__(self, engine, name):
        self.engine, self.name = engine, name

    async def ask(self, op, **more):
        return await self.engine.ask(op, context=self.name, **more)

    async def say(self, *messages, **usage):
        """Says what was said since the last time; returns what to send now: a request's body without model and tools."""
        answer = await self.ask("call", messages=messages, **usage)
        return answer.get("body") or {"messages": answer["messages"]}


async def example(program, *options):  # engine_async.py PROGRAM OPTIONS…
    import tempfile
    async def summarise(question):  # In place of a model: the same under every heading.
        return "\n".join(line + "\nAll is read." for line in question["prompt"].splitlines() if line[:3] == "## ")

    with tempfile.TemporaryDirectory() as logs:  # Without --log, logs are kept in epitome's own folder.
        engine = await Engine.start("--log", logs, *options, program=program, summarise=summarise)
        context = engine.context("example")
        log = (await context.ask("reset"))["log"]
        await context.say({"role": "user", "content": "Read all of it."})
        for n in range(5):
            call = {"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {"path": f"{n}.txt"}}
            result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"a line of {n}\n" * 99}
            await context.say({"role": "assistant", "content": [call]}, {"role": "user", "content": [result]})
        print((await context.ask("compact", target=0))["outcome"])
        print(len((await context.say())["messages"]), (await context.ask("undo"))["undone"])
        print((await context.ask("open", log=log))["messages"])  # As after a restart: so many need not be said again.
        await engine.close()


if __name__ == "__main__":
    import sys
    asyncio.run(example(*sys.argv[1:]))
