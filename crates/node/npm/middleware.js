// A middleware for language models of the AI SDK.
import { jsonSchema, tool } from "ai";
import { Conversations, viewAfterRefusal, viewOf, warn } from "./conversations.js";
import { blockKey, match, messagesOf, resultText } from "./matching.js";

const RECALL = "Returns a text that was removed from the conversation, by the name that stands in "
  + "its place: a reference such as k7f3a9c2, or the number of a call such as #4.";

/** The middleware, whose conversations are contexts of the class `Context`. */
export function middleware(Context, options = {}) {
  const conversations = new Conversations(Context, options);
  /** The prompt that each object of parameters was made of. */
  const prompts = new WeakMap();

  return {
    specificationVersion: "v4",

    async transformParams({ params }) {
      const prompt = begin(conversations, params);
      if (prompt === undefined) return params;
      const messages = await shorten(prompt);
      const transformed = messages === undefined ? params : { ...params, prompt: messages };
      prompts.set(transformed, prompt);
      return transformed;
    },

    async wrapGenerate({ doGenerate, params, model }) {
      const prompt = prompts.get(params);
      const again = (messages) => model.doGenerate({ ...params, prompt: messages });
      const result = await retryOnce(doGenerate, again, prompt);
      count(prompt, result.usage);
      return result;
    },

    async wrapStream({ doStream, params, model }) {
      const prompt = prompts.get(params);
      const again = (messages) => model.doStream({ ...params, prompt: messages });
      const result = await retryOnce(doStream, again, prompt);
      return { ...result, stream: result.stream.pipeThrough(countedStream(prompt)) };
    },

    recallTool() {
      const properties = { ref: { type: "string" } };
      return tool({
        description: RECALL,
        inputSchema: jsonSchema({ type: "object", properties, required: ["ref"] }),
        execute: ({ ref }, { messages }) => recall(conversations, ref, messages),
      });
    },
  };
}

/** A prompt in parts, with its conversation; `undefined` if there is nothing to shorten. */
function begin(conversations, { prompt, tools }) {
  try {
    const { system, parts } = readPrompt(prompt);
    const messages = messagesOf(parts);
    const body = { system: system.map(({ content }) => content), messages, tools };
    const conversation = conversations.find("anthropic", body);
    if (conversation === undefined) return undefined;
    conversation.calls = callIds(prompt);
    return { conversation, system, parts, messages };
  } catch (error) {
    warn("a request is sent unchanged", error);
    return undefined;
  }
}

/** The messages to send; `undefined` if the prompt is sent as it is. */
async function shorten({ conversation, system, parts, messages }) {
  try {
    const view = await viewOf(conversation, messages);
    return view && [...system, ...rebuild(view.messages, parts)];
  } catch (error) {
    warn("a request is sent unchanged", error);
    return undefined;
  }
}

/** Sends a request; if it is refused as too long, a smaller one, once. */
async function retryOnce(send, sendAgain, prompt) {
  try {
    return await send();
  } catch (error) {
    const isRefused = error?.statusCode === 400 || error?.statusCode === 413;
    const messages = prompt && isRefused ? await recover(prompt, error) : undefined;
    if (messages === undefined) throw error;
    return sendAgain(messages);
  }
}

async function recover(prompt, { statusCode, responseBody, message }) {
  const { conversation, system, parts, messages } = prompt;
  try {
    const text = responseBody ?? message;
    const view = await viewAfterRefusal(conversation, messages, statusCode, text);
    return view && [...system, ...rebuild(view.messages, parts)];
  } catch (error) {
    warn("a refused request is not tried again", error);
    return undefined;
  }
}

/** Notes what the service counted. Older versions of the SDK do not say what `inputTokens` are. */
function count(prompt, usage) {
  const input = usage?.inputTokens?.total;
  if (prompt === undefined || typeof input !== "number") return;
  prompt.conversation.usage = { input, output: usage.outputTokens?.total ?? 0 };
}

function countedStream(prompt) {
  return new TransformStream({
    transform(part, controller) {
      if (part.type === "finish") count(prompt, part.usage);
      controller.enqueue(part);
    },
  });
}

