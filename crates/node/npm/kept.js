// What is kept of the last call with a whole list, to answer the same list again without the library.
//
// A program may modify its messages in place, so that the identity of a list says nothing. A copy is
// kept instead, which has the program's own strings: comparing it takes a fraction of a microsecond
// a message.

/** Copies of messages as JSON; `undefined` if one has a value that may be modified unnoticed. */
export function copyMessages(messages) {
  try {
    return messages.map(copy);
  } catch (error) {
    if (error instanceof NotPlainError) return undefined;
    throw error;
  }
}

class NotPlainError extends Error {}

function copy(value) {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
    case "undefined": return value;
    case "object": break;
    default: throw new NotPlainError();
  }
  if (value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  if (!isPlain(value)) throw new NotPlainError();
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, copy(part)]));
}

function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Whether a value is the same JSON as a copy. */
function isSame(copy, value) {
  if (typeof copy !== "object" || copy === null) return Object.is(copy, value);
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(copy)) {
    return Array.isArray(value) && copy.length === value.length && isBeginOf(copy, value);
  }
  if (Array.isArray(value) || !isPlain(value)) return false;
  let names = 0;
  for (const name in copy) {
    if (!isSame(copy[name], value[name])) return false;
    names += 1;
  }
  return names === Object.keys(value).length;
}

function isBeginOf(copies, values) {
  for (let at = 0; at < copies.length; at += 1) {
    if (!isSame(copies[at], values[at])) return false;
  }
  return true;
}

/** A list, and the body of its view. */
export class Kept {
  /** Whether anything is sent otherwise than it was said, once it is known. */
  isChanged;
  /** Copies of the messages of the list. */
  messages;
  #body;
  #name;
  #view;

  /** `name` is that of the list in the body. The messages of `before` are taken from there. */
  constructor(messages, body, name, before) {
    this.messages = messages;
    this.#body = body;
    this.#name = name;
    const old = before === undefined ? [] : before.#view;
    this.#view = body[name].map((message, at) => (
      at < old.length && isSame(old[at], message) ? old[at] : copy(message)
    ));
  }

  /** How many messages of a list are known: all of these, or none. */
  knownOf(messages) {
    const isLonger = messages.length >= this.messages.length;
    return isLonger && isBeginOf(this.messages, messages) ? this.messages.length : 0;
  }

  /** The body of the view. The program may have modified the messages that it was given. */
  body() {
    const name = this.#name;
    if (!isSame(this.#view, this.#body[name])) {
      this.#body = { ...this.#body, [name]: structuredClone(this.#view) };
    }
    return { ...this.#body, [name]: [...this.#body[name]] };
  }
}
