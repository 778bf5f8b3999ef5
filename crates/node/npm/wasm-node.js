// `wasm.js` for Node, whose `fetch` reads no files.
import { readFile } from "node:fs/promises";
import { load as loadFrom } from "./wasm.js";

export { Context, EpitomeError, epitomeFetch } from "./wasm.js";

export const load = (source) => (
  loadFrom(source ?? readFile(new URL("./epitome.wasm", import.meta.url)))
);
