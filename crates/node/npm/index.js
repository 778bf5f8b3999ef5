// Keeps the context of AI agents small and valid, and gives every byte back. `index.d.ts` has the
// types and the documentation.
import { fetchWith } from "./fetch.js";
import { Context } from "./native.js";

export { Context };
export { EpitomeError } from "./protocol.js";
export {
  compact, inspect, losses, redact, render, restore, search, sessions, simulate,
} from "./sessions.js";

export const epitomeFetch = (options) => fetchWith(Context, options);
