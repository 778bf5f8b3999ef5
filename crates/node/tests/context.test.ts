// `Context`, on every API.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { Context, EpitomeError, type Api, type Question } from "@epitome-cli/context";
import { anthropicMessages, conversation, Random } from "./histories.js";

type Block = { type: string; text?: string };
type Message = { role: string; content: Block[] };

/** A call that reads a file, and its result. */
function read(n: number, lines = 300): object[] {
  const call = { type: "tool_use", id: `c${n}`, name: "Read", input: { path: `${n}.txt` } };
  const content = `line of ${n}\n`.repeat(lines);
  const result = { type: "tool_result", tool_use_id: `c${n}`, content };
  return [{ role: "assistant", content: [call] }, { role: "user", content: [result] }];
}

function user(content: string): object {
  return { role: "user", content };
}

function underEachHeading({ prompt }: Question): string {
  const headings = prompt.split("\n").filter((line) => line.startsWith("## "));
  return headings.map((line) => `${line}\nAll is read.`).join("\n");
}

function length(value: unknown): number {
  return JSON.stringify(value).length;
}

test("a short conversation is not changed", async () => {
  const context = new Context<Message>();
  const sent = [{ role: "user", content: [{ type: "text", text: "Hello." }] }];
  assert.deepEqual(await context.view([user("Hello.")]), sent);
  assert.deepEqual(await context.body([user("Hello.")]), { messages: sent });
  assert.deepEqual([context.events, context.refs, context.log], [[], {}, undefined]);
  assert.equal(await context.isChanged(), false);
});

