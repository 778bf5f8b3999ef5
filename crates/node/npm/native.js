// The library as a native module, and the context over it.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { EngineContext } from "./context.js";
import { check, decode, encode, EpitomeError } from "./protocol.js";

const { Engine, call } = load();

export { call };

/** The module: next to this file if it was built here, else in a package for this system. */
function load() {
  const require = createRequire(import.meta.url);
  const failures = [];
  for (const name of ["./epitome.node", ...packages()]) {
    try {
      return require(name);
    } catch (error) {
      failures.push(error);
    }
  }
  const system = `${process.platform} on ${process.arch}`;
  throw new EpitomeError(`the library cannot be loaded: is it built for ${system}?`, {
    kind: "usage",
    hints: [
      "the native module is an optional dependency: npm leaves it out with `--omit=optional`",
      "`@epitome-cli/context/wasm` has `Context` for every system, with an estimate of tokens",
      "`epitome engine` does the same on a pipe",
    ],
    // A module that is there and cannot be loaded says more than one that is not there.
    cause: failures.find(({ code }) => code !== "MODULE_NOT_FOUND") ?? failures.at(-1),
  });
}

/** The packages that may have the module. On Linux the C library decides which can be loaded. */
function packages() {
  const name = `@epitome-cli/context-${process.platform}-${process.arch}`;
  return process.platform === "linux" ? [`${name}-gnu`, `${name}-musl`] : [name];
}

export class Context extends EngineContext {
  /** The names of the options. */
  static OPTIONS = ["recipe", "window", "api", "overhead", "log", "session", "count", "summaries"];

  constructor(options = {}) {
    check(options, Context.OPTIONS);
    const { count, ...others } = options;
    const [recipe, log] = [pathOf(options.recipe), pathOf(options.log)];
    const engine = new Engine();
    const start = (request) => {
      decode(engine.start(encode({ ...request, log, count })));
      return engine;
    };
    super(start, { ...others, recipe, log });
  }

  open(log) {
    return super.open(pathOf(log));
  }
}

/** A path as a string: a path or a URL of a file. */
export function pathOf(path) {
  return path instanceof URL ? fileURLToPath(path) : path;
}
