//! The context of a running agent, over a pipe, for agents in any language: a request is one line
//! of JSON, and so is its answer. `docs/engine.md` describes both.
//!
//! A [`Server`] has one conversation with a client, about one context or several. It does no input
//! or output: the caller passes lines in and answers back, a [`LogStore`] keeps logs, and a
//! [`SummaryModel`] writes summaries. `epitome::pipe` has both.

mod host;
mod members;
mod request;
mod sent;
mod sent_before;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome_error::{Error, ErrorKind, Result, causes};
use epitome_model::{Block, Counter, Role, Tokens, short};
use epitome_passes::{Name, Recipe, Writer, response_name};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::{Context, Hit, Next, Outcome, RecallResult, Recovery, Setup, compact_tool};

pub use host::{LogLock, LogStore, NewLog, SummaryModel};
pub use members::parse_options;
use request::{Begin, Call, Force, Line, Open, Recall, Request, usage, window};
use sent::Sent;
use sent_before::SentBefore;

/// The maximum number of lines that a search returns, unless the request sets another.
const HITS: usize = 100;
/// The version of the protocol.
const PROTOCOL: u64 = 1;
/// The maximum number of characters that are reported of the last message in a log.
const LAST: usize = 200;

/// The options that all sessions of a client share.
pub struct ServerOptions {
    /// The name of the API whose messages are read and written.
    pub api: String,
    /// The recipe of the contexts.
    pub recipe: Recipe,
    /// Where the logs are; `None` keeps contexts in memory only.
    pub logs: Option<Box<dyn LogStore>>,
    /// Counts tokens.
    pub counter: Arc<dyn Counter + Send>,
    /// The model that writes summaries, if there is one.
    pub model: Option<Arc<dyn SummaryModel>>,
}

/// Sizes in tokens, and whether the client writes summaries. A session may override each value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// The context window of the agent's model, in tokens.
    pub window: u64,
    /// The tokens of everything in a request that is not in messages.
    pub overhead: u64,
    /// Whether the client answers questions for summaries.
    pub summaries: bool,
    /// The window of the model that the client calls for summaries, if that is another model than
    /// the agent's.
    pub writer_window: Option<u64>,
}

impl Size {
    /// Checks that there is room for messages in the window.
    ///
    /// # Errors
    ///
    /// `Usage` if the window has no tokens, has more than 10^12 tokens, or is filled by the
    /// overhead.
    pub fn check(&self) -> Result<()> {
        window("window", Some(self.window))?;
        if self.overhead < self.window {
            return Ok(());
        }
        let overhead = self.overhead;
        let window = self.window;
        Err(usage(format!("an `overhead` of {overhead} fills a `window` of {window}")))
    }

    fn with(self, begin: &Begin) -> Result<Size> {
        let size = Size {
            window: begin.window.unwrap_or(self.window),
            overhead: begin.overhead.unwrap_or(self.overhead),
            summaries: begin.summaries.unwrap_or(self.summaries),
            writer_window: begin.writer_window.or(self.writer_window),
        };
        size.check().map(|()| size)
    }
}

/// An operation that is not finished. A client that writes summaries first gets the questions for a
/// summary; the answer to its request comes after its answer to the last question.
enum PendingOp {
    Call,
    Step,
    Compact,
    Refused(Recovery),
}

impl PendingOp {
    fn op(&self) -> &'static str {
        match self {
            PendingOp::Call => "call",
            PendingOp::Step => "step",
            PendingOp::Compact => "compact",
            PendingOp::Refused(_) => "refused",
        }
    }
}

/// A context that is open, with its log.
struct LoggedContext {
    context: Context,
    /// The items that the context had when the client was last told what to send to its model.
    sent: SentBefore,
    /// The request that waits for a summary.
    pending: Option<PendingOp>,
    path: Option<PathBuf>,
    /// The lock of the session's log; `None` if the session has no log.
    hold: Option<LogLock>,
}

