// Random conversations that every API accepts, in the forms of the APIs and of the AI SDK.
import type { ModelMessage } from "ai";

const SENTENCE = "the parser reads a line of the file and returns what it found before the end";
const WORDS = SENTENCE.split(" ");

type Input = Record<string, string>;
type Call = { id: string; name: string; input: Input; result: string; isFailed: boolean };
/** A message of the user, and what the model did until the next one. */
type Turn = { user: string; steps: { text: string; calls: Call[] }[]; end: string };

/** The numbers of the histories that are tested. The variables name more of them. */
export function seeds(usual: number): number[] {
  const first = Number(process.env["TEST_FIRST"] ?? 0);
  const count = Number(process.env["TEST_HISTORIES"] ?? usual);
  return Array.from({ length: count }, (_, n) => first + n);
}

/** Random numbers that a seed repeats (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed + 1;
  }

  /** A number from 0 to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  choose<T>(values: readonly T[]): T {
    return values[this.integer(0, values.length - 1)]!;
  }
}

function text(random: Random, most: number): string {
  const lines = Array.from({ length: random.integer(1, Math.max(1, most >> 3)) }, () => {
    const words = Array.from({ length: random.integer(1, 12) }, () => random.choose(WORDS));
    return [...words, random.integer(0, 9_999)].join(" ");
  });
  return lines.join("\n");
}

/** A conversation whose last turn has no end yet: the model is about to be called. */
export function conversation(random: Random): Turn[] {
  let calls = 0;
  const turns = Array.from({ length: random.integer(1, 5) }, () => {
    const steps = Array.from({ length: random.integer(0, 5) }, () => {
      const made = Array.from({ length: random.choose([1, 1, 1, 2, 3]) }, () => {
        calls += 1;
        return call(random, calls);
      });
      return { text: random.next() < 0.5 ? text(random, 16) : "", calls: made };
    });
    return { user: text(random, 24), steps, end: text(random, 40) };
  });
  turns.at(-1)!.end = "";
  return turns;
}

function call(random: Random, number: number): Call {
  const inputs = [
    { path: `src/${random.integer(0, 5)}.rs` },
    { path: "a.rs", content: text(random, 200) },
    { command: "cargo test" },
  ] as Input[];
  const input = random.choose(inputs);
  const name = "content" in input ? "Write" : random.choose(["Read", "Bash"]);
  // Each result is of another size; some are empty, some are long.
  const result = random.next() < 0.05 ? "" : text(random, random.choose([8, 80, 800]));
  return { id: `call_${number}`, name, input, result, isFailed: random.next() < 0.1 };
}

/** The same conversation at several moments, the last one whole. */
export function growing(random: Random): Turn[][] {
  const turns = conversation(random);
  const moments: Turn[][] = [];
  for (const n of new Set([random.integer(1, turns.length), turns.length])) {
    const last = turns[n - 1]!;
    const before = turns.slice(0, n - 1);
    if (random.next() < 0.5) {
      const steps = last.steps.slice(0, random.integer(0, last.steps.length));
      moments.push([...before, { user: last.user, steps, end: "" }]);
    }
    moments.push([...before, { user: last.user, steps: last.steps, end: "" }]);
  }
  return moments;
}

/** A conversation that reads files of some length. */
export function reading(files: number): Turn[] {
  const steps = Array.from({ length: files }, (_, n) => {
    const path = `${n}.rs`;
    const lines = Array.from({ length: 200 }, (_, line) => `${path}: line ${line} says ${line * n}\n`);
    const result = lines.join("");
    const call = { id: `c${n}`, name: "Read", input: { path }, result, isFailed: false };
    return { text: "", calls: [call] };
  });
  return [{ user: "Keep to TOML, and read all of it.", steps, end: "" }];
}

