/** Keeps the context of AI agents small and valid, and gives every byte back. */

/** The APIs whose messages a context takes and returns. */
export type Api = "anthropic" | "openai-chat" | "openai-responses" | "gemini-api";

/** How tokens are counted. An estimate is faster. */
export type Count = "o200k" | "estimate";

/** The tokens that a service counted for a response. */
export interface Usage {
  input: number;
  output?: number;
}

/** A question for the model that writes a summary. */
export interface Question {
  system: string;
  prompt: string;
  max_tokens: number;
}

/** An answer with what is known about it. A plain string is one that is complete. */
export interface Answer {
  text: string;
  stopped?: "end" | "length" | "call" | "refused";
  usage?: Usage;
}

/** A line that contains a text. */
export interface Hit {
  ref: string;
  line: number;
  text: string;
}

/** Something that happened: a compaction, a warning, a failure. */
export interface Event {
  event: string;
  [detail: string]: unknown;
}

/** The report of a command, as it is printed with `--json`. */
export type Json = Record<string, any>;

export interface ContextOptions {
  /** A recipe by name, or a file. `"epitome"` by default. */
  recipe?: string | URL;
  /** The context window of the model in tokens. 200,000 by default. */
  window?: number;
  /** The API whose messages are pushed and viewed. `"anthropic"` by default. */
  api?: Api;
  /** Tokens of every request in addition to the messages: prompt, tools. 0 by default. */
  overhead?: number;
  /** A folder in which every message is kept. Without one the log is in memory. */
  log?: string | URL;
  /** The name of this conversation in the folder of the logs. */
  session?: string;
  /** `"o200k"` by default. */
  count?: Count;
  /**
   * Asks a model a question and returns its answer. Without it, the old part of a full context
   * becomes a digest. It must not use the context that asks.
   */
  summaries?: (question: Question) => string | Answer | Promise<string | Answer>;
}

/**
 * A context that stays small: push what was said, send what `view` returns.
 *
 * A context belongs to one conversation. Methods that are called before the promise of another is
 * settled are carried out in the order of the calls. All promises reject with `EpitomeError`.
 * `Message` is the type of the messages that `view` returns, as the client of the API declares it.
 */
export class Context<Message extends object = Json> {
  /** @throws {EpitomeError} `usage` if an option is not valid. */
  constructor(options?: ContextOptions);

  /** The definition of the tool with which a model requests a compaction, for this API. */
  readonly tool: Json;
  /** The API whose messages are pushed and viewed. */
  readonly api: Api;
  /** The file of the log; `undefined` if it is in memory. */
  readonly log: string | undefined;
  /** What has happened, the oldest first. */
  readonly events: Event[];
  /** The reference of each call whose result is not sent in full, for `recall`. */
  readonly refs: Readonly<Record<string, string>>;

  /**
   * Adds messages that are new: of the user, of the model, results of tools.
   *
   * `usage` is what the service counted for the last response. The messages are read, and refused
   * if they are not valid, by the next other method.
   */
  push(messages: object | readonly object[], usage?: Usage): void;

  /**
   * The messages to send now. What is due is done first.
   *
   * With `messages`, the whole list of the conversation: what was said before is found again, and
   * where the list differs the context goes back to that place. As long as the list and the view
   * are the same, the messages are the same objects.
   */
  view(messages?: readonly object[], usage?: Usage): Promise<Message[]>;

  /**
   * As `view`, as a request without model, tools and settings: `{ model, ...await context.body() }`.
   * The type is that of no client, so that it fits all of them.
   */
  body(messages?: readonly object[], usage?: Usage): Promise<any>;

  /**
   * Adds messages that are new and does what is due, without spelling the view.
   *
   * Resolves to whether the view is another than that of the last call followed by these messages.
   * A program that keeps the list that it sends appends them to it as long as this is false, and
   * otherwise sends what `view` returns.
   */
  step(messages: object | readonly object[], usage?: Usage): Promise<boolean>;

  /**
   * Compacts now, and returns the outcome as a sentence.
   *
   * `focus` is what a summary pays attention to. Without a `target` in tokens a small context stays
   * as it is.
   */
  compact(options?: { focus?: string; target?: number }): Promise<string | undefined>;

  /** Takes the last compaction back. Resolves to whether there was one. */
  undo(): Promise<boolean>;

  /**
   * The text that a name stands for: a reference in a stub (`k7f3a9c2`), calls of a digest (`#4`,
   * `#4–6`), a response of the model (`@7`). Rejects with `not-found` if nothing has that name.
   */
  recall(ref: string): Promise<string>;

  /** The lines of the whole history that contain a text, in any case; 100 at most by default. */
  search(text: string, options?: { limit?: number }): Promise<Hit[]>;

  /** How full the window is, in tokens, and what was saved: `usage` and `report`. */
  usage(): Promise<{ usage: Json; report: Json }>;

  /** Whether anything is sent otherwise than it was said. */
  isChanged(): Promise<boolean>;

  /**
   * The body to send in place of a request that the service refused with this status and body;
   * `undefined` if the refusal is not about the length of the request. Rejects with `refused` if it
   * cannot be made shorter.
   */
  refused(status: number | undefined, body: string): Promise<any>;