/// A conversation with one client. It has a session for each context that the client uses.
///
/// A client with one context need not name it. A request with the member `context` is about the
/// context with that name. Contexts share nothing but the options.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_engine::pipe::{Server, ServerOptions, Size};
/// use epitome_passes::built_in;
/// use epitome_tokens::Estimate;
///
/// let recipe = built_in("epitome").expect("a built-in recipe");
/// let api = "anthropic".to_owned();
/// let counter = Arc::new(Estimate::new());
/// let options = ServerOptions { api, recipe, logs: None, counter, model: None };
/// let size = Size { window: 200_000, ..Size::default() };
/// let mut server = Server::new(options, size);
/// let request = br#"{"op":"call","messages":[{"role":"user","content":"Hello"}]}"#;
/// let answer = server.answer(request.to_vec());
/// assert!(answer.contains("Hello"), "{answer}");
/// assert!(server.answer(b"{}".to_vec()).starts_with(r#"{"error":"#));
/// let other = server.answer(br#"{"op":"call","context":"other"}"#.to_vec());
/// assert_eq!(other, r#"{"messages":[],"refs":{}}"#);
/// ```
pub struct Server {
    options: ServerOptions,
    /// The sizes with which a new context begins.
    size: Size,
    /// The contexts by their names.
    contexts: HashMap<Option<String>, OpenContext>,
}

/// A context of a client: its sizes, and its session if one is open.
#[derive(Default)]
struct OpenContext {
    size: Size,
    session: Option<LoggedContext>,
}

/// The context that a request is about, and the options of the server.
struct Exchange<'s> {
    options: &'s ServerOptions,
    /// The name of the context.
    name: Option<&'s str>,
    size: &'s mut Size,
    session: &'s mut Option<LoggedContext>,
}

impl Server {
    /// A server without an open session.
    pub fn new(options: ServerOptions, size: Size) -> Server {
        Server { options, size, contexts: HashMap::new() }
    }

    /// The answer to a request, as one line of JSON: `{"error": …}` if the request fails or is
    /// refused.
    pub fn answer(&mut self, line: Vec<u8>) -> String {
        self.answer_or_refuse(line)
            .unwrap_or_else(|err| json!({ "error": error_json(&err) }).to_string())
    }

    fn answer_or_refuse(&mut self, line: Vec<u8>) -> Result<String> {
        let Line { context: name, request } = Line::parse(&line)?;
        if matches!(request, Request::Close) {
            // The name and the sizes of the context are removed, too.
            let closed = self.contexts.remove(&name).is_some_and(|it| it.session.is_some());
            return Ok(json!({ "closed": closed }).to_string());
        }
        if let (Request::Hello(hello), None) = (&request, &name) {
            // A `hello` without a name of a context also sets `summaries` for the contexts that are
            // created later.
            self.size.summaries = hello.summaries.unwrap_or(self.size.summaries);
        }
        let size = self.size;
        let context = self.contexts.entry(name.clone());
        let context = context.or_insert_with(|| OpenContext { size, session: None });
        let mut exchange = Exchange {
            options: &self.options,
            name: name.as_deref(),
            size: &mut context.size,
            session: &mut context.session,
        };
        let step = exchange.begin_answer(request)?;
        // The line may have hundreds of megabytes, and is not needed any more.
        drop(line);
        match step {
            RequestState::Done(answer) => Ok(answer),
            RequestState::Due(operation) => exchange.go_on(operation),
        }
    }
}

/// How far a request has been handled: to its answer, or to the operation that is still due.
enum RequestState {
    Done(String),
    /// The content of the request was added to the context. The operation still has to be carried
    /// out; then the request is answered.
    Due(PendingOp),
}

