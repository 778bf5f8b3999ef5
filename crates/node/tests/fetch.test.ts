// `epitomeFetch`, with the providers' own clients and a server that refuses what they refuse.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { epitomeFetch } from "@epitome-cli/context";
import * as histories from "./histories.js";

const URL = process.env["ANTHROPIC_BASE_URL"]!;
const RECIPES = ["epitome", "clear-tool-uses", "s08", "ion"];
const WINDOWS = [3_000, 8_000, 40_000];
const LONG = { window: 12_000, count: "estimate" } as const;

/** Sends requests, and keeps the body of each. */
class Recorder {
  readonly bodies: string[] = [];

  fetch: typeof fetch = async (input, init) => {
    this.bodies.push(String(init?.body));
    return fetch(input, init);
  };
}

/** A service that answers requests one after the other, and keeps their bodies. */
class Answers extends Recorder {
  constructor(readonly answers: Response[]) {
    super();
  }

  override fetch: typeof fetch = async (_, init) => {
    this.bodies.push(String(init?.body));
    return this.answers.shift() ?? assert.fail("there is no answer");
  };
}

test("without us a trimmed history is refused, and with us it is not", async () => {
  const messages = histories.anthropicMessages(histories.reading(12));
  const parameters = { model: "scripted", max_tokens: 100 };
  const client = new Anthropic({ apiKey: "none", maxRetries: 0 });
  // The last messages alone: a result without its call, and the request of the user is gone.
  const trimmed = client.messages.create({ ...parameters, messages: messages.slice(-5) });
  await assert.rejects(trimmed, { status: 400 });
  const recorder = new Recorder();
  const fetch = epitomeFetch({ fetch: recorder.fetch, ...LONG });
  const smaller = new Anthropic({ apiKey: "none", maxRetries: 0, fetch });
  await smaller.messages.create({ ...parameters, messages });
  assert.ok(recorder.bodies[0]!.length < JSON.stringify(messages).length / 2);
  assert.ok(recorder.bodies[0]!.includes("Keep to TOML"));
});

test("the client of Anthropic, with a cache and a stream", async () => {
  const recorder = new Recorder();
  const fetch = epitomeFetch({ fetch: recorder.fetch, ...LONG });
  const client = new Anthropic({ apiKey: "none", maxRetries: 0, fetch });
  for (let n = 1; n <= 12; n += 1) {
    const messages = histories.anthropicMessages(histories.reading(n));
    messages.at(-1).content.at(-1).cache_control = { type: "ephemeral" };
    await client.messages.create({ model: "scripted", max_tokens: 100, messages });
    await client.messages.stream({ model: "scripted", max_tokens: 9, messages }).finalMessage();
    const sent = JSON.parse(recorder.bodies.at(-1)!).messages.at(-1).content.at(-1);
    assert.deepEqual(sent.cache_control, { type: "ephemeral" });
  }
  assert.ok(Math.max(...recorder.bodies.map(({ length }) => length)) < 60_000);
});

test("the client of OpenAI", async () => {
  const recorder = new Recorder();
  const fetch = epitomeFetch({ fetch: recorder.fetch, ...LONG });
  const client = new OpenAI({ apiKey: "none", baseURL: `${URL}/v1`, maxRetries: 0, fetch });
  const turns = histories.reading(12);
  const messages = histories.chatMessages(turns);
  await client.chat.completions.create({ model: "scripted", messages });
  await client.responses.create({ model: "scripted", input: histories.responsesItems(turns) });
  assert.ok(recorder.bodies.every(({ length }) => length < 60_000));
});

test("a request that is short or unknown passes unchanged", async () => {
  const bodies = [
    '{"messages": [ {"role":"user","content":"Hello."} ], "x": 1.50}',
    '{"messages": [{"role":"carrier","content":"Hello."}]}',
    '{"input": "Hello."}',
    "no JSON",
  ];
  const service = new Answers(Array.from({ length: 5 }, () => Response.json({})));
  const send = epitomeFetch({ fetch: service.fetch });
  for (const body of bodies) await send("http://model/v1/messages", { method: "POST", body });
  await send("http://model/v1/models");
  assert.deepEqual(service.bodies, [...bodies, "undefined"]);
});

