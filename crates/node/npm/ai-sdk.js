// A middleware for language models of the AI SDK, over the native module.
import { middleware } from "./middleware.js";
import { Context } from "./native.js";

export const compaction = (options) => middleware(Context, options);