/** What was removed from the conversation that has these messages. */
async function recall(conversations, ref, messages) {
  const { parts } = readPrompt(messages);
  const [first] = messagesOf(parts);
  const conversation = first && conversations.findBegunWith(first);
  if (conversation === undefined) return "nothing was removed";
  try {
    const { context, calls } = conversation;
    const ids = callIds(messages);
    const isLast = ids.size === calls?.size && [...ids].every((id) => calls.has(id));
    // Another conversation with the same beginning may have used the context since.
    const view = isLast ? undefined : context.view(messagesOf(parts));
    if (!isLast) Object.assign(conversation, { calls: ids, list: undefined });
    const [text] = await Promise.all([context.recall(ref), view]);
    return text;
  } catch (error) {
    conversation.calls = undefined;
    return error.message;
  }
}

function callIds(messages) {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return new Set(parts.map(({ toolCallId }) => toolCallId).filter((id) => id !== undefined));
}

/** The system messages at the beginning, and the parts of all others. */
function readPrompt(prompt) {
  const start = prompt.findIndex(({ role }) => role !== "system");
  const begin = start < 0 ? prompt.length : start;
  return { system: prompt.slice(0, begin), parts: prompt.slice(begin).flatMap(messageParts) };
}

/** A message of the SDK in parts for the engine. */
function messageParts(message) {
  const content = contentOf(message);
  if (message.role === "assistant") {
    const blocks = content.map(responseBlock).filter((block) => block !== undefined);
    return [{ role: "assistant", blocks: orName(blocks, content), value: { message } }];
  }
  const parts = content.map((part) => {
    const block = requestBlock(part);
    return { role: "user", blocks: block ? [block] : [], value: { message, part } };
  });
  if (parts.some(({ blocks }) => blocks.length > 0)) return parts;
  return [{ role: "user", blocks: orName([], content), value: { message } }];
}

