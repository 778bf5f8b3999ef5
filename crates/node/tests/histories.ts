// Random conversations that every API accepts, in the forms of the APIs and of the AI SDK. They have
// texts, calls, pictures and reasoning. Reasoning must be signed by the scripted server: the variable
// `TEST_THOUGHTS` has texts with their signatures.
import { crc32, deflateSync } from "node:zlib";
import type { ModelMessage } from "ai";
import type { Api } from "@epitome-cli/context";

const SENTENCE = "the parser reads a line of the file and returns what it found before the end";
const WORDS = SENTENCE.split(" ");

type Input = Record<string, string>;
type Thought = { text: string; signature: string };
/** Pictures are PNGs in base64. */
type Call = {
  id: string; name: string; input: Input; result: string; isFailed: boolean; picture?: string;
};
type Step = { text: string; calls: Call[]; thought?: Thought };
/** A message of the user, and what the model did until the next one. */
export type Turn = { user: string; picture?: string; steps: Step[]; end: string; thought?: Thought };

const THOUGHTS: Thought[] = JSON.parse(process.env["TEST_THOUGHTS"] ?? "[]")
  .map(([text, signature]: [string, string]) => ({ text, signature }));

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

/** A white picture of any size. */
function picture(random: Random): string {
  const [width, height] = [random.integer(1, 2_000), random.integer(1, 1_000)];
  const chunk = (name: string, data: Buffer): Buffer => {
    const named = Buffer.concat([Buffer.from(name), data]);
    return Buffer.concat([uint32(data.length), named, uint32(crc32(named))]);
  };
  // One bit a pixel.
  const head = Buffer.concat([uint32(width), uint32(height), Buffer.from([1, 0, 0, 0, 0])]);
  const row = Buffer.concat([Buffer.alloc(1), Buffer.alloc(Math.ceil(width / 8), 0xff)]);
  const data = deflateSync(Buffer.concat(Array<Buffer>(height).fill(row)), { level: 1 });
  const chunks = [chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))];
  const mark = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  return Buffer.concat([mark, ...chunks]).toString("base64");
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A conversation whose last turn has no end yet: the model is about to be called. */
export function conversation(random: Random): Turn[] {
  let calls = 0;
  const thoughts = random.next() < 0.5 ? THOUGHTS : [];
  const often = random.choose([0.6, 1]);
  const withPictures = random.next() < 0.4;
  const thought = (share: number): { thought?: Thought } => (
    thoughts.length > 0 && random.next() < share ? { thought: random.choose(thoughts) } : {}
  );
  const shown = (share: number): { picture?: string } => (
    withPictures && random.next() < share ? { picture: picture(random) } : {}
  );
  const turns = Array.from({ length: random.integer(1, 5) }, (): Turn => {
    const steps = Array.from({ length: random.integer(0, 5) }, (_, n) => {
      const made = Array.from({ length: random.choose([1, 1, 1, 2, 3]) }, () => {
        calls += 1;
        const one = call(random, calls);
        // A result that failed has texts alone.
        return one.isFailed ? one : { ...one, ...shown(0.2) };
      });
      const said = random.next() < 0.5 ? text(random, 16) : "";
      // With reasoning, the first response of a turn has some.
      return { text: said, calls: made, ...thought(n === 0 ? 1 : often) };
    });
    return { user: text(random, 24), ...shown(0.3), steps, end: text(random, 40), ...thought(0.5) };
  });
  const { thought: _, ...last } = turns.at(-1)!;
  return [...turns.slice(0, -1), { ...last, end: "" }];
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
      moments.push([...before, { ...withoutEnd(last), steps }]);
    }
    moments.push([...before, withoutEnd(last)]);
  }
  return moments;
}

function withoutEnd({ thought: _, ...turn }: Turn): Turn {
  return { ...turn, end: "" };
}

/** Whether the model of a conversation reasons. */
export function reasons(turns: Turn[]): boolean {
  return turns.some(({ steps }) => steps.some(({ thought }) => thought !== undefined));
}

/** A conversation that reads files of some length in a folder. */
export function reading(files: number, folder = ""): Turn[] {
  const steps = Array.from({ length: files }, (_, n) => {
    const path = `${folder}${n}.rs`;
    const lines = Array.from({ length: 200 }, (_, line) => `${path}: line ${line} says ${line * n}\n`);
    const result = lines.join("");
    const call = { id: `c${n}`, name: "Read", input: { path }, result, isFailed: false };
    return { text: "", calls: [call] };
  });
  return [{ user: "Keep to TOML, and read all of it.", steps, end: "" }];
}

