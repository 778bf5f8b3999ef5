//! Converts events to updates of the protocol. This module writes nothing; it reads the files that
//! a call would change.

use std::collections::HashMap;

use epitome_engine::{ContentShare, ResponseCall, WindowUse};
use epitome_model::ToolKind;
use epitome_passes::{Event as ContextEvent, EventReason};
use serde_json::{Value, json};

use super::wire::{ClientCapabilities, text as text_block, update};
use crate::machine::{self, Event};
use crate::notices::{aside, change, kind, reserve};
use crate::permissions::Access;
use crate::tools::{FileChange, Todo, TodoState, Workplace, kind_of, subject, todo};

/// The maximum number of characters of a call's title.
const TITLE: usize = 200;

/// The optional features of an editor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Abilities {
    /// Whether the editor shows compactions.
    pub(super) compactions: bool,
    /// Whether the editor shows notices outside of the conversation.
    pub(super) notices: bool,
    /// Whether the editor shows forms, for questions of the model.
    pub(super) forms: bool,
}

impl Abilities {
    pub(super) fn from_client(client: &ClientCapabilities) -> Abilities {
        let session = client.session.as_ref();
        Abilities {
            compactions: session.is_some_and(|session| session.compaction.is_some()),
            notices: session.is_some_and(|session| session.notices.is_some()),
            forms: client.elicitation.as_ref().is_some_and(|it| it.form.is_some()),
        }
    }
}

/// The state for converting events to updates.
pub(super) struct Updates {
    abilities: Abilities,
    place: Workplace,
    /// The calls that were announced and have no result yet.
    calls: HashMap<CallKey, Call>,
    /// The number of calls so far with each key, to make ids unique: some services use the same ids
    /// again in each answer.
    used: HashMap<CallKey, u32>,
    compactions: u64,
    /// The id of the compaction in progress.
    compacting: Option<String>,
    messages: u64,
    speaks: Option<Speaker>,
}

/// A call of the model.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The id of the call in the editor.
    pub(super) id: String,
    tool: String,
    arguments: String,
    /// The call as the members of a `tool_call` update. For a call that sets the to-do list, no
    /// such update is sent.
    pub(super) value: Value,
}

/// Identifies a call by its id. For a call of a sub-agent, the id of the call of `task` that
/// started the sub-agent comes first.
type CallKey = (Option<String>, String);

/// What a chunk belongs to: a message of the user, an answer of the model, or its thinking.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Answer,
    Thinking,
}

impl Updates {
    pub(super) fn new(abilities: Abilities, place: Workplace) -> Updates {
        Updates {
            abilities,
            place,
            calls: HashMap::new(),
            used: HashMap::new(),
            compactions: 0,
            compacting: None,
            messages: 0,
            speaks: None,
        }
    }

    /// The updates for an event that has just happened.
    pub(super) fn live(&mut self, event: &Event) -> Vec<Value> {
        match event {
            // The editor shows the user's messages itself.
            Event::User { .. } => {
                self.speaks = None;
                Vec::new()
            }
            Event::Call { id, tool, arguments } => self.call(None, id, tool, arguments, true),
            Event::Task { id: task, inner } => self.in_task(task, inner),
            Event::Permitted { id, allowed: true } => self.runs(None, id),
            // The text does not promise a new answer, because this event also follows a request
            // that failed for good.
            Event::Restart => self.note("(The answer so far is void.)"),
            event => self.updates(event),
        }
    }

    /// The updates for an event of an earlier run, without diffs, because files may have changed
    /// since.
    pub(super) fn replayed(&mut self, event: &Event) -> Vec<Value> {
        match event {
            Event::User { text } => {
                // The event is a whole message, so it begins a new message, even after a message of
                // the user.
                self.speaks = None;
                vec![self.chunk(Speaker::User, text)]
            }
            Event::Call { id, tool, arguments } => self.call(None, id, tool, arguments, false),
            event => self.updates(event),
        }
    }

    fn updates(&mut self, event: &Event) -> Vec<Value> {
        match event {
            Event::Text { text } => {
                vec![self.chunk(Speaker::Answer, text)]
            }
            Event::Thinking { text } => {
                vec![self.chunk(Speaker::Thinking, text)]
            }
            Event::Progress { id, text, .. } => self.progress(None, id, text),
            Event::Result { id, error, text } => self.result(None, id, *error, text),
            Event::Context { event } => self.context(event),
            Event::Usage { usage, cost } => used(*usage, *cost).into_iter().collect(),
            Event::Window { usage, contents, window: size } => {
                let mut text = window(*usage, contents);
                if let Some(reserve) = reserve(*size, usage.usable) {
                    text.push_str(&format!("\n\n{reserve}"));
                }
                self.note(&text)
            }
            event => aside(event).map_or_else(Vec::new, |text| self.note(&text)),
        }
    }

