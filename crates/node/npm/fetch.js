// A `fetch` for the clients of Anthropic and OpenAI that makes requests smaller.
import { Conversations, usageOf, viewAfterRefusal, viewOf, warn, withView } from "./conversations.js";
import { LISTS } from "./context.js";

/** The ends of the paths whose bodies have messages, and the API of each. */
const APIS = {
  "/messages": "anthropic",
  "/chat/completions": "openai-chat",
  "/responses": "openai-responses",
  ":generateContent": "gemini-api",
  ":streamGenerateContent": "gemini-api",
};

/** A `fetch` whose conversations are contexts of the class `Context`. */
export function fetchWith(Context, { fetch = globalThis.fetch, ...options } = {}) {
  const conversations = new Conversations(Context, options);

  return async (input, init) => {
    const request = await readRequest(input, init);
    const conversation = request && begin(conversations, request);
    if (conversation === undefined) return fetch(input, init);
    const smaller = await shorten(conversation, request.body);
    const sent = smaller === undefined ? [input, init] : withBody(input, init, smaller);
    const response = await fetch(...sent);
    if (response.status === 400 || response.status === 413) {
      const again = await recover(conversation, request.body, response);
      if (again === undefined) return response;
      await response.body?.cancel();
      return fetch(...withBody(input, init, again));
    }
    await count(conversation, response);
    return response;
  };
}

/** The API and the body of a request with messages; `undefined` for any other. */
async function readRequest(input, init) {
  const isRequest = input instanceof Request;
  const method = init?.method ?? (isRequest ? input.method : "GET");
  const path = pathOf(isRequest ? input.url : input);
  const end = Object.keys(APIS).find((end) => path.endsWith(end));
  if (method.toUpperCase() !== "POST" || end === undefined) return undefined;
  const text = await textOf(init?.body ?? (isRequest ? input : undefined));
  const body = parse(text);
  return body === undefined ? undefined : { api: APIS[end], body };
}

function pathOf(url) {
  return URL.canParse(String(url)) ? new URL(String(url)).pathname : "";
}

/** A body that can be read without using it up; `undefined` for a stream or a form. */
async function textOf(body) {
  if (typeof body === "string") return body;
  if (body instanceof Request) return body.bodyUsed ? undefined : body.clone().text();
  const isBinary = body instanceof ArrayBuffer || ArrayBuffer.isView(body);
  return isBinary ? new TextDecoder().decode(body) : undefined;
}

function parse(text) {
  try {
    const body = JSON.parse(text);
    return body !== null && typeof body === "object" && !Array.isArray(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

function begin(conversations, { api, body }) {
  try {
    return conversations.find(api, body);
  } catch (error) {
    warn("a request is sent unchanged", error);
    return undefined;
  }
}

/** The body with fewer tokens; `undefined` if it is sent as it is. */
async function shorten(conversation, body) {
  try {
    const view = await viewOf(conversation, body[LISTS[conversation.api] ?? "messages"]);
    return view && withView(body, view);
  } catch (error) {
    warn("a request is sent unchanged", error);
    return undefined;
  }
}

/** The body to send in place of one that was refused; `undefined` if that is of no use. */
async function recover(conversation, body, response) {
  try {
    const text = await response.clone().text();
    const messages = body[LISTS[conversation.api] ?? "messages"];
    const view = await viewAfterRefusal(conversation, messages, response.status, text);
    return view && withView(body, view);
  } catch (error) {
    warn("a refused request is not tried again", error);
    return undefined;
  }
}

/** The arguments of `fetch` with another body. */
function withBody(input, init, body) {
  const isRequest = input instanceof Request;
  const headers = new Headers(init?.headers ?? (isRequest ? input.headers : undefined));
  // `fetch` counts by itself.
  headers.delete("content-length");
  const changed = { ...init, method: "POST", headers, body: JSON.stringify(body) };
  if (!isRequest) return [input, changed];
  return [input.url, { signal: input.signal, ...changed }];
}

/** Notes what the service counted. A stream passes as it is. */
async function count(conversation, response) {
  const isJson = response.headers.get("content-type")?.includes("json");
  if (response.status !== 200 || !isJson) return;
  try {
    conversation.usage = usageOf(await response.clone().json());
  } catch {
    // The client reports what is wrong with it.
  }
}
