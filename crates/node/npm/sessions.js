// Stored sessions: each function does what the command of that name does.
import { call, pathOf } from "./native.js";
import { check, decode, encode } from "./protocol.js";

export const compact = async (session, options = {}) => {
  check(options, ["recipe", "target", "dryRun", "out", "force", "agent", "count"]);
  const { recipe, target, dryRun = false, out, force = false } = options;
  const how = { recipe, target, dryRun, out: pathOf(out), force };
  return ask("compact", { ...sessionRequest(session, options), ...how });
};

export const restore = async (session, options = {}) => {
  check(options, ["dryRun", "out", "force", "partial", "agent"]);
  const { dryRun = false, out, force = false, partial = false } = options;
  const how = { dryRun, out: pathOf(out), force, partial };
  return ask("restore", { ...sessionRequest(session, options), ...how });
};

export const inspect = async (session, options = {}) => {
  check(options, ["agent", "count"]);
  return ask("inspect", sessionRequest(session, options));
};

export const losses = async (session, options = {}) => {
  check(options, ["agent", "count"]);
  return ask("losses", sessionRequest(session, options));
};

export const search = async (words, options = {}) => {
  check(options, ["agent", "project", "limit"]);
  const { agent, project, limit = 20 } = options;
  return ask("search", { words, agent, project: pathOf(project), limit });
};

export const sessions = async (options = {}) => {
  check(options, ["agent", "project"]);
  const { agent, project } = options;
  return ask("sessions", { agent, project: pathOf(project) });
};

export const simulate = async (sessions, options = {}) => {
  const names = ["recipes", "commands", "window", "overhead", "target", "model", "agent", "count"];
  check(options, names);
  const { recipes = [], commands = [], window, overhead, target, model, agent, count } = options;
  const several = Array.isArray(sessions) ? sessions : [sessions];
  return ask("simulate", {
    sessions: several.map(pathOf),
    recipes,
    commands,
    window,
    overhead,
    target,
    model,
    agent,
    count,
  });
};

export const redact = async (text, options = {}) => {
  check(options, ["find"]);
  const { find = [] } = options;
  return (await ask("redact", { text, find })).text;
};

export const render = async (session, options = {}) => {
  check(options, ["format", "detail", "asSent", "redact", "agent"]);
  const { format = "markdown", detail, asSent = false, redact = true } = options;
  const how = { format, detail, asSent, redact };
  return (await ask("render", { ...sessionRequest(session, options), ...how })).text;
};

const ask = async (name, request) => decode(await call(name, encode(request)));

const sessionRequest = (session, { agent, count }) => (
  { session: pathOf(session), agent, count }
);