    /// The updates for a notice to the user, which is not part of the conversation. An editor that
    /// shows no notices gets the notice as a message of the agent.
    pub(super) fn note(&mut self, text: &str) -> Vec<Value> {
        if self.abilities.notices {
            let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
            let mut notice = json!({"severity": "info", "title": title});
            if !rest.trim().is_empty() {
                notice["description"] = rest.trim().into();
            }
            return vec![update("notice", notice)];
        }
        self.speaks = None;
        let update = self.chunk(Speaker::Answer, &format!("\n\n{text}\n\n"));
        self.speaks = None;
        vec![update]
    }

    /// The next chunk of a message. It begins a new message if the previous chunk is of another
    /// speaker, or if `speaks` was reset after it: by a message of the user, a call, a result, or a
    /// notice in the form of a message.
    fn chunk(&mut self, speaker: Speaker, text: &str) -> Value {
        if self.speaks != Some(speaker) {
            self.messages += 1;
            self.speaks = Some(speaker);
        }
        let kind = match speaker {
            Speaker::User => "user_message_chunk",
            Speaker::Answer => "agent_message_chunk",
            Speaker::Thinking => "agent_thought_chunk",
        };
        let id = format!("m{}", self.messages);
        update(kind, json!({"content": text_block(text), "messageId": id}))
    }

    fn in_task(&mut self, task: &str, event: &Event) -> Vec<Value> {
        match event {
            Event::Call { id, tool, arguments } => self.call(Some(task), id, tool, arguments, true),
            Event::Permitted { id, allowed: true } => self.runs(Some(task), id),
            Event::Progress { id, text, .. } => self.progress(Some(task), id, text),
            Event::Result { id, error, text } => self.result(Some(task), id, *error, text),
            // Nothing else of a sub-agent is shown. Its last answer is shown as the result of the
            // call of `task`.
            _ => Vec::new(),
        }
    }

    fn call(
        &mut self,
        task: Option<&str>,
        id: &str,
        tool: &str,
        arguments: &str,
        is_now: bool,
    ) -> Vec<Value> {
        self.speaks = None;
        let place = (task.map(str::to_owned), id.to_owned());
        let uses = self.used.entry(place.clone()).or_default();
        *uses += 1;
        let mut name = task.map_or(id.to_owned(), |task| format!("{task}/{id}"));
        if *uses > 1 {
            name.push_str(&format!("~{uses}"));
        }
        let changes = if is_now { self.place.planned_changes(tool, arguments) } else { None };
        let mut value = json!({
            "toolCallId": name,
            "title": title(tool, arguments),
            "name": tool,
            "kind": acp_kind(kind_of(tool)),
            "status": "in_progress",
            "locations": self.locations(tool, arguments),
        });
        if let Ok(input) = serde_json::from_str::<Value>(arguments) {
            value["rawInput"] = input;
        }
        if let Some(changes) = changes {
            value["content"] = changes.into_iter().map(diff).collect();
        }
        let tool = tool.to_owned();
        let arguments = arguments.to_owned();
        let call = Call { id: name, tool, arguments, value: value.clone() };
        // A to-do list is shown as a plan, when the call has its result.
        let is_plan = kind_of(&call.tool) == ToolKind::Todo;
        self.calls.insert(place, call);
        if is_plan { Vec::new() } else { vec![update("tool_call", value)] }
    }

    /// A call that has no result yet.
    pub(super) fn open(&self, task: Option<&str>, id: &str) -> Option<&Call> {
        self.calls.get(&(task.map(str::to_owned), id.to_owned()))
    }

    fn runs(&self, task: Option<&str>, id: &str) -> Vec<Value> {
        let updates = self.open(task, id).into_iter().map(|call| {
            update("tool_call_update", json!({"toolCallId": call.id, "status": "in_progress"}))
        });
        updates.collect()
    }

    fn progress(&self, task: Option<&str>, id: &str, text: &str) -> Vec<Value> {
        let Some(call) = self.open(task, id).filter(|_| !text.is_empty()) else {
            return Vec::new();
        };
        let content = json!([{"type": "content", "content": text_block(&fenced(text))}]);
        vec![update("tool_call_update", json!({"toolCallId": call.id, "content": content}))]
    }

    fn result(&mut self, task: Option<&str>, id: &str, error: bool, text: &str) -> Vec<Value> {
        self.speaks = None;
        let place = (task.map(str::to_owned), id.to_owned());
        let Some(call) = self.calls.remove(&place) else { return Vec::new() };
        if kind_of(&call.tool) == ToolKind::Todo {
            let items = todo(&call.arguments).ok();
            // A sub-agent has a to-do list of its own, which is not the plan of the session.
            let plan = items.filter(|_| !error && task.is_none());
            return plan.map(|items| plan_of(&items)).into_iter().collect();
        }
        let status = if error { "failed" } else { "completed" };
        let mut value = json!({"toolCallId": call.id, "status": status});
        // If the diff of the call was sent, the result is left out: it says only that the change
        // was made.
        if error || call.value.get("content").is_none() {
            let text = if is_prose(kind_of(&call.tool)) { text.to_owned() } else { fenced(text) };
            value["content"] = json!([{"type": "content", "content": text_block(&text)}]);
        }
        vec![update("tool_call_update", value)]
    }

