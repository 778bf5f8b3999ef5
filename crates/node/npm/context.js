// The context of an agent that is running.
import { copyMessages, Kept } from "./kept.js";
import { decode, encode, EpitomeError } from "./protocol.js";

/** Where the list of messages is in the body of a request. */
export const LISTS = { "openai-chat": "messages", "openai-responses": "input", "gemini-api": "contents" };

/** The operations after which the next view is the same. */
const READING = ["usage", "recall"];

/**
 * A context over an engine, which has `answer(line)`, `answerLater(line)` and `stop()`: the library
 * as a native module or as WebAssembly.
 */
export class EngineContext {
  #engine;
  #summaries;
  /** What is to be sent to the library, and what the service counted for it. */
  #messages = [];
  #usage;
  /** The last list and its view, if nothing was due then and nothing was requested since. */
  #kept;
  /** Counts the requests that may change the next view. */
  #changes = 0;
  /** Settled when the requests so far are answered. */
  #last = Promise.resolve();

  /** `start` returns an engine that has a recipe, a window, an API and an overhead. */
  constructor(start, options) {
    const { recipe = "epitome", window = 200_000, api = "anthropic", overhead = 0 } = options;
    const { log, session, summaries } = options;
    this.#engine = start({ recipe, window, api, overhead });
    this.#summaries = summaries;
    const hello = this.#ask({ op: "hello", summaries: summaries !== undefined });
    this.tool = hello.tool;
    this.api = hello.wire;
    this.log = undefined;
    this.events = [];
    this.refs = {};
    if (log !== undefined || session !== undefined) {
      this.log = this.#ask({ op: "reset", session: session ?? "session" }).log ?? undefined;
    }
  }

  push(messages, usage) {
    this.#messages = this.#messages.concat(messages);
    this.#usage = usage ?? this.#usage;
  }

  async view(messages, usage) {
    const body = await this.body(messages, usage);
    return body[LISTS[this.api] ?? "messages"];
  }

  async body(messages, usage) {
    if (messages !== undefined && this.#messages.length > 0) {
      throw new EpitomeError("`view` takes a whole list, or what was pushed, not both");
    }
    if (messages === undefined) {
      return this.#body(await this.#request(this.#takeMessages("call", usage)));
    }
    const kept = this.#kept;
    const { usage: counted } = this.#takeMessages("view", usage);
    const known = counted === undefined ? kept?.knownOf(messages) ?? 0 : 0;
    if (known > 0 && known === messages.length) return kept.body();
    return this.#view(messages, counted, known === 0 ? undefined : kept);
  }

  async step(messages, usage) {
    this.push(messages, usage);
    return (await this.#request(this.#takeMessages("step"))).changed;
  }

  async compact({ focus, target } = {}) {
    const answer = await this.#pushAndRequest({ op: "compact", focus, target });
    return answer.outcome ?? undefined;
  }

  async undo() {
    return (await this.#pushAndRequest({ op: "undo" })).undone;
  }

  async recall(ref) {
    const { said = [], text } = await this.#pushAndRequest({ op: "recall", ref });
    return [...said.map(({ response, text }) => `[${response}] ${text}`), text].join("\n\n");
  }

  async search(text, { limit = 100 } = {}) {
    return (await this.#pushAndRequest({ op: "recall", search: text, limit })).hits;
  }

  async usage() {
    return this.#pushAndRequest({ op: "usage" });
  }

  async isChanged() {
    const isUnchanged = this.#messages.length === 0;
    if (isUnchanged && this.#kept?.isChanged !== undefined) return this.#kept.isChanged;
    const changes = this.#changes;
    const { report } = await this.usage();
    const isShortened = Object.keys(this.refs).length > 0 || report.compactions > 0;
    const isChanged = isShortened || report.said !== report.sent;
    if (isUnchanged && changes === this.#changes && this.#kept) this.#kept.isChanged = isChanged;
    return isChanged;
  }

  async refused(status, body) {
    const answer = await this.#request({ op: "refused", status, body });
    const { recovery, because } = answer.refused;
    if (recovery === "final") {
      throw new EpitomeError("the request stays too long", { kind: "refused", hints: because });
    }
    return ["retry", "summarise"].includes(recovery) ? this.#body(answer) : undefined;
  }

  async open(log) {
    const state = await this.#request({ op: "open", log });
    this.log = state.log;
    return state;
  }

  async close() {
    await this.#last;
    this.#engine.stop();
  }

  /** The view of a whole list, of which `before` has the beginning. */
  async #view(messages, usage, before) {
    const known = before?.messages ?? [];
    const copies = copyMessages(messages.slice(known.length));
    const isWhole = known.length === 0 || copies === undefined;
    const request = isWhole
      ? { op: "view", messages, usage }
      : { op: "call", messages: copies, usage };
    const answering = this.#request(request);
    const changes = this.#changes;
    const answer = await answering;
    const body = this.#body(answer);
    const isDone = (answer.events ?? []).length === 0 && changes === this.#changes;
    if (copies === undefined || !isDone) return body;
    this.#kept = new Kept([...known, ...copies], body, LISTS[this.api] ?? "messages", before);
    return this.#kept.body();
  }

  /** Answers at once: for what is done before there are messages. */
  #ask(request) {
    return decode(this.#engine.answer(encode(request)));
  }

  /** A request with what was pushed. What is refused is not tried again. */
  #takeMessages(op, usage) {
    const request = { op, messages: this.#messages, usage: usage ?? this.#usage };
    this.#messages = [];
    this.#usage = undefined;
    return request;
  }

  /** Adds what was pushed, without a compaction that is due; then the request. */
  async #pushAndRequest(request) {
    if (this.#messages.length === 0) return this.#request(request);
    const push = this.#request(this.#takeMessages("push"));
    const [, answer] = await Promise.all([push, this.#request(request)]);
    return answer;
  }

  /** A request is encoded now and sent when those before it are answered. */
  async #request(request) {
    if (!READING.includes(request.op)) {
      this.#kept = undefined;
      this.#changes += 1;
    }
    const answer = this.#last.then(this.#converse.bind(this, encode(request)));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  /** Has questions answered until the answer of the request is there. */
  async #converse(line) {
    let answer = decode(await this.#engine.answerLater(line));
    while (answer.ask !== undefined) {
      const reply = await this.#reply(answer.ask);
      answer = decode(await this.#engine.answerLater(encode({ op: "answer", ...reply })));
    }
    this.events.push(...(answer.events ?? []));
    this.refs = answer.refs ?? this.refs;
    return answer;
  }

  /** The model's answer to a question. Without one the context stays as it is. */
  async #reply(question) {
    try {
      const reply = await this.#summaries(question);
      return typeof reply === "string" ? { text: reply } : reply;
    } catch (why) {
      return { failed: String(why?.message ?? why) };
    }
  }

  #body(answer) {
    const list = LISTS[this.api];
    if (list === undefined) return { messages: answer.messages ?? [] };
    return answer.body ?? { [list]: [] };
  }
}