impl Exchange<'_> {
    fn begin_answer(&mut self, asked: Request<'_>) -> Result<RequestState> {
        if let Some(pending) = self.session.as_ref().and_then(|it| it.pending.as_ref()) {
            answered_first(pending, &asked)?;
        }
        let answer = match asked {
            Request::Hello(hello) => {
                self.size.summaries = hello.summaries.unwrap_or(self.size.summaries);
                self.hello()?.to_string()
            }
            Request::Reset(begin) => self.reset(&begin)?.to_string(),
            Request::Open(open) => self.open(open)?.to_string(),
            Request::View(view) => {
                self.view(&view)?;
                return Ok(RequestState::Due(PendingOp::Call));
            }
            Request::Call(call) => {
                self.call(&call)?;
                return Ok(RequestState::Due(PendingOp::Call));
            }
            Request::Step(step) => {
                self.call(&step)?;
                return Ok(RequestState::Due(PendingOp::Step));
            }
            Request::Push(push) => {
                self.call(&push)?;
                json!({ "ok": true }).to_string()
            }
            Request::Force(force) => self.force(&force)?,
            Request::Usage => self.usage()?,
            Request::Compact(compact) => {
                let focus = compact.focus.as_deref().filter(|focus| !focus.trim().is_empty());
                self.session()?.context.ask_for_compaction(focus, compact.target.map(Tokens));
                return Ok(RequestState::Due(PendingOp::Compact));
            }
            Request::Refused(refused) => {
                let recovery =
                    self.session()?.context.recover_from_refusal(refused.status, &refused.body)?;
                let is_due = matches!(recovery, Recovery::Summarise { .. });
                let operation = PendingOp::Refused(recovery);
                if is_due {
                    return Ok(RequestState::Due(operation));
                }
                self.done(operation)?
            }
            Request::Answer(reply) => {
                let session = self.session()?;
                session.context.answer(reply)?;
                return Ok(RequestState::Due(session.pending.take().unwrap_or(PendingOp::Call)));
            }
            Request::Recall(recall) => self.recall(&recall)?.to_string(),
            Request::Undo => json!({ "undone": self.session()?.context.undo()? }).to_string(),
            Request::Close => json!({ "closed": self.session.take().is_some() }).to_string(),
        };
        Ok(RequestState::Done(answer))
    }

    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let api = self.options.api.clone();
        let billed = call.billed()?;
        say(&mut self.session()?.context, &api, &call.messages, billed)
    }

    fn view(&mut self, view: &Call<'_>) -> Result<()> {
        let api = self.options.api.clone();
        let billed = view.billed()?;
        let messages: Vec<&str> = view.messages.iter().map(|message| message.get()).collect();
        let context = &mut self.session()?.context;
        context.sync(&api, &messages, billed).map(drop).map_err(not_said)
    }

    /// Continues a request. If a summary is needed, the model in the options writes it. Without
    /// such a model, if the client writes summaries, the answer is a question to the client, and
    /// the request is answered after the last question. Otherwise no summary is written.
    fn go_on(&mut self, pending: PendingOp) -> Result<String> {
        let summaries = self.size.summaries;
        let model = self.options.model.clone();
        let session = self.session()?;
        match model {
            Some(model) => {
                session.context.view_with(|question| model.answer(question))?;
            }
            None if summaries => {
                if let Next::Ask(question) = session.context.step()? {
                    session.pending = Some(pending);
                    return Ok(json!({ "ask": question.ask, "why": question.why }).to_string());
                }
            }
            None => drop(session.context.view()?),
        }
        self.done(pending)
    }

    fn done(&mut self, pending: PendingOp) -> Result<String> {
        let api = self.options.api.clone();
        let LoggedContext { context, sent, .. } = self.session()?;
        match pending {
            PendingOp::Call => {
                *sent = SentBefore::from_context(context);
                Sent::from_context(&api, context)?.line()
            }
            PendingOp::Step => {
                let now = SentBefore::from_context(context);
                let changed = !now.only_adds_to(sent);
                *sent = now;
                let events = context.events();
                Ok(json!({ "changed": changed, "events": events }).to_string())
            }
            PendingOp::Compact => {
                let usage = context.usage();
                let events = context.events();
                let outcome = context.outcome().map(Outcome::to_string);
                Ok(json!({ "usage": usage, "outcome": outcome, "events": events }).to_string())
            }
            PendingOp::Refused(recovery) => {
                let recovery = context.recovery_result(recovery);
                *sent = SentBefore::from_context(context);
                Sent::from_context(&api, context)?.after(recovery).line()
            }
        }
    }

    /// Compacts only the messages in the request. The session is neither read nor changed.
    fn force(&mut self, asked: &Force<'_>) -> Result<String> {
        let api = &self.options.api;
        let mut context = Context::in_memory(self.setup(*self.size, "forced"));
        say(&mut context, api, &asked.messages, None)?;
        let tokens = context.usage().tokens.0 as f64;
        let target = asked.target_ratio.map_or(0, |ratio| (tokens * ratio) as u64);
        // A forced compaction is made even if the context is small.
        context.ask_for_compaction(None, Some(Tokens(target)));
        match &self.options.model {
            Some(model) => context.view_with(|question| model.answer(question))?,
            None => context.view()?,
        };
        Sent::from_context(api, &mut context)?.line()
    }

    fn usage(&mut self) -> Result<String> {
        let spent = self.options.model.as_ref().map(|model| model.spent());
        let context = &self.session()?.context;
        let mut reply = json!({ "usage": context.usage(), "report": context.report() });
        if let Some(spent) = spent {
            reply["models"] = spent;
        }
        Ok(reply.to_string())
    }

    fn recall(&mut self, recall: &Recall) -> Result<Value> {
        let context = &self.session()?.context;
        let limit = recall.limit.unwrap_or(HITS);
        match (&recall.reference, &recall.search) {
            (None, None) => Err(usage("recall takes a `ref`, a `search`, or both")),
            (None, Some(search)) => Ok(json!({ "hits": context.search(search, limit) })),
            (Some(name), search) => {
                let recalled = recalled(context, name)?;
                Ok(match search {
                    Some(search) => json!({ "hits": hits(name, &recalled, search, limit) }),
                    None => json!(recalled),
                })
            }
        }
    }

    fn hello(&self) -> Result<Value> {
        let tool = compact_tool(&self.options.api)?;
        let tool: Value = serde_json::from_str(&tool)
            .map_err(|err| Error::new(ErrorKind::Broken, err.to_string()))?;
        Ok(json!({
            "ok": true,
            "epitome": env!("CARGO_PKG_VERSION"),
            "protocol": PROTOCOL,
            "recipe": self.options.recipe.name,
            "window": self.size.window,
            "wire": self.options.api,
            "tool": tool,
        }))
    }

    /// Begins a session in place of the current one. If that fails, the current session stays open.
    fn reset(&mut self, begin: &Begin) -> Result<Value> {
        let name = begin.session.as_deref().or(self.name).unwrap_or("session");
        let size = self.size.with(begin)?;
        let setup = self.setup(size, name);
        let Some(logs) = &self.options.logs else {
            self.begin(size, Context::in_memory(setup), None, None);
            return Ok(json!({ "ok": true }));
        };
        let NewLog { path, context, lock } = logs.create(name, setup)?;
        let answer = json!({ "ok": true, "log": path.display().to_string() });
        self.begin(size, context, Some(path), Some(lock));
        Ok(answer)
    }

    /// Continues a session from its log, in place of the current one. If that fails, the current
    /// session stays open.
    fn open(&mut self, open: Open) -> Result<Value> {
        let Some(logs) = &self.options.logs else {
            return Err(usage("there is no log to open: this engine keeps none (--no-log)"));
        };
        let path = match (&open.log, &open.session) {
            (Some(path), None) => PathBuf::from(path),
            (None, Some(session)) => logs.newest(session)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(usage("`open` has either `log` or `session`"));
            }
        };
        let Some(name) = logs.id(&path) else {
            // The file is not a log. It is opened without a lock, only to get the error.
            return Err(match logs.resume(&path, self.setup(*self.size, "")) {
                Err(err) => err,
                Ok(_) => Error::new(ErrorKind::Changed, "the log changed meanwhile"),
            });
        };
        let begin = open.begin(name.clone())?;
        let size = self.size.with(&begin)?;
        // If the log is that of the open session, the session's lock is used for it.
        let ours = self.session.as_ref().and_then(|session| session.path.as_deref());
        let is_ours = ours.is_some_and(|ours| logs.is_same(ours, &path));
        let hold = if is_ours { None } else { Some(logs.lock(&path)?) };
        let context = logs.resume(&path, self.setup(size, &name))?;
        let state = log_state(&path, &name, &context);
        let hold = hold.or_else(|| self.session.take().and_then(|session| session.hold));
        self.begin(size, context, Some(path), hold);
        Ok(state)
    }

    fn begin(
        &mut self,
        size: Size,
        context: Context,
        path: Option<PathBuf>,
        hold: Option<LogLock>,
    ) {
        *self.size = size;
        let sent = SentBefore::at_the_beginning(&context);
        *self.session = Some(LoggedContext { context, sent, pending: None, path, hold });
    }

    fn setup(&self, size: Size, session: &str) -> Setup {
        let ServerOptions { recipe, counter, model, .. } = &self.options;
        let setup = Setup::with_shared_counter(recipe.clone(), Arc::clone(counter))
            .with_id(session)
            .with_window(Tokens(size.window))
            .with_overhead(Tokens(size.overhead));
        if let Some(model) = model {
            return setup.with_writer(model.writer());
        }
        if !size.summaries {
            return setup;
        }
        let window = Tokens(size.writer_window.unwrap_or(size.window));
        setup.with_writer(Writer { window, counter: Arc::clone(counter) })
    }

    /// The open session. If there is none, a session with the default name is begun.
    fn session(&mut self) -> Result<&mut LoggedContext> {
        if self.session.is_none() {
            self.reset(&Begin::default())?;
        }
        Ok(self.session.as_mut().expect("it was just begun"))
    }
}

