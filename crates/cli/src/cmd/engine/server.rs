//! A talk over the pipe: the session that is open, and what each line does to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome::ErrorKind;
use epitome::live::{self, Context, Hit, Next, Outcome, Recalled, Recovery, Setup, compact_tool};
use epitome::models::summary_writer;
use epitome::storage::Hold;
use epitome_llm::{RetryingModel, Stop};
use epitome_model::{Block, Role, Tokens, short};
use epitome_passes::{Name, NoReply, Recipe, Reply, Writer, response_name};
use epitome_tokens::{Estimate, O200k};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::logs::{self, Logs};
use super::request::{Begin, Call, Force, Open, Recall, Request, window};
use super::sent::Sent;
use crate::failure::{Failure, Result, Status};

/// Lines that a search returns unless it asks for others.
const HITS: usize = 100;
/// The version of what is spoken over the pipe.
const PROTOCOL: u64 = 1;
/// Characters of the last words that are told of a log.
const LAST: usize = 200;

/// What holds for every session of a talk.
pub struct ServerOptions {
    pub wire: String,
    pub recipe: Recipe,
    /// None if logs are in memory only.
    pub logs: Option<Logs>,
    pub estimate: bool,
    pub model: Option<Arc<RetryingModel>>,
}

/// How large things are, and who writes summaries: a session may say it anew.
#[derive(Clone, Copy)]
pub struct Size {
    /// Tokens that the model takes.
    pub window: u64,
    /// Of these, what every request has beside the messages.
    pub overhead: u64,
    /// Whether the client answers questions for summaries.
    pub summaries: bool,
    /// Tokens that the model takes that is asked, if it is another.
    pub writer_window: Option<u64>,
}

impl Size {
    /// That something fits into the window.
    pub fn check(&self) -> Result<()> {
        window("window", Some(self.window))?;
        if self.overhead < self.window {
            return Ok(());
        }
        let (overhead, window) = (self.overhead, self.window);
        Err(Failure::usage(format!("an `overhead` of {overhead} fills a `window` of {window}")))
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

/// What a question for a summary came up in; it is answered when nothing is asked any more.
enum PendingOp {
    Call,
    Compact,
    Refused(Recovery),
}

impl PendingOp {
    fn op(&self) -> &'static str {
        match self {
            PendingOp::Call => "call",
            PendingOp::Compact => "compact",
            PendingOp::Refused(_) => "refused",
        }
    }
}

/// A session that is open.
struct Session {
    context: Context,
    /// What somebody is asked for.
    midst: Option<PendingOp>,
    path: Option<PathBuf>,
    /// Nobody else works on its log.
    hold: Option<Hold>,
}

pub struct Server {
    ways: ServerOptions,
    size: Size,
    session: Option<Session>,
}

impl Server {
    pub fn new(ways: ServerOptions, size: Size) -> Server {
        Server { ways, size, session: None }
    }

    /// The answer to a line.
    pub fn answer(&mut self, line: Vec<u8>) -> Result<String> {
        let asked = Request::of(&line)?;
        if let Some(midst) = self.session.as_ref().and_then(|it| it.midst.as_ref()) {
            answered_first(midst, &asked)?;
        }
        match asked {
            Request::Hello(hello) => {
                self.size.summaries = hello.summaries.unwrap_or(self.size.summaries);
                Ok(self.hello()?.to_string())
            }
            Request::Reset(begin) => Ok(self.reset(&begin)?.to_string()),
            Request::Open(open) => Ok(self.open(open)?.to_string()),
            Request::Call(call) => {
                self.call(&call)?;
                // It may be hundreds of megabytes, and the log has it now.
                drop(call);
                drop(line);
                self.go_on(PendingOp::Call)
            }
            Request::Force(force) => self.force(&force),
            Request::Usage => self.usage(),
            Request::Compact(compact) => {
                let focus = compact.focus.as_deref().filter(|focus| !focus.trim().is_empty());
                self.session()?.context.ask_for_compaction(focus, compact.target.map(Tokens));
                self.go_on(PendingOp::Compact)
            }
            Request::Refused(refused) => {
                let recovery = self.session()?.context.refused(refused.status, &refused.body)?;
                match recovery {
                    Recovery::Summarise { .. } => self.go_on(PendingOp::Refused(recovery)),
                    Recovery::NotAnOverflow | Recovery::Retry { .. } | Recovery::Final { .. } => {
                        self.done(PendingOp::Refused(recovery))
                    }
                }
            }
            Request::Answer(reply) => self.answered(reply),
            Request::Recall(recall) => Ok(self.recall(&recall)?.to_string()),
            Request::Undo => Ok(json!({ "undone": self.session()?.context.undo()? }).to_string()),
        }
    }

    fn call(&mut self, call: &Call<'_>) -> Result<()> {
        let (wire, billed) = (self.ways.wire.clone(), call.billed()?);
        say(&mut self.session()?.context, &wire, &call.messages, billed)
    }

