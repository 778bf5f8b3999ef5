// Keeps the context of AI agents small and valid, and gives every byte back. `index.d.ts` has the
// types and the documentation.
export { Context } from "./context.js";
export { epitomeFetch } from "./fetch.js";
export { EpitomeError } from "./native.js";
export {
  compact, inspect, losses, redact, render, restore, search, sessions, simulate,
} from "./sessions.js";
