/** A middleware for language models of the AI SDK (the package `ai`). */
import type { LanguageModelMiddleware, Tool } from "ai";
import type { ConversationOptions } from "./index.js";

/** A middleware that gives a language model a context that stays small. */
export type Compaction = LanguageModelMiddleware & {
  /**
   * A tool with which the model reads what was removed from its conversation, for the `tools` of a
   * call: `{ recall: middleware.recallTool() }`.
   */
  recallTool(): Tool<{ ref: string }, string>;
};

/**
 * A middleware for `wrapLanguageModel`. The window is that of the model.
 *
 * The messages of the program are not changed; only what the model gets is smaller, and messages
 * that are not edited are the same objects. If the service refuses a prompt as too long, it is
 * tried again once, smaller. Whatever fails in epitome is a warning of the process: the prompt is then
 * sent as it is. One middleware may be used for any number of conversations.
 *
 * @throws {EpitomeError} `usage` if an option is not valid.
 */
export function compaction(options?: ConversationOptions): Compaction;