    fn answered(&mut self, reply: std::result::Result<Reply, NoReply>) -> Result<String> {
        let session = self.session()?;
        session.context.answer(reply)?;
        let midst = session.midst.take().unwrap_or(PendingOp::Call);
        self.go_on(midst)
    }

    /// Does what is due, with the model that was named. Without one, whoever answers questions is
    /// asked the next one; the answer to all of it follows.
    fn go_on(&mut self, midst: PendingOp) -> Result<String> {
        let (summaries, model) = (self.size.summaries, self.ways.model.clone());
        let session = self.session()?;
        match model {
            Some(model) => {
                session.context.view_with(live::written_by(&*model, &Stop::default()))?;
            }
            None if summaries => {
                if let Next::Ask(question) = session.context.step()? {
                    session.midst = Some(midst);
                    return Ok(json!({ "ask": question.ask, "why": question.why }).to_string());
                }
            }
            None => drop(session.context.view()?),
        }
        self.done(midst)
    }

    fn done(&mut self, midst: PendingOp) -> Result<String> {
        let wire = self.ways.wire.clone();
        let context = &mut self.session()?.context;
        match midst {
            PendingOp::Call => Sent::of(&wire, context)?.line(),
            PendingOp::Compact => {
                let (usage, events) = (context.usage(), context.events());
                let outcome = context.outcome().map(Outcome::to_string);
                Ok(json!({ "usage": usage, "outcome": outcome, "events": events }).to_string())
            }
            PendingOp::Refused(recovery) => {
                let recovery = context.recovered(recovery);
                Sent::of(&wire, context)?.after(recovery).line()
            }
        }
    }

    /// Compacts these messages alone: the session is not asked and not changed.
    fn force(&mut self, asked: &Force<'_>) -> Result<String> {
        let wire = &self.ways.wire;
        let mut context = Context::in_memory(self.setup(self.size, "forced"));
        say(&mut context, wire, &asked.messages, None)?;
        let tokens = context.usage().tokens.0 as f64;
        let target = asked.target_ratio.map_or(0, |ratio| (tokens * ratio) as u64);
        // Who forces it means it, whatever the size.
        context.ask_for_compaction(None, Some(Tokens(target)));
        match &self.ways.model {
            Some(model) => context.view_with(live::written_by(&**model, &Stop::default()))?,
            None => context.view()?,
        };
        Sent::of(wire, &mut context)?.line()
    }

    fn usage(&mut self) -> Result<String> {
        let spent = self.ways.model.as_ref().map(|model| model.spent());
        let context = &self.session()?.context;
        let mut told = json!({ "usage": context.usage(), "report": context.report() });
        if let Some(spent) = spent {
            told["models"] = json!(spent);
        }
        Ok(told.to_string())
    }

    fn recall(&mut self, recall: &Recall) -> Result<Value> {
        let context = &self.session()?.context;
        let limit = recall.limit.unwrap_or(HITS);
        match (&recall.reference, &recall.search) {
            (None, None) => Err(Failure::usage("recall takes a `ref`, a `search`, or both")),
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
        let tool = compact_tool(&self.ways.wire)?;
        let tool: Value = serde_json::from_str(&tool)
            .map_err(|err| Failure::new(Status::Bug, "bug", err.to_string()))?;
        Ok(json!({
            "ok": true,
            "epitome": env!("CARGO_PKG_VERSION"),
            "protocol": PROTOCOL,
            "recipe": self.ways.recipe.name,
            "window": self.size.window,
            "wire": self.ways.wire,
            "tool": tool,
        }))
    }

    /// Begins a session. If it cannot be, the one that is open stays.
    fn reset(&mut self, begin: &Begin) -> Result<Value> {
        let name = begin.session.as_deref().unwrap_or("session");
        let size = self.size.with(begin)?;
        let setup = self.setup(size, name);
        let Some(logs) = &self.ways.logs else {
            self.begin(size, Context::in_memory(setup), None, None);
            return Ok(json!({ "ok": true }));
        };
        let path = logs.next(name);
        let context = live::create(&path, setup)?;
        let hold = logs.hold(&path)?;
        let told = json!({ "ok": true, "log": path.display().to_string() });
        self.begin(size, context, Some(path), Some(hold));
        Ok(told)
    }

    /// Goes on with a session where its log was left. If it cannot be, the one that is open stays.
    fn open(&mut self, open: Open) -> Result<Value> {
        let Some(logs) = &self.ways.logs else {
            return Err(Failure::usage(
                "there is no log to open: this engine keeps none (--no-log)",
            ));
        };
        let path = match (&open.log, &open.session) {
            (Some(path), None) => PathBuf::from(path),
            (None, Some(session)) => logs.newest(session)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Failure::usage("`open` has either `log` or `session`"));
            }
        };
        let Some(name) = logs::id(&path) else {
            // What is no log makes no lock.
            return Err(match live::open(&path, self.setup(self.size, "")) {
                Err(err) => err.into(),
                Ok(_) => Failure::new(Status::Refused, "changed", "the log changed meanwhile"),
            });
        };
        let begin = open.begin(name.clone())?;
        let size = self.size.with(&begin)?;
        // The one that is open is read anew; nobody else has it.
        let ours = self.session.as_ref().is_some_and(|session| session.is_at(&path));
        let hold = if ours { None } else { Some(logs.hold(&path)?) };
        let context = live::open(&path, self.setup(size, &name))?;
        let held = told(&path, &name, &context);
        let hold = hold.or_else(|| self.session.take().and_then(|session| session.hold));
        self.begin(size, context, Some(path), hold);
        Ok(held)
    }

