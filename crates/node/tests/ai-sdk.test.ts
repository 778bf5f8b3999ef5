// The middleware, with the AI SDK, its providers, and a server that refuses what they refuse.
import assert from "node:assert/strict";
import test from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import {
  generateText, isStepCount, jsonSchema, pruneMessages, streamText, tool, wrapLanguageModel,
  type LanguageModel, type ModelMessage,
} from "ai";
import { compaction } from "@epitome-cli/context/ai-sdk";
import * as histories from "./histories.js";

const URL = process.env["ANTHROPIC_BASE_URL"]!;
const RECIPES = ["epitome", "clear-tool-uses", "s08", "ion"];
const WINDOWS = [3_000, 8_000, 40_000];
const LONG = { window: 12_000, count: "estimate" } as const;

/** A model of Anthropic's, and the messages of its requests. */
class Recorder {
  readonly requests: any[][] = [];
  readonly model = createAnthropic({
    apiKey: "none",
    baseURL: `${URL}/v1`,
    fetch: async (input, init) => {
      this.requests.push(JSON.parse(String(init?.body)).messages);
      return fetch(input, init);
    },
  })("scripted");

  /** How many bytes of the messages of all requests a cache has from the request before. */
  cachedShare(): number {
    const all = this.requests.slice(1).map((messages) => JSON.stringify(messages).length);
    const cached = this.requests.slice(1).map((messages, at) => {
      const before = this.requests[at]!;
      const end = messages.findIndex((message, n) => text(message) !== text(before[n]));
      return JSON.stringify(messages.slice(0, end < 0 ? messages.length : end)).length;
    });
    return sum(cached) / sum(all);
  }
}

/** A message without its marks for a cache. */
function text(message: unknown): string {
  return JSON.stringify(message ?? null).replaceAll(/,"cache_control":\{[^}]*\}/g, "");
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

async function send(
  model: LanguageModel,
  messages: ModelMessage[],
  providerOptions: Record<string, any> = {},
): Promise<void> {
  await generateText({ model, messages, providerOptions, maxOutputTokens: 100, maxRetries: 0 });
}

test("without us a trimmed history is refused, and with us it is not", async () => {
  const { model, requests } = new Recorder();
  const messages = histories.modelMessages(histories.reading(12));
  // The last messages alone: a result without its call, and the request of the user is gone.
  await assert.rejects(send(model, messages.slice(-5)), { statusCode: 400 });
  const copy = structuredClone(messages);
  await send(wrapLanguageModel({ model, middleware: compaction(LONG) }), messages);
  assert.deepEqual(messages, copy);
  assert.match(JSON.stringify(requests.at(-1)), /Keep to TOML/);
  assert.ok(JSON.stringify(requests.at(-1)).length < JSON.stringify(messages).length / 2);
});

