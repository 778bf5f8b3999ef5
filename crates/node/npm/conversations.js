// The contexts of the conversations that pass a client: each request has its whole list.
import { LISTS } from "./context.js";
import { check } from "./protocol.js";

/** How many conversations are remembered. One that was forgotten is compacted as a new one. */
const MOST = 128;
/** The blocks that may have a mark for a cache. Reasoning may not. */
const MARKED = ["text", "image", "document", "tool_use", "tool_result", "image_url"];
/** Where a request has its prompt. */
const PROMPTS = ["system", "instructions", "systemInstruction"];

/** The contexts of several conversations, which are told apart by how they begin. */
export class Conversations {
  #Context;
  #options;
  /** By how each begins, the one that was used last at the end. */
  #conversations = new Map();

  /** `options` are those of the class `Context`. Throws if one of them is not valid. */
  constructor(Context, options) {
    const names = ["recipe", "window", "log", "count", "summaries"];
    check(options, names.filter((name) => Context.OPTIONS.includes(name)));
    const { log, ...others } = options;
    new Context(others);
    this.#Context = Context;
    this.#options = { window: 200_000, ...options };
  }

  /** The conversation that a request continues, or a new one; none if it has no list. */
  find(api, body) {
    const messages = body[LISTS[api] ?? "messages"];
    if (!Array.isArray(messages) || messages.length === 0) return undefined;
    // Histories that another request refers to are not here.
    if (body.previous_response_id || body.conversation) return undefined;
    const prompt = PROMPTS.map((name) => body[name] ?? null);
    const key = sortedJson([api, prompt, beginningOf(messages)]);
    const conversation = this.#conversations.get(key) ?? this.#begin(api, body, prompt);
    this.#conversations.delete(key);
    this.#conversations.set(key, conversation);
    for (const oldest of this.#conversations.keys()) {
      if (this.#conversations.size <= MOST) break;
      this.#conversations.delete(oldest);
    }
    return conversation;
  }

  /** The newest conversation with this first message. */
  findBegunWith(message) {
    const beginning = sortedJson(message);
    const all = [...this.#conversations.values()];
    return all.reverse().find((conversation) => conversation.beginning === beginning);
  }

  #begin(api, body, prompt) {
    const { window } = this.#options;
    // Roughly four bytes are a token; prompt and tools are in no message.
    const overhead = JSON.stringify([prompt, body.tools ?? null]).length >> 2;
    const limited = Math.min(overhead, window >> 1);
    const context = new this.#Context({ ...this.#options, api, overhead: limited });
    const beginning = sortedJson(body[LISTS[api] ?? "messages"][0]);
    return { context, api, beginning, usage: undefined, list: undefined };
  }
}

/**
 * The messages that tell a conversation apart: prompts, which others may have as well, and the first
 * message that is none.
 */
function beginningOf(messages) {
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  return first < 0 ? messages : messages.slice(0, first + 1);
}

/**
 * The view of a conversation for a whole list, as the body of a request; `undefined` if the list is
 * sent as it is.
 */
export async function viewOf(conversation, messages) {
  const { context, usage } = conversation;
  conversation.usage = undefined;
  conversation.list = messages;
  // Both are requested before anything is awaited: another request must not come between them.
  const answers = [context.body(messages, usage), context.isChanged()];
  const [body, isChanged] = await Promise.allSettled(answers);
  if (body.status === "fulfilled") return isChanged.value ? body.value : undefined;
  if (conversation.list === messages) {
    conversation.list = undefined;
    conversation.calls = undefined;
  }
  throw body.reason;
}

/**
 * What to send in place of a whole list whose request was refused; `undefined` if that is of no use.
 */
export async function viewAfterRefusal(conversation, messages, status, text) {
  const { context, list } = conversation;
  conversation.list = messages;
  // Another conversation with the same beginning may have used the context since.
  const view = list === messages ? undefined : context.body(messages);
  const answers = [context.refused(status, text), view];
  const [smaller] = await Promise.all(answers);
  return smaller;
}

/** Reports why a request is sent as it is. */
export function warn(what, error) {
  const message = `${what}: ${error.message}`;
  const { process } = globalThis;
  if (typeof process?.emitWarning === "function") {
    process.emitWarning(message, "EpitomeWarning");
  } else {
    console.warn(`EpitomeWarning: ${message}`);
  }
}

/** JSON with sorted keys, without the marks for a cache, which move from request to request. */
export function sortedJson(value) {
  return JSON.stringify(value, (_, part) => {
    if (part === null || typeof part !== "object" || Array.isArray(part)) return part;
    const names = Object.keys(part).filter((name) => name !== "cache_control").sort();
    return Object.fromEntries(names.map((name) => [name, part[name]]));
  });
}

/** A request with the messages of a view. */
export function withView(body, view) {
  const merged = { ...body, ...view };
  if (body.instructions && view.instructions) {
    merged.instructions = `${body.instructions}\n\n${view.instructions}`;
  }
  const mark = lastMark(body.messages);
  const last = merged.messages?.at(-1);
  if (mark !== undefined && last !== undefined) {
    if (typeof last.content === "string" && last.content !== "") {
      last.content = [{ type: "text", text: last.content }];
    }
    const block = Array.isArray(last.content) ? last.content.at(-1) : undefined;
    if (MARKED.includes(block?.type)) block.cache_control = mark;
  }
  return merged;
}

/** The last mark for a cache in the messages of a request. */
function lastMark(messages) {
  const contents = Array.isArray(messages) ? messages.map((message) => message?.content) : [];
  const blocks = contents.filter(Array.isArray).flat();
  return blocks.findLast((block) => block?.cache_control != null)?.cache_control;
}

/** What a service counted, of any API, as the engine takes it. */
export function usageOf(reply) {
  const usage = reply?.usage;
  if (typeof usage?.prompt_tokens === "number") {
    return { input: usage.prompt_tokens, output: usage.completion_tokens ?? 0 };
  }
  if (typeof usage?.input_tokens !== "number") return undefined;
  const cached = (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0);
  return { input: usage.input_tokens + cached, output: usage.output_tokens ?? 0 };
}