    fn begin(&mut self, size: Size, context: Context, path: Option<PathBuf>, hold: Option<Hold>) {
        self.size = size;
        self.session = Some(Session { context, midst: None, path, hold });
    }

    fn setup(&self, size: Size, session: &str) -> Setup {
        let ServerOptions { recipe, estimate, model, .. } = &self.ways;
        let setup = Setup::new(recipe.clone())
            .with_id(session)
            .with_window(Tokens(size.window))
            .with_overhead(Tokens(size.overhead));
        let setup = if *estimate { setup.with_counter(Estimate::new()) } else { setup };
        if let Some(model) = model {
            return setup.with_writer(summary_writer(&**model));
        }
        if !size.summaries {
            return setup;
        }
        let window = Tokens(size.writer_window.unwrap_or(size.window));
        setup.with_writer(if *estimate {
            Writer { window, counter: Arc::new(Estimate::new()) }
        } else {
            Writer { window, counter: Arc::new(O200k::new()) }
        })
    }

    /// The session that is open; one without a name if nobody has begun any.
    fn session(&mut self) -> Result<&mut Session> {
        if self.session.is_none() {
            self.reset(&Begin::default())?;
        }
        Ok(self.session.as_mut().expect("it was just begun"))
    }
}

impl Session {
    fn is_at(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        self.path.as_deref().and_then(real).is_some_and(|ours| Some(ours) == real(path))
    }
}

/// While a question for a summary is open, nobody may begin what would take its place: what came of
/// it would be lost.
fn answered_first(midst: &PendingOp, asked: &Request<'_>) -> Result<()> {
    match asked {
        Request::Hello(_)
        | Request::Reset(_)
        | Request::Open(_)
        | Request::Force(_)
        | Request::Usage
        | Request::Answer(_)
        | Request::Recall(_) => Ok(()),
        Request::Call(_) | Request::Compact(_) | Request::Refused(_) | Request::Undo => {
            let what = format!("the question that `{}` asked has no answer yet", midst.op());
            Err(Failure::usage(what).hint("`answer` it first, with `failed` if nobody can"))
        }
    }
}

fn say(
    context: &mut Context,
    wire: &str,
    messages: &[&RawValue],
    billed: Option<Tokens>,
) -> Result<()> {
    let messages: Vec<&str> = messages.iter().map(|message| message.get()).collect();
    context.push_messages(wire, &messages, billed).map_err(|err| match err.kind() {
        ErrorKind::Unreadable => {
            let failure = Failure::usage(err.to_string());
            err.hint().into_iter().fold(failure, Failure::hint)
        }
        _ => err.into(),
    })
}

/// What a log holds, so that a client knows what it need not say again.
fn told(path: &Path, session: &str, context: &Context) -> Value {
    let report = context.report();
    let open: Vec<String> = context.open_calls().into_iter().map(|(id, _)| id.into()).collect();
    let view = context.as_it_is();
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
        "messages": context.messages(),
        "entries": report.entries,
        "compactions": report.compactions,
        "open_calls": open,
        "last": last,
        "usage": context.usage(),
    })
}

/// What a name stands for.
fn recalled(context: &Context, name: &str) -> Result<Recalled> {
    let Some(wanted) = Name::parse(name) else {
        let name = short(name, 40);
        let what = format!("`{name}` is no reference: one is like k7f3a9c2, #4 or @7");
        return Err(Failure::usage(what));
    };
    context.recall_name(&wanted).ok_or_else(|| {
        let what = match wanted {
            Name::Calls(_) => format!("there is no call {name} with a result"),
            Name::Responses(_) => format!("there is no response {name} with a text"),
            Name::Text(reference) => format!("nothing was removed under {reference}"),
        };
        Failure::new(Status::Unreadable, "not-found", what)
    })
}

/// The lines of what a name stands for that hold a text.
fn hits(name: &str, recalled: &Recalled, search: &str, limit: usize) -> Vec<Hit> {
    let said = recalled.said.iter().map(|it| (response_name(it.response), &it.text));
    let all = said.chain([(name.to_owned(), &recalled.text)]);
    let hits = all.flat_map(|(name, text)| {
        let lines = text.lines().enumerate().filter(|(_, line)| line.contains(search));
        let hit = |(at, line): (usize, &str)| Hit {
            name: name.clone(),
            line: at as u64 + 1,
            text: line.to_owned(),
        };
        lines.map(hit).collect::<Vec<_>>()
    });
    hits.take(limit).collect()
}
