#!/usr/bin/env python3
"""Stands between the quality instrument and `epitome engine`, and answers the questions for summaries without a model.

usage: stand_in.py ENGINE [ARGUMENTS...]      e.g. stand_in.py epitome engine --no-log --recipe pi

The answer is taken from the question alone, by rules: the newest texts of the model, the files and commands named last, the
errors said last; at most so many tokens in all, the same for the same question. What a real model writes is better told and
costs more; what a program takes from the session (the first half of each summary) is the same. Speaks the instrument's
protocol on standard input and output and adds `llm`: the tokens of each question and answer, which go on the bill.
"""
import json, re, subprocess, sys

BUDGET = 2_000                       # tokens of an answer, at four characters each
RECORD = re.compile(r"<(user|assistant|call|result)\b([^>]*?)(?:/>|>(.*?)</\1>)", re.S)
WRONG = re.compile(r"(?i)\b(error|fail(?:ed|ure|s)?|exception|panic|fatal|undefined|cannot|not found|denied)\b")


def tokens(text):
    return len(text) // 4


def newest(things, room):
    """The last of them, newest first, each once, as many as fit."""
    kept = []
    for thing in dict.fromkeys(reversed([it for it in things if it])):
        room -= len(thing) + 3
        if room < 0:
            break
        kept.append("- " + thing)
    return "\n".join(kept)


def answer(ask):
    prompt = ask["prompt"]
    earlier = prompt.partition("<earlier>\n")[2]
    earlier = earlier.split("\n</earlier>", 1)[0] if "<earlier>\n" in prompt else ""
    titles = [title.split(" (")[0] for title in re.findall(r"(?m)^## (.+)$", prompt.rsplit("</", 1)[-1])]
    # What an earlier summary told is older than all that the history says.
    said = [line[2:] for line in earlier.split("\n") if line.startswith("- ")][::-1]
    done, wrong = [], []
    for tag, about, text in RECORD.findall(prompt):
        if tag == "assistant":
            said.append(" ".join(text.split())[:300])
        elif tag == "call":
            done.append(" ".join((about + " " + text).split())[:160])
        elif tag == "result":
            wrong += [line.strip()[:160] for line in text.split("\n") if len(line) < 300 and WRONG.search(line)]
    room = 4 * min(BUDGET, ask["max_tokens"])
    bodies = [newest(said, room // 2), newest(done, room // 4), newest(wrong, room // 4)]
    bodies += [""] * len(titles)
    return "\n\n".join("## %s\n%s" % (title, body or "None.") for title, body in zip(titles, bodies))


class Engine:
    def __init__(self, command):
        pipe = subprocess.PIPE
        self.pipe = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8")

    def ask(self, what):
        self.pipe.stdin.write(json.dumps(what, ensure_ascii=False) + "\n")
        self.pipe.stdin.flush()
        return json.loads(self.pipe.stdout.readline())

    def through(self, what):
        """What comes of it once every question is answered."""
        llm, got = [], self.ask(what)
        while "ask" in got:
            text = answer(got["ask"])
            llm.append([tokens(got["ask"]["system"] + got["ask"]["prompt"]), tokens(text)])
            got = self.ask({"op": "answer", "text": text, "stopped": "end"})
        return got, llm

    def answer(self, what):
        if what["op"] == "reset":
            return self.ask({**what, "summaries": True})
        if what["op"] != "force":
            got, llm = self.through(what)
            return {**got, "llm": llm}
        # The engine forces without questions: here the whole history is a session of its own.
        self.ask({"op": "reset", "session": "forced", "summaries": True})
        self.through({"op": "call", "messages": what["messages"]})
        self.through({"op": "compact"})
        return self.through({"op": "call", "messages": []})[0]


engine = Engine(sys.argv[1:])
for line in sys.stdin:
    print(json.dumps(engine.answer(json.loads(line)), ensure_ascii=False), flush=True)
