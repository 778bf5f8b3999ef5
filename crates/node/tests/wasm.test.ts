// `Context` in WebAssembly: what the native module does, with an estimate of tokens.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { before } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import OpenAI from "openai";
import * as native from "@epitome-cli/context";
import { Context, EpitomeError, epitomeFetch, load } from "@epitome-cli/context/wasm";
import { compaction } from "@epitome-cli/context/wasm/ai-sdk";
import * as histories from "./histories.js";

const WASM = new URL(import.meta.resolve("@epitome-cli/context/epitome.wasm"));
const RECIPES = ["epitome", "clear-tool-uses", "s08", "ion", "pi", "gitclaw"];

before(() => load());

test("each random history has the same views as in the native module", async () => {
  let compactions = 0;
  for (const seed of histories.seeds(60)) {
    const random = new histories.Random(seed);
    const { api, messages } = random.choose(histories.FORMS);
    const recipe = random.choose(RECIPES);
    const window = random.choose([3_000, 8_000, 40_000]);
    const questions: [object[], object[]] = [[], []];
    const answer = random.next() < 0.5;
    const [own, other] = questions.map((asked, at) => {
      const summaries = (question: native.Question): string => {
        asked.push(question);
        if (!answer) throw new Error("no answer");
        return question.prompt.split("\n").filter((line) => line.startsWith("## ")).join("\nIt is.\n");
      };
      const options = { api, recipe, window, overhead: 500, summaries };
      return at === 0 ? new Context(options) : new native.Context({ ...options, count: "estimate" });
    }) as [Context, native.Context];
    for (const turns of histories.growing(random)) {
      const seen = await both(own, other, (context) => context.body(messages(turns)), seed);
      for (const name of Object.keys(own.refs)) {
        await both(own, other, (context) => context.recall(context.refs[name]!), seed);
      }
      if (random.next() < 0.3) await both(own, other, (it) => it.compact({ target: 0 }), seed);
      if (random.next() < 0.3) await both(own, other, (it) => it.undo(), seed);
      await both(own, other, (it) => it.view(), seed);
      if (random.next() < 0.2) {
        const why = `prompt is too long: ${window + 9} tokens > ${window} maximum`;
        await both(own, other, (it) => it.refused(400, why), seed);
      }
      await both(own, other, (it) => it.search("parser", { limit: 5 }), seed);
      const { report } = await both(own, other, (it) => it.usage(), seed);
      compactions += report.compactions;
      assert.ok(seen);
    }
    assert.deepEqual(questions[0], questions[1], `seed ${seed}`);
    assert.deepEqual(own.tool, other.tool);
    assert.equal(await own.isChanged(), await other.isChanged());
    await own.close();
  }
  assert.ok(compactions > 0);
});

/** What both contexts answer, which is the same, or the same error. */
async function both<T>(
  own: Context,
  other: native.Context,
  use: (context: Context) => Promise<T>,
  seed: number,
): Promise<T> {
  const failed = ({ kind, message, hints }: EpitomeError): object => ({ kind, message, hints });
  const [found, expected] = await Promise.all([
    use(own).catch(failed),
    use(other as unknown as Context).catch(failed),
  ]);
  assert.deepEqual(found, expected, `seed ${seed}`);
  assert.deepEqual(own.events, other.events, `seed ${seed}`);
  assert.deepEqual(own.refs, other.refs, `seed ${seed}`);
  return found as T;
}

test("a context is closed, and another one does not take its place", async () => {
  const first = new Context();
  const second = new Context();
  second.push({ role: "user", content: "Two." });
  await first.close();
  const third = new Context();
  third.push({ role: "user", content: "Three." });
  await assert.rejects(first.view(), { kind: "usage", message: "the engine is not running" });
  await first.close();
  const text = (view: native.Json[]): string => view[0]?.["content"][0].text;
  assert.deepEqual([text(await second.view()), text(await third.view())], ["Two.", "Three."]);
});

test("a recipe is a name or a text", async () => {
  const { tool } = new Context({ recipe: 'name = "mine"\nabout = "Nothing."\n[stages]\n' });
  assert.equal(tool["name"], "compact");
  assert.match(error(() => new Context({ recipe: "no\nrecipe" }))!.message, /^not a recipe: /);
  const recipe = error(() => new Context({ recipe: "no-such-recipe" }));
  assert.equal(recipe?.kind, "usage");
  assert.match(recipe?.hints[0] ?? "", /^there are: epitome/);
});

test("what is not there is refused", async () => {
  const options = [{ log: "folder" }, { count: "o200k" }, { api: "pigeon" }, { window: 0 }];
  for (const option of options) {
    assert.equal(error(() => new Context(option as object))?.kind, "usage", JSON.stringify(option));
  }
  assert.equal(error(() => epitomeFetch({ log: "folder" } as object))?.kind, "usage");
});

function error(work: () => unknown): EpitomeError | undefined {
  try {
    work();
    return undefined;
  } catch (err) {
    return err instanceof EpitomeError ? err : assert.fail(String(err));
  }
}

test("the client of OpenAI and the middleware work in WebAssembly", async () => {
  const bodies: string[] = [];
  const fetch = epitomeFetch({
    window: 12_000,
    fetch: async (input, init) => {
      bodies.push(String(init?.body));
      return globalThis.fetch(input, init);
    },
  });
  const client = new OpenAI({ maxRetries: 0, fetch });
  const messages = histories.chatMessages(histories.reading(12));
  await client.chat.completions.create({ model: "scripted", messages });
  assert.ok(bodies[0]!.length < JSON.stringify(messages).length / 2);
  assert.equal(compaction({ window: 12_000 }).specificationVersion, "v4");
});

test("the module is small, imports nothing, and nothing near it needs Node", async () => {
  const bytes = readFileSync(WASM);
  const sizes = [gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes).length];
  assert.ok(sizes.every((size) => size <= 3_000_000), `${bytes.length}: ${sizes}`);
  console.log(`epitome.wasm: ${bytes.length} bytes, gzip ${sizes[0]}, brotli ${sizes[1]}`);
  assert.deepEqual(WebAssembly.Module.imports(await WebAssembly.compile(bytes)), []);
  const files = reached(new URL("wasm.js", WASM));
  assert.ok(files.size >= 5);
  for (const [file, text] of files) assert.doesNotMatch(text, /"node:|\bBuffer\b/, file);
});

/** The files that a file of the package imports, and their texts. */
function reached(file: URL, found = new Map<string, string>()): Map<string, string> {
  if (found.has(file.href)) return found;
  const text = readFileSync(file, "utf8");
  found.set(file.href, text);
  for (const [, name] of text.matchAll(/from "(\.[^"]+)"/g)) reached(new URL(name!, file), found);
  return found;
}

test("a module, its bytes and a response with them are loaded", async () => {
  const bytes = readFileSync(WASM);
  const sources = [await WebAssembly.compile(bytes), bytes, new Response(bytes)];
  for (const [n, source] of sources.entries()) {
    // Each copy of the file is a module of its own, which is not loaded yet.
    const copy = new URL(`wasm.js?${n}`, WASM).href;
    const fresh = await import(copy) as typeof import("@epitome-cli/context/wasm");
    assert.equal(error(() => new fresh.Context())?.message, "the library is not loaded");
    await fresh.load(source as never);
    assert.deepEqual(await new fresh.Context().view([]), []);
  }
});
