// @ts-check
// A client of `epitome engine`: a context that stays small, over a pipe. Node 20, nothing else.
// The types stand in comments: `tsc --checkJs` checks them, and node runs the file as it is.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** @typedef {{ role: "user" | "assistant", content: string | Array<Record<string, any>> }} Message */

export class Engine {
  /** @param {string} program @param {string[]} options */
  constructor(program = "epitome", ...options) {
    this.pipe = spawn(program, ["engine", ...options], { stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.pipe.stdout })[Symbol.asyncIterator]();
  }

  /** @param {string} op @param {Record<string, unknown>} more @returns {Promise<any>} */
  async ask(op, more = {}) {
    this.pipe.stdin.write(JSON.stringify({ op, ...more }) + "\n");
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the engine ended");
    const answer = JSON.parse(value);
    if (answer.error) throw new Error(answer.error.message);
    return answer;
  }

  /** Says what was said since the last time; returns the messages to send now.
   * @param {Message[]} messages @returns {Promise<Message[]>} */
  async say(...messages) {
    return (await this.ask("call", { messages })).messages;
  }

  /** @param {string} ref @returns {Promise<string>} */
  async recall(ref) {
    return (await this.ask("recall", { ref })).text;
  }

  close() {
    this.pipe.stdin.end();
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const engine = new Engine(...process.argv.slice(2));
  await engine.ask("reset", { session: "example" });
  await engine.say({ role: "user", content: "Read all of it." });
  for (let n = 0; n < 5; n++) {
    const call = { type: "tool_use", id: `c${n}`, name: "Read", input: { path: `${n}.txt` } };
    const result = { type: "tool_result", tool_use_id: `c${n}`, content: "a line\n".repeat(99) };
    await engine.say({ role: "assistant", content: [call] }, { role: "user", content: [result] });
  }
  await engine.ask("compact");
  const first = async () => /** @type {any} */ ((await engine.say())[2].content)[0].content;
  console.log(await first());
  console.log((await engine.ask("undo")).undone, (await first()).length);
  engine.close();
}
