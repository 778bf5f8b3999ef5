// A client of `epitome engine`: a context that stays small, over a pipe. Node 22.18 runs this file as it is.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
export type Question = { system: string; prompt: string; max_tokens: number };
type Answer = { ask?: Question; error?: { message: string }; [key: string]: any };

export class Engine {
  private pipe: ChildProcess & { stdin: Writable; stdout: Readable };
  private lines: AsyncIterator<string>;

  constructor(program = "epitome", ...options: string[]) {
    this.pipe = spawn(program, ["engine", ...options], { stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.pipe.stdout })[Symbol.asyncIterator]();
  }

  /** Asks a model, and returns its text. Say `{ summaries: true }` with `hello` or `reset` when it is set. */
  summarise = async (_: Question): Promise<string> => Promise.reject("there is no model");

  async ask(op: string, more: Record<string, unknown> = {}): Promise<Answer> {
    this.pipe.stdin.write(JSON.stringify({ op, ...more }) + "\n");
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the engine ended");
    const answer: Answer = JSON.parse(value);
    if (answer.error) throw new Error(answer.error.message);
    if (!answer.ask) return answer;
    // Without a summary the context stays as it is.
    const reply = this.summarise(answer.ask).then((text) => ({ text }), (why) => ({ failed: String(why) }));
    return this.ask("answer", await reply);
  }

  /** Says what was said since the last time; returns what to send now: a request's body without model and tools. */
  async say(...messages: object[]): Promise<Record<string, any>> {
    const answer = await this.ask("call", { messages });
    return answer.body ?? { messages: answer.messages };
  }

  close = () => new Promise((ended) => this.pipe.once("close", ended).stdin!.end());
}

if (process.argv[1] === new URL(import.meta.url).pathname) { // engine.ts PROGRAM OPTIONS…
  const logs = mkdtempSync("epitome-logs-"); // Without --log, logs are kept in epitome's own folder.
  const engine = new Engine(process.argv[2], "--log", logs, ...process.argv.slice(3));
  // In place of a model: the same under every heading.
  engine.summarise = async ({ prompt }) => prompt.match(/^## .*$/gm)!.map((line) => line + "\nAll is read.").join("\n");
  const { log } = await engine.ask("reset", { session: "example", summaries: true });
  await engine.say({ role: "user", content: "Read all of it." });
  for (let n = 0; n < 5; n++) {
    const call = { type: "tool_use", id: `c${n}`, name: "Read", input: { path: `${n}.txt` } };
    const result = { type: "tool_result", tool_use_id: `c${n}`, content: `a line of ${n}\n`.repeat(99) };
    await engine.say({ role: "assistant", content: [call] }, { role: "user", content: [result] });
  }
  console.log((await engine.ask("compact", { target: 0 })).outcome);
  console.log((await engine.say()).messages.length, (await engine.ask("undo")).undone);
  console.log((await engine.ask("open", { log })).messages); // So many need not be said again.
  await engine.close();
  rmSync(logs, { recursive: true });
}
