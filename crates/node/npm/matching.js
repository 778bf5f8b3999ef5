// Puts the messages of a framework in place of those of a view.
//
// A framework's messages are given to the engine as Anthropic's, because its blocks have all that
// the others have. What comes back unchanged is the framework's own object again, with all that the
// engine knows nothing of; only what was edited is made new.
//
// A part is `{ role, blocks, value }`: a message of a framework or a part of one (`value`), and the
// blocks that it is for the engine.
import { sortedJson } from "./conversations.js";

/** The list that is given to the engine. */
export function messagesOf(parts) {
  const visible = parts.filter(({ blocks }) => blocks.length > 0);
  return visible.map(({ role, blocks }) => ({ role, content: blocks }));
}

/**
 * What a view sends, in terms of the parts that it was made of: `{ role, blocks, value, isEdited }`
 * each. `value` is `undefined` for a text of the engine.
 */
export function* match(view, parts) {
  const index = new PartIndex(parts);
  for (const { role, content } of view) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    let at = 0;
    while (at < blocks.length) {
      const part = index.find(role, blocks, at);
      if (part !== undefined) {
        yield { ...part, isEdited: false };
        at += part.blocks.length;
        continue;
      }
      const edited = blocks.slice(at, index.end(role, blocks, at));
      yield { role, blocks: edited, value: index.owner(edited), isEdited: true };
      at += edited.length;
    }
  }
}

/** Parts by their first block and by their calls. */
class PartIndex {
  #parts;
  #byFirst = new Map();
  #byCall = new Map();
  #next = 0;

  constructor(parts) {
    this.#parts = parts.map((part) => ({ ...part, keys: part.blocks.map(blockKey) }));
    for (const [at, { role, blocks, keys }] of this.#parts.entries()) {
      if (keys.length > 0) this.#placesOf(role + keys[0]).push(at);
      for (const block of blocks) {
        const name = callName(block);
        if (name !== undefined) this.#byCall.set(name, at);
      }
    }
  }

  #placesOf(key) {
    if (!this.#byFirst.has(key)) this.#byFirst.set(key, []);
    return this.#byFirst.get(key);
  }

  /** The next part that has just these blocks. */
  find(role, blocks, start) {
    const first = blockKey(blocks[start]);
    for (const at of this.#byFirst.get(role + first) ?? []) {
      const { keys } = this.#parts[at];
      if (at < this.#next || !isAt(keys, blocks, start)) continue;
      this.#next = at + 1;
      const { blocks: own, value } = this.#parts[at];
      return { role, blocks: own, value };
    }
    return undefined;
  }

  /** The value that made a call among blocks, or has its result. */
  owner(blocks) {
    const owners = blocks.map((block) => this.#byCall.get(callName(block)));
    const at = owners.find((owner) => owner !== undefined);
    if (at === undefined) return undefined;
    this.#next = Math.max(this.#next, at + 1);
    return this.#parts[at].value;
  }

  /** Where the edited message ends that begins at a block. */
  end(role, blocks, start) {
    if (role === "user") return start + 1;
    let owner;
    for (let end = start; end < blocks.length; end += 1) {
      const at = this.#byCall.get(callName(blocks[end]));
      if (at !== undefined && owner !== undefined && at !== owner) return end;
      owner ??= at;
    }
    return blocks.length;
  }
}

/** Whether blocks with these keys are at a place in others. */
function isAt(keys, blocks, start) {
  return keys.every((key, n) => start + n < blocks.length && blockKey(blocks[start + n]) === key);
}

function callName(block) {
  if (block.type === "tool_use") return `call ${block.id}`;
  if (block.type === "tool_result") return `result ${block.tool_use_id}`;
  return undefined;
}

/** The text of a result. */
export function resultText({ content = "" }) {
  if (typeof content === "string") return content;
  return content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
}

/** A block in one spelling. */
export function blockKey(block) {
  if (block.type !== "tool_result") return sortedJson(block);
  const content = block.content ?? "";
  const isText = typeof content === "string" || content.every(({ type }) => type === "text");
  const spelled = isText ? resultText(block) : content;
  return sortedJson({ ...block, content: spelled, is_error: block.is_error === true });
}