test("a refusal because of length is tried again once, and any other passes", async () => {
  const body = JSON.stringify({ messages: histories.anthropicMessages(histories.reading(12)) });
  const refusal = (message: string): Response => {
    const error = { type: "invalid_request_error", message };
    return Response.json({ type: "error", error }, { status: 400 });
  };
  const tooLong = refusal("prompt is too long: 9 > 8");
  const service = new Answers([tooLong, Response.json({}), refusal("max_tokens: is missing")]);
  const send = epitomeFetch({ fetch: service.fetch });
  const request = { method: "POST", body };
  assert.equal((await send("http://model/v1/messages", request)).status, 200);
  assert.ok(service.bodies[1]!.length < service.bodies[0]!.length);
  const other = await send("http://model/v1/messages", request);
  assert.equal(other.status, 400);
  assert.match(await other.text(), /max_tokens: is missing/);
  assert.equal(service.bodies.length, 3);
});

test("another conversation that begins alike is not sent after a refusal", async () => {
  const request = (folder: string): RequestInit => {
    const messages = histories.anthropicMessages(histories.reading(12, folder));
    return { method: "POST", body: JSON.stringify({ messages }) };
  };
  const bodies: string[] = [];
  const send = epitomeFetch({
    fetch: async (_, init) => {
      bodies.push(String(init?.body));
      if (bodies.length > 1) return Response.json({});
      // The other one is sent before the refusal of this one is here.
      await send("http://model/v1/messages", request("b/"));
      const error = { type: "invalid_request_error", message: "prompt is too long: 9 > 8" };
      return Response.json({ type: "error", error }, { status: 400 });
    },
  });
  await send("http://model/v1/messages", request("a/"));
  const [first, other, again] = bodies as [string, string, string];
  assert.match(other, /b\/11\.rs/);
  assert.match(again, /a\/11\.rs/);
  assert.doesNotMatch(again, /b\/11\.rs/);
  assert.ok(again.length < first.length);
});

test("a `Request` is shortened, and a stream is the stream of the service", async () => {
  const body = JSON.stringify({ messages: histories.anthropicMessages(histories.reading(12)) });
  const headers = { "content-type": "text/event-stream" };
  const stream = new Response("data: {}\n\n", { headers });
  const service = new Answers([stream]);
  const send = epitomeFetch({ fetch: service.fetch, ...LONG });
  const answer = await send(new Request("http://model/v1/messages", { method: "POST", body }));
  assert.equal(answer, stream);
  assert.ok(service.bodies[0]!.length < body.length / 2);
});

test("keys are not stored", async () => {
  const log = mkdtempSync(join(tmpdir(), "epitome-"));
  const client = new Anthropic({ apiKey: "sk-ant-not-to-be-stored", fetch: epitomeFetch({ log }) });
  const messages = histories.anthropicMessages(histories.reading(3));
  await client.messages.create({ model: "scripted", max_tokens: 100, messages });
  const files = readdirSync(log).map((name) => readFileSync(join(log, name), "utf8"));
  assert.ok(files.some((text) => text.includes("Keep to TOML")));
  assert.ok(files.every((text) => !text.includes("not-to-be-stored")));
  rmSync(log, { recursive: true });
});

test("an option that is not known is an error", () => {
  assert.throws(() => epitomeFetch({ windows: 9 } as object), { kind: "usage" });
  assert.throws(() => epitomeFetch({ recipe: "no-such-recipe" }), { kind: "usage" });
});

test("no random history is refused", async () => {
  for (const { api, messages, name, path } of histories.FORMS) {
    for (const seed of histories.seeds(100)) {
      const random = new histories.Random(seed);
      const [recipe, window] = [random.choose(RECIPES), random.choose(WINDOWS)];
      const send = epitomeFetch({ recipe, window, count: "estimate" });
      for (const turns of histories.growing(random)) {
        const settings = histories.settings(api, turns);
        const body = JSON.stringify({ model: "scripted", [name]: messages(turns), ...settings });
        const headers = { "content-type": "application/json" };
        const answer = await send(URL + path(turns), { method: "POST", headers, body });
        assert.equal(answer.status, 200, `${api}, seed ${seed}: ${await answer.text()}`);
      }
    }
  }
});