test("each API has its own body", async () => {
  const chat = { role: "user", content: "Hello." };
  const input = [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello." }] }];
  const contents = [{ role: "user", parts: [{ text: "Hello." }] }];
  const bodies: [Api, object, object][] = [
    ["openai-chat", chat, { messages: [chat] }],
    ["openai-responses", chat, { input }],
    ["gemini-api", contents[0]!, { contents }],
  ];
  for (const [api, message, body] of bodies) {
    const context = new Context({ api });
    assert.deepEqual(await context.view(), []);
    context.push(message);
    assert.deepEqual(await context.body(), body);
    assert.deepEqual(await context.view(), Object.values(body)[0]);
    assert.equal(context.api, api);
  }
});

test("a long conversation stays below its window", async () => {
  const context = new Context({ window: 8_000, count: "estimate" });
  context.push(user("Read all of it."));
  for (let n = 0; n < 12; n += 1) {
    context.push(read(n));
    assert.ok(length(await context.view()) <= 24_000);
  }
  assert.ok(context.events.some(({ event }) => event === "finished"));
  assert.equal(context.refs["c0"], "#1");
  assert.equal(await context.recall("#1"), "line of 0\n".repeat(300));
  assert.equal(await context.isChanged(), true);
});

test("whole lists and news are the same", async () => {
  const news = new Context<Message>({ window: 8_000, count: "estimate" });
  const lists = new Context<Message>({ window: 8_000, count: "estimate" });
  const messages = [user("Read all of it.")];
  news.push(messages);
  for (let n = 0; n < 9; n += 1) {
    messages.push(...read(n));
    news.push(read(n));
    assert.deepEqual(await news.view(), await lists.view(messages));
  }
  const [first] = await lists.view(messages.slice(0, 1));
  assert.deepEqual(first?.content, [{ type: "text", text: "Read all of it." }]);
});

test("a step says whether what was sent has changed", async () => {
  const steps = new Context({ window: 8_000, count: "estimate" });
  const views = new Context({ window: 8_000, count: "estimate" });
  const changes: boolean[] = [];
  let sent: object[] = [];
  for (let n = 0; n < 9; n += 1) {
    for (const message of n === 0 ? [user("Read all of it."), ...read(n)] : read(n)) {
      const isChanged = await steps.step(message);
      sent = isChanged ? await steps.view() : [...sent, message];
      views.push(message);
      assert.deepEqual(blocks(sent), blocks(await views.view()));
      changes.push(isChanged);
    }
  }
  assert.ok(changes.includes(true) && changes.includes(false));
});

/** The blocks of messages in one spelling. */
function blocks(messages: object[]): object[] {
  return (messages as { role: string; content: string | Block[] }[]).flatMap(({ role, content }) => {
    const list = typeof content === "string" ? [{ type: "text", text: content }] : content;
    return list.map((block) => ({ role, ...block }));
  });
}

test("a list that was seen before is answered as any other", async () => {
  for (let seed = 0; seed < 60; seed += 1) {
    const random = new Random(seed);
    const recipe = random.choose(["epitome", "s08"]);
    const kept = new Context<any>({ recipe, window: 8_000, count: "estimate" });
    const other = new Context<any>({ recipe, window: 8_000, count: "estimate" });
    const whole = anthropicMessages(conversation(random));
    let end = 1;
    for (let n = 0; n < 20; n += 1) {
      end = await use(random, whole, end, [kept, other]);
      const messages = whole.slice(0, end);
      const view = await kept.view(messages);
      // Objects of a class may be modified unnoticed: the library reads them each time.
      const unknown = messages.map((message) => Object.assign(Object.create({}), message));
      assert.deepEqual(view, await other.view(unknown), `seed ${seed}`);
      assert.equal(await kept.isChanged(), await other.isChanged());
      if (random.next() < 0.3) view.at(-1).content = "The program modifies what it was given.";
    }
  }
});

/** What a program may do between two views. Resolves to how much of the list the next one has. */
async function use(
  random: Random,
  whole: any[],
  end: number,
  contexts: Context[],
): Promise<number> {
  switch (random.integer(0, 6)) {
    case 0: return random.integer(1, whole.length);
    case 1:
      for (const context of contexts) await context.compact({ target: 0 });
      break;
    case 2:
      for (const context of contexts) await context.undo();
      break;
    case 3: {
      const { content } = random.choose(whole);
      const blocks = Array.isArray(content) ? content : [];
      for (const { input } of blocks) if (input) input.n = random.choose([1, true, "1"]);
      break;
    }
    case 4: break;
    default: return Math.min(end + 1, whole.length);
  }
  return end;
}

test("the messages of a view are the same objects as long as nothing is new", async () => {
  const context = new Context({ count: "estimate" });
  const messages = [user("Read all of it."), ...read(0)];
  const [first] = await context.view(messages);
  assert.equal((await context.view(messages))[0], first);
  const again = context.view(messages);
  context.push(user("And the next one."));
  assert.equal((await again).length, 3);
  assert.equal((await context.view()).length, 3);
  assert.notEqual((await context.view(messages))[0], first);
});

test("undo, search, usage and compact", async () => {
  const context = new Context({ recipe: "clear-tool-uses", count: "estimate" });
  context.push(user("Read all of it."), { input: 900, output: 80 });
  for (let n = 0; n < 5; n += 1) context.push(read(n));
  const before = await context.view();
  assert.match(String(await context.compact({ target: 0 })), /tokens/);
  assert.ok(length(await context.view()) < length(before));
  const hit = { ref: "#4", line: 1, text: "line of 3" };
  assert.deepEqual(await context.search("LINE of 3", { limit: 1 }), [hit]);
  assert.equal(await context.undo(), true);
  assert.deepEqual(await context.view(), before);
  assert.equal(await context.undo(), false);
  assert.equal((await context.usage()).report["compactions"], 0);
  assert.equal(context.tool["name"], "compact");
});

test("calls that are not awaited are carried out in their order", async () => {
  const context = new Context<Message>();
  context.push(user("One."));
  const first = context.view();
  context.push({ role: "assistant", content: "Two." });
  const second = context.usage();
  context.push(user("Three."));
  const third = context.view();
  const roles = (messages: Message[]): string[] => messages.map(({ role }) => role);
  assert.deepEqual(roles(await first), ["user"]);
  assert.ok((await second).usage);
  assert.deepEqual(roles(await third), ["user", "assistant", "user"]);
});

test("the event loop goes on while the library works", async () => {
  const context = new Context();
  context.push([user("Read all of it."), ...read(0, 100_000)]);
  let isViewed = false;
  const view = context.view().then(() => { isViewed = true; });
  await new Promise(setImmediate);
  assert.equal(isViewed, false);
  await view;
});

test("a question for a summary is answered", async () => {
  const questions: Question[] = [];
  const summaries = async (question: Question) => {
    questions.push(question);
    return { text: underEachHeading(question), stopped: "end" as const };
  };
  const context = new Context({ recipe: "pi", window: 60_000, summaries });
  await readAll(context, 30);
  assert.deepEqual(Object.keys(questions[0]!).sort(), ["max_tokens", "prompt", "system"]);
  assert.ok(context.events.some(({ event }) => event === "summarised"));
});

test("without an answer the context stays valid", async () => {
  const summaries = (): string => { throw new RangeError("no answer in time"); };
  const context = new Context({ recipe: "pi", window: 30_000, summaries });
  await readAll(context, 20);
  assert.match(JSON.stringify(context.events), /no answer in time/);
});

async function readAll(context: Context, files: number): Promise<void> {
  context.push(user("Read all of it."));
  for (let n = 0; n < files; n += 1) {
    context.push([...read(n, 900), user("And the next one.")]);
    await context.view();
  }
}

test("a refusal makes the context smaller", async () => {
  const context = new Context({ recipe: "clear-tool-uses" });
  context.push(user("Read all of it."));
  for (let n = 0; n < 9; n += 1) context.push(read(n, 900));
  const sent = await context.view();
  const smaller = await context.refused(400, "prompt is too long: 213462 tokens > 200000 maximum");
  assert.ok(length(smaller.messages) < length(sent));
  assert.equal(await context.refused(401, "invalid x-api-key"), undefined);
});

test("a log is resumed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "epitome-"));
  const open = { messages: 3, open_calls: [], session: "talk" };
  const context = new Context({ log: folder, session: "talk" });
  context.push([user("Read."), ...read(0)]);
  const view = await context.view();
  assert.equal(context.log, join(folder, "talk.jsonl"));
  // One engine at a time has a log open.
  const other = new Context({ log: folder });
  await assert.rejects(other.open(context.log), { kind: "locked" });
  await context.close();
  const { messages, open_calls, session } = await other.open(context.log);
  assert.deepEqual({ messages, open_calls, session }, open);
  assert.deepEqual(await other.view(), view);
  await assert.rejects(context.view(), { kind: "usage", message: "the engine is not running" });
  rmSync(folder, { recursive: true });
});

