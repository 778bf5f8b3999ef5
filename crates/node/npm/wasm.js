// The library as WebAssembly, and the context over it: for browsers, and for workers without native
// code.
import { EngineContext } from "./context.js";
import { fetchWith } from "./fetch.js";
import { check, decode, encode, EpitomeError } from "./protocol.js";

export { EpitomeError };

/** The number of no engine. */
const STOPPED = 0xffff_ffff;

/** The library that new contexts use. */
let library;

export async function load(source) {
  if (library !== undefined && !library.isBroken) return;
  const found = await (source ?? fetch(new URL("./epitome.wasm", import.meta.url)));
  library = new Library(await WebAssembly.instantiate(await compile(found)));
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (!(source instanceof Response)) return WebAssembly.compile(source);
  if (!source.ok) {
    throw new EpitomeError(`epitome.wasm cannot be loaded: ${source.status} from ${source.url}`);
  }
  return WebAssembly.compile(await source.arrayBuffer());
}

/** An instance of the module `epitome.wasm`, which has any number of engines. */
class Library {
  #exports;
  /** Whether a call has ended in a trap. What is in the memory is not to be used then. */
  isBroken = false;

  constructor({ exports }) {
    this.#exports = exports;
  }

  start(options) {
    return this.#call("start", options);
  }

  answer(engine, line) {
    return this.#call("answer", line, engine);
  }

  stop(engine) {
    if (!this.isBroken) this.#exports.stop(engine);
  }

  /** The answer of a function to a request. */
  #call(name, request, ...args) {
    if (this.isBroken) throw brokenError();
    const { memory, input, output, [name]: work } = this.#exports;
    try {
      const bytes = new TextEncoder().encode(request);
      const place = input(bytes.length) >>> 0;
      new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
      const length = work(...args) >>> 0;
      const answer = new Uint8Array(memory.buffer, output() >>> 0, length);
      return new TextDecoder().decode(answer);
    } catch (cause) {
      this.isBroken = true;
      throw brokenError(cause);
    }
  }
}

function brokenError(cause) {
  const hints = ["all contexts are lost: `await load()`, and begin new ones", "please report this"];
  return new EpitomeError("a bug in epitome, or there is not enough memory", {
    kind: "bug",
    hints,
    cause,
  });
}

/** Frees the engines of contexts that are not used any more. */
const unused = new FinalizationRegistry(({ library, number }) => library.stop(number));

class Engine {
  #library;
  #number;

  constructor(options) {
    if (library === undefined) {
      throw new EpitomeError("the library is not loaded", { hints: ["`await load()` once before"] });
    }
    this.#library = library;
    this.#number = decode(library.start(encode(options))).engine;
    unused.register(this, { library, number: this.#number }, this);
  }

  answer(line) {
    return this.#library.answer(this.#number, line);
  }

  async answerLater(line) {
    return this.answer(line);
  }

  stop() {
    unused.unregister(this);
    this.#library.stop(this.#number);
    this.#number = STOPPED;
  }
}

export class Context extends EngineContext {
  /** The names of the options. */
  static OPTIONS = ["recipe", "window", "api", "overhead", "session", "count", "summaries"];

  constructor(options = {}) {
    check(options, Context.OPTIONS);
    const { count = "estimate" } = options;
    if (count !== "estimate") {
      const hints = ["there is: estimate"];
      throw new EpitomeError(`no counter is called \`${count}\` in WebAssembly`, { hints });
    }
    super((start) => new Engine(start), options);
  }
}

export const epitomeFetch = (options) => fetchWith(Context, options);