export function anthropicMessages(turns: Turn[]): any[] {
  const thinking = (thought?: Thought): object[] => (
    thought ? [{ type: "thinking", thinking: thought.text, signature: thought.signature }] : []
  );
  const image = (data: string): object => (
    { type: "image", source: { type: "base64", media_type: "image/png", data } }
  );
  const texts = (text: string): object[] => (text === "" ? [] : [{ type: "text", text }]);
  return turns.flatMap(({ user, picture, steps, end, thought }) => [
    { role: "user", content: picture ? [image(picture), ...texts(user)] : user },
    ...steps.flatMap(({ text, calls, thought }) => [
      {
        role: "assistant",
        content: [
          ...thinking(thought),
          ...texts(text),
          ...calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input })),
        ],
      },
      {
        role: "user",
        content: calls.map(({ id, result, isFailed, picture }) => ({
          type: "tool_result",
          tool_use_id: id,
          content: picture ? [...texts(result), image(picture)] : result,
          ...(isFailed ? { is_error: true } : {}),
        })),
      },
    ]),
    ...(end === ""
      ? []
      : [{ role: "assistant", content: thought ? [...thinking(thought), ...texts(end)] : end }]),
  ]);
}

export function chatMessages(turns: Turn[]): any[] {
  const reasoning = (thought?: Thought): object => (
    thought ? { reasoning_content: thought.text } : {}
  );
  const content = (text: string, picture?: string): unknown => (
    picture
      ? [{ type: "text", text }, { type: "image_url", image_url: { url: address(picture) } }]
      : text
  );
  const messages = turns.flatMap(({ user, picture, steps, end, thought }) => [
    { role: "user", content: content(user, picture) },
    ...steps.flatMap(({ text, calls, thought }) => [
      {
        role: "assistant",
        content: text === "" ? null : text,
        tool_calls: calls.map(({ id, name, input }) => (
          { id, type: "function", function: { name, arguments: JSON.stringify(input) } }
        )),
        ...reasoning(thought),
      },
      // Results have no pictures here.
      ...calls.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result })),
    ]),
    ...(end === "" ? [] : [{ role: "assistant", content: end, ...reasoning(thought) }]),
  ]);
  return [{ role: "system", content: "You are a coding agent." }, ...messages];
}

function address(picture: string): string {
  return `data:image/png;base64,${picture}`;
}

export function responsesItems(turns: Turn[]): any[] {
  let responses = 0;
  const message = (text: string): object[] => {
    const content = [{ type: "output_text", text, annotations: [] }];
    return text === "" ? [] : [{ type: "message", role: "assistant", content }];
  };
  // The ids of items that the scripted server sends after reasoning begin so: it refuses them where
  // the reasoning is missing.
  const reasoned = (thought: Thought | undefined, items: object[]): object[] => {
    if (thought === undefined) return items;
    responses += 1;
    const reasoning = {
      type: "reasoning",
      id: `rs_${responses}`,
      summary: [{ type: "summary_text", text: thought.text }],
      encrypted_content: thought.signature,
    };
    return [reasoning, ...items.map((item, n) => ({ ...item, id: `item_r_${responses}_${n}` }))];
  };
  const input = (text: string, picture?: string): unknown => {
    const texts = text === "" ? [] : [{ type: "input_text", text }];
    if (!picture) return text;
    return [...texts, { type: "input_image", detail: "auto", image_url: address(picture) }];
  };
  return turns.flatMap(({ user, picture, steps, end, thought }) => [
    { role: "user", content: input(user, picture) },
    ...steps.flatMap(({ text, calls, thought }) => [
      ...reasoned(thought, [
        ...message(text),
        ...calls.map(({ id, name, input }) => (
          { type: "function_call", call_id: id, name, arguments: JSON.stringify(input) }
        )),
      ]),
      ...calls.map(({ id, result, picture }) => (
        { type: "function_call_output", call_id: id, output: input(result, picture) }
      )),
    ]),
    ...(end === "" ? [] : reasoned(thought, message(end))),
  ]);
}