function contentOf({ content }) {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** A message of which the engine knows nothing is a text with its name, so that it is not lost. */
function orName(blocks, content) {
  const first = content.find((part) => part.type !== "text" || part.text !== "");
  return blocks.length > 0 || first === undefined ? blocks : [named(first)];
}

function named({ type }) {
  return { type: "text", text: `[${type}]` };
}

/** What a part of a request is for the engine; `undefined` if it says nothing to it. */
function requestBlock(part) {
  switch (part.type) {
    case "text": return part.text === "" ? undefined : { type: "text", text: part.text };
    case "file": return fileBlock(part);
    case "tool-result": return resultBlock(part);
    default: return undefined;
  }
}

function fileBlock(part) {
  const { data, mediaType = "" } = part;
  const { type, data: bytes = data, url = data } = data ?? {};
  if (!mediaType.startsWith("image/")) return named(part);
  if (url instanceof URL || type === "url") {
    return { type: "image", source: { type: "url", url: String(url) } };
  }
  const isData = typeof bytes === "string" || bytes instanceof Uint8Array;
  if (!isData) return named(part);
  const base64 = typeof bytes === "string" ? bytes : base64Of(bytes);
  return { type: "image", source: { type: "base64", media_type: mediaType, data: base64 } };
}

function base64Of(bytes) {
  // A call has at most some ten thousand arguments.
  const parts = [];
  for (let at = 0; at < bytes.length; at += 8_192) {
    parts.push(String.fromCharCode(...bytes.subarray(at, at + 8_192)));
  }
  return btoa(parts.join(""));
}

function resultBlock({ toolCallId, output }) {
  const block = { type: "tool_result", tool_use_id: toolCallId, content: resultContent(output) };
  return isFailure(output) ? { ...block, is_error: true } : block;
}

function isFailure({ type }) {
  return type.startsWith("error-") || type === "execution-denied";
}

function resultContent({ type, value, reason }) {
  switch (type) {
    case "text":
    case "error-text": return value;
    case "execution-denied": return reason ?? "Tool execution denied.";
    case "content": {
      const blocks = value.map(contentBlock);
      const isText = blocks.every((block) => block.type === "text");
      return isText ? blocks.map(({ text }) => text).join("\n") : blocks;
    }
    default: return JSON.stringify(value) ?? "";
  }
}

/** An item of a result with several. */
function contentBlock(item) {
  if (item.type === "text") return { type: "text", text: item.text };
  return item.type === "file" ? fileBlock(item) : named(item);
}

/**
 * What a part of a response is for the engine. Reasoning without a signature, and calls that the
 * service carries out by itself, stay with their message.
 */
function responseBlock(part) {
  switch (part.type) {
    case "text": return part.text === "" ? undefined : { type: "text", text: part.text };
    case "reasoning": return reasoningBlock(part);
    case "tool-call": return part.providerExecuted ? undefined : callBlock(part);
    default: return undefined;
  }
}

function reasoningBlock({ text, providerOptions }) {
  const { signature, redactedData } = providerOptions?.anthropic ?? {};
  if (redactedData !== undefined) return { type: "redacted_thinking", data: redactedData };
  return signature === undefined ? undefined : { type: "thinking", thinking: text, signature };
}

function callBlock({ toolCallId, toolName, input }) {
  const isObject = input !== null && typeof input === "object" && !Array.isArray(input);
  const args = isObject ? input : { text: input };
  return { type: "tool_use", id: toolCallId, name: toolName, input: args };
}

/** The messages of a view. Messages that are not edited are the same objects. */
function rebuild(view, parts) {
  const messages = [];
  for (const group of groups(match(view, parts))) {
    const [{ role, value }] = group;
    if (value === undefined) {
      messages.push({ role, content: group.flatMap(({ blocks }) => blocks.filter(isText)) });
    } else if (role === "assistant") {
      messages.push(editedResponse(value.message, group));
    } else {
      messages.push(editedRequest(value.message, group));
    }
  }
  return messages.filter(({ content }) => content.length > 0);
}

function isText({ type }) {
  return type === "text";
}

/** What is sent, by the message that it was part of. */
function groups(sent) {
  const all = [];
  for (const item of sent) {
    const [before] = all.at(-1) ?? [];
    const isSame = before?.role === item.role && before.value?.message === item.value?.message;
    if (before !== undefined && isSame) all.at(-1).push(item);
    else all.push([item]);
  }
  return all;
}

/** A message of the user or of tools, of which parts were shortened or removed. */
function editedRequest(message, group) {
  const whole = messageParts(message).filter(({ blocks }) => blocks.length > 0).length;
  if (group.length === whole && group.every(({ isEdited }) => !isEdited)) return message;
  const sent = new Map(group.map((item) => [item.value.part, item]));
  const content = contentOf(message).flatMap((part) => {
    const item = sent.get(part);
    if (item === undefined) return requestBlock(part) === undefined ? [part] : [];
    return [item.isEdited ? editedResult(part, item.blocks[0]) : part];
  });
  return { ...message, content };
}

function editedResult(part, block) {
  const { output } = part;
  const type = isFailure(output) ? "error-text" : "text";
  const { providerOptions } = output;
  const shorter = { type, value: resultText(block) };
  if (output.type === "content" && Array.isArray(block.content)) {
    // Pictures stay as they are.
    const items = new Map(output.value.map((item) => [blockKey(contentBlock(item)), item]));
    shorter.type = "content";
    shorter.value = block.content.map((item) => (
      items.get(blockKey(item)) ?? { type: "text", text: item.text }
    ));
  }
  return { ...part, output: providerOptions ? { ...shorter, providerOptions } : shorter };
}

/** A response of which arguments were shortened, or parts removed. */
function editedResponse(message, group) {
  if (group.length === 1 && !group[0].isEdited) return message;
  const left = contentOf(message).map((part) => ({ part, block: responseBlock(part) }));
  const content = [];
  const takeSilent = (items) => content.push(
    ...items.filter(({ block }) => block === undefined).map(({ part }) => part),
  );
  for (const block of group.flatMap(({ blocks }) => blocks)) {
    const at = left.findIndex((item) => item.block !== undefined && isSameBlock(item.block, block));
    if (at < 0) {
      if (isText(block)) content.push(block);
      continue;
    }
    const passed = left.splice(0, at + 1);
    takeSilent(passed);
    content.push(editedCall(passed.at(-1), block));
  }
  takeSilent(left);
  return { ...message, content };
}

function isSameBlock(block, other) {
  if (block.type === "tool_use") return block.type === other.type && block.id === other.id;
  return blockKey(block) === blockKey(other);
}

function editedCall({ part, block }, { type, input }) {
  const isEdited = type === "tool_use" && blockKey({ ...block, input }) !== blockKey(block);
  return isEdited ? { ...part, input } : part;
}