test("`pruneMessages` forgets calls and throws the cache away, and we do neither", async () => {
  const pruned = new Recorder();
  const shortened = new Recorder();
  const middleware = compaction({ window: 20_000, count: "estimate" });
  const model = wrapLanguageModel({ model: shortened.model, middleware });
  for (let n = 1; n <= 16; n += 1) {
    const messages = histories.modelMessages(histories.reading(n));
    const toolCalls = "before-last-2-messages" as const;
    await send(pruned.model, pruneMessages({ messages, toolCalls }));
    await send(model, messages);
  }
  // The calls are gone, and nothing in the request says so.
  assert.doesNotMatch(JSON.stringify(pruned.requests.at(-1)), /#1|13\.rs/);
  assert.match(JSON.stringify(shortened.requests.at(-1)), /#1–\d+ Read.*13\.rs/);
  const [lost, kept] = [pruned.cachedShare(), shortened.cachedShare()];
  assert.ok(lost < 0.1 && kept > 0.5, `${lost}, ${kept}`);
});

test("an agent with tools, and its stream", async () => {
  const { model, requests } = new Recorder();
  const middleware = compaction(LONG);
  const properties = { path: { type: "string" as const } };
  const schema = jsonSchema<{ path: string }>({ type: "object", properties });
  const read = tool({
    inputSchema: schema,
    execute: ({ path }) => `${path}: a line of the file\n`.repeat(300),
  });
  const settings = {
    model: wrapLanguageModel({ model, middleware }),
    tools: { read, recall: middleware.recallTool() },
    stopWhen: isStepCount(6),
    maxOutputTokens: 100,
    maxRetries: 0,
  };
  let messages: ModelMessage[] = [{ role: "user", content: "Read all of it." }];
  for (let n = 0; n < 4; n += 1) {
    const { response } = await generateText({ ...settings, messages });
    messages = [...messages, ...response.messages, { role: "user", content: "Go on." }];
  }
  const { fullStream } = streamText({ ...settings, messages });
  const types = new Set<string>();
  for await (const part of fullStream) types.add(part.type);
  assert.ok(types.has("finish") && !types.has("error"), [...types].join());
  assert.ok(requests.every((request) => JSON.stringify(request).length < 60_000));
});

test("the model recalls what was removed from its own conversation", async () => {
  const middleware = compaction({ ...LONG, window: 8_000 });
  const { model, requests } = new Recorder();
  const messages = histories.modelMessages(histories.reading(12));
  await send(wrapLanguageModel({ model, middleware }), messages);
  assert.doesNotMatch(JSON.stringify(requests.at(-1)), /0\.rs: line 100/);
  const { execute } = middleware.recallTool();
  const options = { toolCallId: "r1", messages, context: {} };
  assert.match(String(await execute?.({ ref: "#1" }, options)), /0\.rs: line 100/);
  assert.match(String(await execute?.({ ref: "k1234567" }, options)), /nothing was removed/);
  const other = { ...options, messages: [{ role: "user" as const, content: "Another one." }] };
  assert.equal(await execute?.({ ref: "#1" }, other), "nothing was removed");
  // One that begins alike has its own calls.
  const alike = histories.modelMessages(histories.reading(1));
  assert.match(String(await execute?.({ ref: "#9" }, { ...options, messages: alike })), /no call #9/);
  assert.match(String(await execute?.({ ref: "#9" }, options)), /8\.rs: line 100/);
});

test("a refusal because of length is tried again once", async () => {
  const bodies: string[] = [];
  const answer = async (input: RequestInfo | globalThis.URL, init?: RequestInit) => {
    bodies.push(String(init?.body));
    if (bodies.length > 1) return fetch(input, init);
    const error = { type: "invalid_request_error", message: "prompt is too long: 9 > 8" };
    return Response.json({ type: "error", error }, { status: 400 });
  };
  const anthropic = createAnthropic({ apiKey: "none", baseURL: `${URL}/v1`, fetch: answer });
  const model = wrapLanguageModel({ model: anthropic("scripted"), middleware: compaction() });
  await send(model, histories.modelMessages(histories.reading(12)));
  assert.equal(bodies.length, 2);
  assert.ok(bodies[1]!.length < bodies[0]!.length);
});

test("a short prompt is the same object, and what the engine does not know stays", async () => {
  const { transformParams } = compaction({ ...LONG, window: 8_000 });
  const model = new Recorder().model;
  const run = async (prompt: any[]) => {
    const params = { prompt };
    const transformed = await transformParams!({ type: "generate", params, model });
    return { isSame: transformed === params, prompt: transformed.prompt as any[] };
  };
  const system = { role: "system", content: "You read." };
  const user = { role: "user", content: [{ type: "text", text: "Hello." }] };
  assert.deepEqual(await run([system, user]), { isSame: true, prompt: [system, user] });
  const approval = { type: "tool-approval-response", approvalId: "a1", approved: true };
  const call = { type: "tool-call", toolCallId: "s1", toolName: "search", input: {} };
  const search = { ...call, providerExecuted: true };
  const item = { openai: { itemId: "rs_1" } };
  const thought = { type: "reasoning", text: "Hm.", providerOptions: item };
  const own = { role: "assistant", content: [thought, search, { type: "text", text: "Found." }] };
  const answer = { role: "tool", content: [approval] };
  const options = { anthropic: { cacheControl: { type: "ephemeral" } } };
  const content = [{ type: "text", text: "Go on." }];
  const marked = { role: "user", content, providerOptions: options };
  const long = histories.modelMessages(histories.reading(12)).slice(1);
  const { isSame, prompt } = await run([system, user, ...long, own, answer, marked]);
  assert.equal(isSame, false);
  assert.equal(prompt[0], system);
  assert.deepEqual(prompt.slice(-3), [own, answer, marked]);
});

test("no random history is refused", async () => {
  const anthropic = createAnthropic({ apiKey: "none", baseURL: `${URL}/v1` });
  const openai = createOpenAI({ apiKey: "none", baseURL: `${URL}/v1` });
  const thinking = { type: "enabled", budgetTokens: 1_024 } as const;
  const services = [
    { model: anthropic("scripted"), provider: "anthropic", options: { anthropic: { thinking } } },
    { model: openai.chat("scripted"), provider: "openai", options: {} },
    { model: openai.responses("scripted"), provider: "openai", options: { openai: { store: false } } },
  ] as const;
  for (const seed of histories.seeds(100)) {
    const random = new histories.Random(seed);
    const [recipe, window] = [random.choose(RECIPES), random.choose(WINDOWS)];
    const middleware = compaction({ recipe, window, count: "estimate" });
    const { model, provider, options } = services[seed % services.length]!;
    const smaller = wrapLanguageModel({ model, middleware });
    for (const turns of histories.growing(random)) {
      const messages = histories.modelMessages(turns, provider);
      const isThinking = provider === "anthropic" && histories.alwaysReasons(turns);
      const providerOptions = isThinking || provider === "openai" ? options : {};
      await assert.doesNotReject(send(smaller, messages, providerOptions), `seed ${seed}`);
    }
  }
});