    /// The files that a call reads or writes, or the folder that it searches. Empty for a command,
    /// a tool of an MCP server, a tool that accesses no files, and a call that cannot be run.
    fn locations(&self, tool: &str, arguments: &str) -> Vec<Value> {
        let called = ResponseCall {
            id: "".into(),
            name: tool.into(),
            kind: ToolKind::Other,
            arguments: arguments.to_owned(),
        };
        let paths = match self.place.access(&called) {
            Ok(Access::Read(path) | Access::Write(path)) => vec![path],
            Ok(Access::Patch(paths)) => paths,
            Ok(Access::Own | Access::Shell(_) | Access::Mcp { .. }) | Err(_) => Vec::new(),
        };
        paths.into_iter().map(|path| json!({"path": path.to_string_lossy()})).collect()
    }

    fn context(&mut self, event: &ContextEvent) -> Vec<Value> {
        let line = change(event);
        if !self.abilities.compactions {
            return line.map_or_else(Vec::new, |line| self.note(&line));
        }
        match event {
            ContextEvent::Started { why: EventReason::Request, .. } => Vec::new(),
            ContextEvent::Started { .. } => {
                let id = self.next_compaction();
                self.compacting = Some(id.clone());
                vec![compaction(&id, "in_progress")]
            }
            ContextEvent::Finished { .. } => {
                let Some(line) = line else { return Vec::new() };
                let id = self.compacting.take().unwrap_or_else(|| self.next_compaction());
                let mut done = compaction(&id, "completed");
                done["summary"] = json!([text_block(&line)]);
                vec![done]
            }
            ContextEvent::Failed { reason, .. } | ContextEvent::Skipped { reason, .. } => {
                let Some(id) = self.compacting.take() else { return Vec::new() };
                let mut failed = compaction(&id, "failed");
                failed["error"] = reason.as_str().into();
                vec![failed]
            }
            _ => line.map_or_else(Vec::new, |line| self.note(&line)),
        }
    }

    fn next_compaction(&mut self) -> String {
        self.compactions += 1;
        format!("compaction-{}", self.compactions)
    }
}

fn compaction(id: &str, status: &str) -> Value {
    update("compaction_update", json!({"compactionId": id, "status": status}))
}

fn title(tool: &str, arguments: &str) -> String {
    let subject = subject(tool, arguments);
    let is_shell = kind_of(tool) == ToolKind::Shell;
    let title = if is_shell { subject } else { format!("{tool} {subject}") };
    let first = title.trim().lines().next().unwrap_or(tool);
    epitome_model::short(first, TITLE)
}

/// The name of a kind of tool in the protocol.
fn acp_kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read | ToolKind::Skill => "read",
        ToolKind::Write | ToolKind::Edit | ToolKind::Patch => "edit",
        ToolKind::Shell => "execute",
        ToolKind::Search | ToolKind::List => "search",
        ToolKind::Todo | ToolKind::Task | ToolKind::Compact => "think",
        _ => "other",
    }
}

/// Whether the result of a tool is Markdown.
fn is_prose(kind: ToolKind) -> bool {
    matches!(kind, ToolKind::Task | ToolKind::Skill | ToolKind::Ask | ToolKind::Compact)
}

/// A text as a code block, because editors render results as Markdown.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn diff(change: FileChange) -> Value {
    let FileChange { path, before, after } = change;
    let path = path.to_string_lossy();
    let after = after.unwrap_or_default();
    json!({"type": "diff", "path": path, "oldText": before, "newText": after})
}

fn plan_of(items: &[Todo]) -> Value {
    let entries = items.iter().map(|item| {
        let status = match item.state {
            TodoState::Open => "pending",
            TodoState::Doing => "in_progress",
            TodoState::Done => "completed",
        };
        json!({"content": item.text, "priority": "medium", "status": status})
    });
    update("plan", json!({"entries": entries.collect::<Vec<_>>()}))
}

fn used(usage: WindowUse, cost: machine::Cost) -> Option<Value> {
    #[expect(clippy::cast_precision_loss, reason = "9 billion dollars are exact")]
    let dollars = cost.cost.0 as f64 / 1e6;
    let cost = json!({"amount": dollars, "currency": "USD"});
    let window = json!({"used": usage.tokens.0, "size": usage.usable?.0, "cost": cost});
    Some(update("usage_update", window))
}

/// The contents of the window, as a list.
fn window(usage: WindowUse, contents: &[ContentShare]) -> String {
    let percent = usage.percent.map(|percent| format!(" {percent}%,")).unwrap_or_default();
    let of = usage.usable.map(|usable| format!(" of {usable}")).unwrap_or_default();
    let mut text = format!("context{percent} {}{of} tokens\n", usage.tokens);
    for share in contents {
        text.push_str(&format!("\n- {}: {}", kind(share.content), share.tokens));
    }
    text
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
