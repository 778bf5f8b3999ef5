/**
 * Keeps the context of AI agents small and valid, in WebAssembly: for browsers, and for workers
 * without native code. Tokens are estimated, logs are in memory, and there are no stored sessions.
 */
import type * as native from "./index.js";

export { EpitomeError } from "./index.js";
export type { Answer, Api, Event, Hit, Json, Question, Usage } from "./index.js";

/** What `load` takes: a module, its bytes, or a response with them. */
export type Source = WebAssembly.Module | ArrayBuffer | ArrayBufferView<ArrayBuffer> | Response;

/**
 * Loads the library. It must be awaited once before the first context is made; later calls do
 * nothing.
 *
 * Without `source` it is the file `epitome.wasm` next to this one, which is fetched. Where a module
 * must be imported, as in workers of Cloudflare, it is the module
 * `@epitome-cli/context/epitome.wasm`.
 */
export function load(source?: Source | PromiseLike<Source>): Promise<void>;

export interface ContextOptions
  extends Omit<native.ContextOptions, "recipe" | "log" | "count"> {
  /** The name of a built-in recipe, or the text of a recipe. `"epitome"` by default. */
  recipe?: string;
  /** Tokens are always estimated. */
  count?: "estimate";
}

/**
 * A context that stays small, as that of the native module: see there. What is requested is done on
 * the thread of the caller: a page with long conversations has it in a `Worker`.
 */
export interface Context<Message extends object = native.Json>
  extends Omit<native.Context<Message>, "log" | "open"> {}

export const Context: {
  /** @throws {EpitomeError} `usage` if an option is not valid, or the library is not loaded. */
  new <Message extends object = native.Json>(options?: ContextOptions): Context<Message>;
};

/** The options of contexts for any number of conversations. */
export type ConversationOptions = Omit<ContextOptions, "api" | "overhead" | "session">;

export interface FetchOptions extends ConversationOptions {
  /** What sends the requests. `globalThis.fetch` by default. */
  fetch?: typeof globalThis.fetch;
}

/** As `epitomeFetch` of the native module. The library must be loaded before. */
export function epitomeFetch(options?: FetchOptions): typeof globalThis.fetch;