test("errors have a kind and hints", async () => {
  const recipe = error(() => new Context({ recipe: "no-such-recipe" }));
  assert.equal(recipe.kind, "usage");
  assert.match(recipe.hints[0] ?? "", /^there are: /);
  const option = error(() => new Context({ windows: 9 } as object));
  assert.equal(option.message, "no option is called `windows`");
  assert.equal(error(() => new Context({ api: "carrier-pigeon" as Api })).kind, "usage");
  const count = error(() => new Context({ count: "zzz" as "o200k" }));
  assert.equal(count.message, "`count`: unknown value `zzz`, expected `o200k` or `estimate`");
  const text = error(() => new Context({ window: "x" as unknown as number }));
  assert.match(text.message, /^`window`: invalid type: string "x", expected a whole number/);
  await assert.rejects(new Context().recall("k1234567"), {
    name: "EpitomeError",
    kind: "not-found",
    message: "nothing was removed under k1234567",
    hints: [],
    causes: [],
  });
  const context = new Context();
  context.push({ role: "user", content: 1n });
  await assert.rejects(context.view(), /^EpitomeError: this is no JSON/);
  context.push({ role: "pigeon", content: "Coo." });
  await assert.rejects(context.view(), { kind: "usage" });
  // What was refused is gone, and the context can be used.
  assert.deepEqual(await context.view(), []);
});

function error(work: () => unknown): EpitomeError {
  try {
    work();
  } catch (err) {
    if (err instanceof EpitomeError) return err;
  }
  return assert.fail("no error of the package");
}
