/** The middleware for the AI SDK in WebAssembly. */
import type { Compaction } from "./ai-sdk.js";
import type { ConversationOptions } from "./wasm.js";

export type { Compaction } from "./ai-sdk.js";

/** As `compaction` of the native module. The library must be loaded before. */
export function compaction(options?: ConversationOptions): Compaction;