/// Refuses a request that would change the context while the client has not answered a question for
/// a summary. A change could make the answer useless.
fn answered_first(pending: &PendingOp, asked: &Request<'_>) -> Result<()> {
    match asked {
        Request::Hello(_)
        | Request::Reset(_)
        | Request::Open(_)
        | Request::Force(_)
        | Request::Usage
        | Request::Answer(_)
        | Request::Recall(_)
        | Request::Close => Ok(()),
        Request::Call(_)
        | Request::Push(_)
        | Request::Step(_)
        | Request::View(_)
        | Request::Compact(_)
        | Request::Refused(_)
        | Request::Undo => {
            let what = format!("the question that `{}` asked has no answer yet", pending.op());
            Err(usage(what).with_hint("`answer` it first, with `failed` if there is no answer"))
        }
    }
}

fn say(
    context: &mut Context,
    api: &str,
    messages: &[&RawValue],
    billed: Option<Tokens>,
) -> Result<()> {
    let messages: Vec<&str> = messages.iter().map(|message| message.get()).collect();
    context.push_messages(api, &messages, billed).map_err(not_said)
}

/// Converts an `Unreadable` error to a `Usage` error, because the client sent the messages that
/// cannot be read. Other errors are unchanged.
fn not_said(err: Error) -> Error {
    match err.kind() {
        ErrorKind::Unreadable => {
            let refused = usage(err.to_string());
            err.hint().into_iter().fold(refused, Error::with_hint)
        }
        _ => err,
    }
}