export function geminiContents(turns: Turn[]): any[] {
  const texts = (text: string): object[] => (text === "" ? [] : [{ text }]);
  const thoughts = (thought?: Thought): object[] => (
    thought ? [{ text: thought.text, thought: true }] : []
  );
  const inline = (picture?: string): object[] => (
    picture ? [{ inlineData: { mimeType: "image/png", data: picture } }] : []
  );
  return turns.flatMap(({ user, picture, steps, end, thought }) => {
    let signature: string | undefined;
    return [
      { role: "user", parts: [{ text: user }, ...inline(picture)] },
      ...steps.flatMap(({ text, calls, thought }) => {
        // The first call of a response is signed.
        signature = thought?.signature ?? signature;
        const signed = signature ? { thoughtSignature: signature } : {};
        const made = calls.map(({ name, input }, n) => (
          { functionCall: { name, args: input }, ...(n === 0 ? signed : {}) }
        ));
        const results = calls.map(({ name, result, isFailed }) => (
          { functionResponse: { name, response: { [isFailed ? "error" : "output"]: result } } }
        ));
        const shown = calls.flatMap(({ picture }) => inline(picture));
        return [
          { role: "model", parts: [...thoughts(thought), ...texts(text), ...made] },
          { role: "user", parts: [...results, ...shown] },
        ];
      }),
      ...(end === "" ? [] : [{ role: "model", parts: [...thoughts(thought), { text: end }] }]),
    ];
  });
}

export type Form = {
  api: Api;
  messages: (turns: Turn[]) => any[];
  /** Where the list is in the body of a request. */
  name: string;
  path: (turns: Turn[]) => string;
};

/** The APIs. Models of Gemini's third generation want the signatures of calls. */
export const FORMS: Form[] = [
  {
    api: "anthropic", messages: anthropicMessages, name: "messages", path: () => "/v1/messages",
  },
  {
    api: "openai-chat", messages: chatMessages, name: "messages",
    path: () => "/v1/chat/completions",
  },
  {
    api: "openai-responses", messages: responsesItems, name: "input", path: () => "/v1/responses",
  },
  {
    api: "gemini-api", messages: geminiContents, name: "contents",
    path: (turns) => (
      `/v1beta/models/${reasons(turns) ? "gemini-3" : "scripted"}:generateContent`
    ),
  },
];

/**
 * Whether each response with calls reasons. In thinking mode Anthropic refuses a loop of calls that
 * begins without reasoning. Where not every response reasons, a digest may end in the middle of a
 * turn with none left (SHORTCOMINGS.md says so): such a conversation is sent without that mode.
 */
export function alwaysReasons(turns: Turn[]): boolean {
  const steps = turns.flatMap(({ steps }) => steps);
  return steps.length > 0 && steps.every(({ thought }) => thought !== undefined);
}

/** What a request with this conversation has in addition to its messages and the model. */
export function settings(api: Api, turns: Turn[]): object {
  if (api !== "anthropic" || !alwaysReasons(turns)) return { max_tokens: 9 };
  return { max_tokens: 9_000, thinking: { type: "enabled", budget_tokens: 1_024 } };
}

/**
 * Messages of the AI SDK. Results are texts, values, failures, or texts with a picture. Reasoning is
 * that of a provider.
 */
export function modelMessages(
  turns: Turn[],
  provider: "anthropic" | "openai" = "anthropic",
): ModelMessage[] {
  let responses = 0;
  const reasoning = (thought?: Thought): any[] => {
    if (thought === undefined) return [];
    responses += 1;
    const { text, signature } = thought;
    const providerOptions = provider === "anthropic"
      ? { anthropic: { signature } }
      : { openai: { itemId: `rs_${responses}`, reasoningEncryptedContent: signature } };
    return [{ type: "reasoning", text, providerOptions }];
  };
  const content = (text: string, picture?: string): any => (
    picture ? [{ type: "text", text }, file(picture)] : text
  );
  return turns.flatMap(({ user, picture, steps, end, thought }): ModelMessage[] => [
    { role: "user", content: content(user, picture) },
    ...steps.flatMap(({ text, calls, thought }): ModelMessage[] => [
      {
        role: "assistant",
        content: [
          ...reasoning(thought),
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
    ...(end === ""
      ? []
      : [{ role: "assistant" as const, content: [...reasoning(thought), { type: "text", text: end }] }]),
  ]);
}

function file(picture: string): any {
  return { type: "file", mediaType: "image/png", data: { type: "data", data: picture } };
}

function output({ result, isFailed, picture }: Call): any {
  if (isFailed) return { type: "error-text", value: result };
  const texts = result === "" ? [] : [{ type: "text", text: result }];
  if (picture) return { type: "content", value: [...texts, file(picture)] };
  switch (result.length % 3) {
    case 0: return { type: "json", value: { lines: result.split("\n") } };
    case 1: return { type: "content", value: texts };
    default: return { type: "text", value: result };
  }
}