  /** Resumes a log: how many messages it has, and which calls have no result yet. */
  open(log: string | URL): Promise<Json>;

  /** Ends the context when all calls so far are carried out: another one may open its log. */
  close(): Promise<void>;
}

/**
 * The options of contexts for any number of conversations, which are told apart by how they begin.
 */
export type ConversationOptions = Omit<ContextOptions, "api" | "overhead" | "session">;

export interface FetchOptions extends ConversationOptions {
  /** What sends the requests. `globalThis.fetch` by default. */
  fetch?: typeof globalThis.fetch;
}

/**
 * A `fetch` for the clients of Anthropic, OpenAI and Google that makes requests smaller whose
 * conversation is too long: `new Anthropic({ fetch: epitomeFetch() })`. The window is that of the
 * model.
 *
 * Short conversations, and requests that epitome does not understand, pass as they are, and so do
 * streams of responses. A refusal because of length is tried again once, smaller. Whatever fails in
 * epitome is a warning of the process: the request is then sent as it is. No header is kept.
 *
 * @throws {EpitomeError} `usage` if an option is not valid.
 */
export function epitomeFetch(options?: FetchOptions): typeof globalThis.fetch;

/** A session: a file, an id, or the beginning of an id. */
export type Session = string | URL;

export interface SessionOptions {
  /** The agent whose session it is, if the file does not show it. */
  agent?: string;
  /** `"o200k"` by default. */
  count?: Count;
}

export interface CompactOptions extends SessionOptions {
  recipe?: string;
  /** The size of the context to aim at, in tokens. */
  target?: number;
  /** Plans the compaction, and writes nothing. */
  dryRun?: boolean;
  /** Writes a copy to this file in place of the session. */
  out?: string | URL;
  /** Writes although a process has the session open. */
  force?: boolean;
}

export interface RestoreOptions {
  agent?: string;
  dryRun?: boolean;
  out?: string | URL;
  force?: boolean;
  /** Leaves out what the archive has lost, in place of an error. */
  partial?: boolean;
}

export interface SimulateOptions extends SessionOptions {
  recipes?: readonly string[];
  /**
   * Policies of your own, which come before the recipes in the report: programs that are started by
   * the shell, as `epitome simulate --policy-command` does.
   */
  commands?: readonly string[];
  /** The context window in tokens. */
  window?: number;
  /** Tokens of every request in addition to the messages. */
  overhead?: number;
  /** The size to which a forced compaction reduces the context: a share, from 0 to 1. */
  target?: number;
  /** The model whose prices are used. */
  model?: string;
}

export interface RenderOptions {
  agent?: string;
  /** `"markdown"` by default. */
  format?: "html" | "markdown" | "json" | "jsonl";
  detail?: "conversation" | "calls" | "steps" | "full";
  /** The session as a resume would send it, in place of the original. */
  asSent?: boolean;
  /** Whether secrets and personal data are replaced. True by default. */
  redact?: boolean;
}

/** Compacts a stored session in place, or plans that, or writes a copy. `restore` is its inverse. */
export function compact(session: Session, options?: CompactOptions): Promise<Json>;
/** Restores what the agent wrote, byte for byte. */
export function restore(session: Session, options?: RestoreOptions): Promise<Json>;
/** Where the bytes and tokens of a session go, and whether it is valid. */
export function inspect(session: Session, options?: SessionOptions): Promise<Json>;
/** What compactions removed from a session's context, and what of it was needed later. */
export function losses(session: Session, options?: SessionOptions): Promise<Json>;
/**
 * Searches all sessions of this machine; the best hits first, 20 at most by default. All words must
 * occur in one message; `"several words"`, `begin*`, `-word` and `role:` work as in the program.
 */
export function search(
  words: string,
  options?: { agent?: string; project?: string | URL; limit?: number },
): Promise<Json[]>;
/** The sessions of this machine, and what compacting each would save. */
export function sessions(
  options?: { agent?: string; project?: string | URL },
): Promise<Json[]>;
/** Replays sessions under recipes: what they keep of what was used later, and what they cost. */
export function simulate(
  sessions: Session | readonly Session[],
  options?: SimulateOptions,
): Promise<Json>;
/**
 * A text without secrets and personal data: each is replaced by `[REDACTED:rule-1]`. `find` are
 * `secrets`, `pii`, or rules by name; both kinds by default.
 */
export function redact(text: string, options?: { find?: readonly string[] }): Promise<string>;
/** A session with its sub-agents as one text, without secrets and personal data. */
export function render(session: Session, options?: RenderOptions): Promise<string>;

/** What went wrong. Programs compare `kind`, never the text. */
export class EpitomeError extends Error {
  /** For errors of a program's own, e.g. in tests. */
  constructor(
    message: string,
    about?: { kind?: string; hints?: string[]; causes?: string[]; cause?: unknown },
  );
  /** A word such as `not-found`, `usage`, `locked` or `refused`. */
  readonly kind: string;
  /** What to do about it. */
  readonly hints: readonly string[];
  /** The errors behind it, the nearest first. */
  readonly causes: readonly string[];
}