/// The state of a log, from which a client sees which messages it need not send again.
fn log_state(path: &Path, session: &str, context: &Context) -> Value {
    let report = context.report();
    let open: Vec<String> = context.open_calls().into_iter().map(|(id, _)| id.into()).collect();
    let view = context.unchanged_view();
    let last = view.transcript().context().next_back().map(|(_, entry)| {
        let words = entry.blocks.iter().find_map(|block| match block {
            Block::Text(text) | Block::Summary(text) => Some(text.read(view.source()).into_owned()),
            Block::Output(output) => Some(output.text(view.source())),
            Block::Call(call) => Some(call.name.to_string()),
            _ => None,
        });
        let role = match entry.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::System => "system",
        };
        json!({ "role": role, "text": short(&words.unwrap_or_default(), LAST) })
    });
    json!({
        "ok": true,
        "log": path.display().to_string(),
        "session": session,
        "messages": context.message_count(),
        "entries": report.entries,
        "compactions": report.compactions,
        "open_calls": open,
        "last": last,
        "usage": context.usage(),
    })
}

/// An error as JSON: `kind` and `message`, and `causes` and `hints` if there are any. It is the
/// member `error` of an answer.
///
/// ```
/// use epitome_engine::pipe::error_json;
/// use epitome_error::{Error, ErrorKind};
///
/// let err = Error::new(ErrorKind::NotFound, "no such session").with_hint("list them");
/// let json = r#"{"hints":["list them"],"kind":"not-found","message":"no such session"}"#;
/// assert_eq!(error_json(&err).to_string(), json);
/// ```
pub fn error_json(err: &Error) -> Value {
    let mut refusal = json!({ "kind": err.kind().name(), "message": err.to_string() });
    let causes: Vec<String> = causes(err).map(ToString::to_string).collect();
    let hints: Vec<&str> = err.hint().into_iter().flat_map(str::lines).collect();
    if !causes.is_empty() {
        refusal["causes"] = json!(causes);
    }
    if !hints.is_empty() {
        refusal["hints"] = json!(hints);
    }
    refusal
}

/// The texts that a name refers to. `Usage` if `name` does not have the form of a name, `NotFound`
/// if there is no such text.
fn recalled(context: &Context, name: &str) -> Result<RecallResult> {
    let Some(wanted) = Name::parse(name) else {
        let name = short(name, 40);
        let what = format!("`{name}` is no reference: one is like k7f3a9c2, #4 or @7");
        return Err(usage(what));
    };
    context.recall_name(&wanted).ok_or_else(|| {
        let what = match wanted {
            Name::Calls(_) => format!("there is no call {name} with a result"),
            Name::Responses(_) => format!("there is no response {name} with a text"),
            Name::Text(reference) => format!("nothing was removed under {reference}"),
        };
        Error::new(ErrorKind::NotFound, what)
    })
}

/// The first `limit` lines that contain `search`, in the texts that a name refers to.
fn hits(name: &str, recalled: &RecallResult, search: &str, limit: usize) -> Vec<Hit> {
    let texts_found =
        recalled.response_texts.iter().map(|it| (response_name(it.response), &it.text));
    let all = texts_found.chain([(name.to_owned(), &recalled.text)]);
    let hits = all.flat_map(|(name, text)| {
        let lines = text.lines().enumerate().filter(|(_, line)| line.contains(search));
        let hits = lines.map(|(at, line)| Hit {
            name: name.clone(),
            line: at as u64 + 1,
            text: line.to_owned(),
        });
        hits.collect::<Vec<_>>()
    });
    hits.take(limit).collect()
}