export function anthropicMessages(turns: Turn[]): any[] {
  return turns.flatMap(({ user, steps, end }) => [
    { role: "user", content: user },
    ...steps.flatMap(({ text, calls }) => [
      {
        role: "assistant",
        content: [
          ...(text === "" ? [] : [{ type: "text", text }]),
          ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
        ],
      },
      {
        role: "user",
        content: calls.map(({ id, result, isFailed }) => ({
          type: "tool_result",
          tool_use_id: id,
          content: result,
          ...(isFailed ? { is_error: true } : {}),
        })),
      },
    ]),
    ...(end === "" ? [] : [{ role: "assistant", content: end }]),
  ]);
}

export function chatMessages(turns: Turn[]): any[] {
  const messages = turns.flatMap(({ user, steps, end }) => [
    { role: "user", content: user },
    ...steps.flatMap(({ text, calls }) => [
      {
        role: "assistant",
        content: text === "" ? null : text,
        tool_calls: calls.map(({ id, name, input }) => (
          { id, type: "function", function: { name, arguments: JSON.stringify(input) } }
        )),
      },
      ...calls.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result })),
    ]),
    ...(end === "" ? [] : [{ role: "assistant", content: end }]),
  ]);
  return [{ role: "system", content: "You are a coding agent." }, ...messages];
}

export function responsesItems(turns: Turn[]): any[] {
  const response = (text: string): object[] => {
    const content = [{ type: "output_text", text, annotations: [] }];
    return text === "" ? [] : [{ type: "message", role: "assistant", content }];
  };
  return turns.flatMap(({ user, steps, end }) => [
    { role: "user", content: user },
    ...steps.flatMap(({ text, calls }) => [
      ...response(text),
      ...calls.map(({ id, name, input }) => (
        { type: "function_call", call_id: id, name, arguments: JSON.stringify(input) }
      )),
      ...calls.map(({ id, result }) => (
        { type: "function_call_output", call_id: id, output: result }
      )),
    ]),
    ...response(end),
  ]);
}

export function geminiContents(turns: Turn[]): any[] {
  const texts = (text: string): object[] => (text === "" ? [] : [{ text }]);
  return turns.flatMap(({ user, steps, end }) => [
    { role: "user", parts: [{ text: user }] },
    ...steps.flatMap(({ text, calls }) => [
      {
        role: "model",
        parts: [
          ...texts(text),
          ...calls.map(({ name, input }) => ({ functionCall: { name, args: input } })),
        ],
      },
      {
        role: "user",
        parts: calls.map(({ name, result, isFailed }) => (
          { functionResponse: { name, response: { [isFailed ? "error" : "output"]: result } } }
        )),
      },
    ]),
    ...(end === "" ? [] : [{ role: "model", parts: [{ text: end }] }]),
  ]);
}

/** Messages of the AI SDK. Results are texts, values, failures, or several texts. */
export function modelMessages(turns: Turn[]): ModelMessage[] {
  return turns.flatMap(({ user, steps, end }): ModelMessage[] => [
    { role: "user", content: user },
    ...steps.flatMap(({ text, calls }): ModelMessage[] => [
      {
        role: "assistant",
        content: [
          ...(text === "" ? [] : [{ type: "text" as const, text }]),
          ...calls.map(({ id, name, input }) => (
            { type: "tool-call" as const, toolCallId: id, toolName: name, input }
          )),
        ],
      },
      {
        role: "tool",
        content: calls.map((call) => (
          { type: "tool-result", toolCallId: call.id, toolName: call.name, output: output(call) }
        )),
      },
    ]),
    ...(end === "" ? [] : [{ role: "assistant" as const, content: end }]),
  ]);
}

function output({ result, isFailed }: Call): any {
  if (isFailed) return { type: "error-text", value: result };
  switch (result.length % 3) {
    case 0: return { type: "json", value: { lines: result.split("\n") } };
    case 1: return { type: "content", value: [{ type: "text", text: result }] };
    default: return { type: "text", value: result };
  }
}
