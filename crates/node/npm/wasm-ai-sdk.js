// A middleware for language models of the AI SDK, over WebAssembly.
import { middleware } from "./middleware.js";
import { Context } from "./wasm.js";

export const compaction = (options) => middleware(Context, options);
