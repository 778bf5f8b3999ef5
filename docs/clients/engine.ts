// A client of `epitome engine`: a context that stays small, over a pipe. Node 22.18 runs this file as it is.
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

export type Block = { type: string; content?: unknown; [key: string]: unknown };
export type Message = { role: "user" | "assistant"; content: string | Block[] };
type Answer = { error?: { message: string }; [key: string]: any };

export class Engine {
  private pipe: ChildProcess & { stdin: Writable; stdout: Readable };
  private lines: AsyncIterator<string>;

  constructor(program = "epitome", ...options: string[]) {
    this.pipe = spawn(program, ["engine", ...options], { stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.pipe.stdout })[Symbol.asyncIterator]();
  }

  async ask(op: string, more: Record<string, unknown> = {}): Promise<Answer> {
    this.pipe.stdin.write(JSON.stringify({ op, ...more }) + "\n");
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the engine ended");
    const answer: Answer = JSON.parse(value);
    if (answer.error) throw new Error(answer.error.message);
    return answer;
  }

  /** Says what was said since the last time; returns the messages to send now. */
  async say(...messages: Message[]): Promise<Message[]> {
    return (await this.ask("call", { messages })).messages;
  }

  async recall(ref: string): Promise<string> {
    return (await this.ask("recall", { ref })).text;
  }

  close(): void {
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
  const first = async () => String(((await engine.say())[2].content as Block[])[0].content);
  console.log(await first());
  console.log((await engine.ask("undo")).undone, (await first()).length);
  engine.close();
}
