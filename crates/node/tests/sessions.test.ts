// The functions on stored sessions, in a home of their own: they return what the program prints.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";
import * as epitome from "@epitome-cli/context";

const ID = "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5";
const PROGRAM = process.env["TEST_PROGRAM"]!;
const RECORDED = join(process.env["TEST_SESSIONS"]!, "pi/pricing.jsonl");

let home: string;
let session: string;
const original = readFileSync(RECORDED);

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith("XDG_") || name.startsWith("EPITOME_")) delete process.env[name];
  }
  home = mkdtempSync(join(tmpdir(), "epitome-"));
  process.env["HOME"] = home;
  assert.equal(homedir(), home);
  const place = join(home, ".pi/agent/sessions/--work--");
  mkdirSync(place, { recursive: true });
  session = join(place, `2026-11-21T01-33-00-000Z_${ID}.jsonl`);
  copyFileSync(RECORDED, session);
});

afterEach(() => rmSync(home, { recursive: true }));

/** What the program prints. */
function printed(...args: string[]): string {
  return execFileSync(PROGRAM, args, { encoding: "utf8" });
}

function json(...args: string[]): unknown {
  return JSON.parse(printed(...args, "--json"));
}

/** What the program prints as one value a line. */
function jsonLines(...args: string[]): unknown {
  const lines = printed(...args, "--json").trim().split("\n");
  return lines.map((line) => JSON.parse(line));
}

test("a session is compacted and restored", async () => {
  const plan = await epitome.compact(session, { recipe: "epitome", dryRun: true });
  assert.deepEqual(plan, json("compact", session, "--recipe", "epitome", "--dry-run"));
  assert.deepEqual(readFileSync(session), original);
  const report = await epitome.compact(pathToFileURL(session), { recipe: "epitome" });
  assert.deepEqual(report["context_tokens"], plan["context_tokens"]);
  assert.notDeepEqual(readFileSync(session), original);
  assert.deepEqual(await epitome.losses(session), json("losses", session));
  assert.deepEqual(await epitome.inspect(ID), json("inspect", session));
  const back = await epitome.restore(session, { dryRun: true });
  assert.deepEqual(back, json("restore", session, "--dry-run"));
  await epitome.restore(session);
  assert.deepEqual(readFileSync(session), original);
});

test("a copy is written", async () => {
  const out = join(home, "small.jsonl");
  await epitome.compact(session, { out, target: 1_000, count: "estimate" });
  assert.ok(readFileSync(out).length < original.length);
  assert.deepEqual(readFileSync(session), original);
  const back = join(home, "back.jsonl");
  await epitome.compact(session);
  await epitome.restore(session, { out: pathToFileURL(back) });
  assert.deepEqual(readFileSync(back), original);
});

test("sessions are listed, inspected, searched and simulated", async () => {
  assert.deepEqual(await epitome.sessions(), jsonLines("list"));
  assert.deepEqual(await epitome.sessions({ agent: "claude" }), []);
  const estimate = await epitome.inspect(ID.slice(0, 13), { count: "estimate" });
  assert.deepEqual(estimate, json("inspect", session, "--count", "estimate"));
  const hits = await epitome.search("Hungary", { limit: 3 });
  assert.deepEqual(hits, jsonLines("search", "Hungary", "--limit", "3"));
  assert.deepEqual(hits.map(({ agent }) => agent), hits.map(() => "pi"));
  assert.ok(hits.length > 0);
  const simulation = await epitome.simulate(session, { recipes: ["s06"], count: "estimate" });
  const recipes: { recipe: string }[] = simulation["recipes"];
  assert.deepEqual(recipes.map(({ recipe }) => recipe), ["none", "s06"]);
  const command = `"${PROGRAM}" engine --no-log --recipe clear-tool-uses`;
  const options = { recipes: ["s06"], commands: [command] };
  const line = ["simulate", session, "--recipe", "s06", "--policy-command", command];
  assert.deepEqual(await epitome.simulate(session, options), json(...line));
  const failed = epitome.simulate(session, { commands: ["exit 3"], count: "estimate" });
  await assert.rejects(failed, { kind: "usage" });
});

test("pages are rendered without secrets", async () => {
  const page = await epitome.render(session, { detail: "conversation" });
  const out = join(home, "pages");
  printed("render", session, "--format", "markdown", "--detail", "conversation", "--out", out);
  assert.equal(page, readFileSync(join(out, `pi-${ID}.md`), "utf8"));
  assert.match(await epitome.render(session, { format: "html" }), /^<!/);
  assert.equal(
    await epitome.redact("DB_PASSWORD=tr0ub4dor-and-3"),
    "DB_PASSWORD=[REDACTED:password-assignment-1]",
  );
  const address = "ada@example.org";
  assert.equal(await epitome.redact(address, { find: ["secrets"] }), address);
});

test("what is not there is an error", async () => {
  await assert.rejects(epitome.inspect("no-such-session"), {
    name: "EpitomeError",
    kind: "not-found",
    message: "no session is called `no-such-session`",
    hints: ["`sessions()` lists them; a path works too"],
    causes: [],
  });
  const recipe = epitome.compact(session, { recipe: "no-such-recipe" });
  await assert.rejects(recipe, { kind: "usage" });
  const option = epitome.compact(session, { dry_run: true } as object);
  await assert.rejects(option, { message: "no option is called `dry_run`" });
  await assert.rejects(epitome.inspect(session, { count: "o100k" as "o200k" }), { kind: "usage" });
});

test("an option that means nothing is an error that names it", async () => {
  const number = "a whole number of at least 0";
  const cases: [() => Promise<unknown>, string][] = [
    [() => epitome.simulate([], { target: 7 }),
      "`target`: invalid value: 7, expected a share of the context from 0 to 1"],
    [() => epitome.simulate([], { window: 0 }),
      "`window`: invalid value: 0, expected at least 1 token"],
    [() => epitome.inspect(session, { count: "zzz" as "o200k" }),
      "`count`: unknown value `zzz`, expected `o200k` or `estimate`"],
    [() => epitome.compact(session, { target: -5 }),
      `\`target\`: invalid value: integer \`-5\`, expected ${number}`],
    [() => epitome.compact(session, { dryRun: "x" as unknown as boolean }),
      '`dryRun`: invalid type: string "x", expected true or false'],
    [() => epitome.sessions({ agent: "zzz" }), "`agent`: no agent is called `zzz`"],
  ];
  for (const [work, message] of cases) {
    await assert.rejects(work(), { kind: "usage", message });
  }
});
