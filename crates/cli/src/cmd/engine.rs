//! `epitome engine`: a live context over a pipe, for agents in any language.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args as ClapArgs;
use epitome::live::{Context, Next, Outcome, Outgoing, Recovery, Setup, compact_tool};
use epitome::{Naming, named_models, summary_writer};
use epitome_formats::WIRES;
use epitome_llm::{Patient, Stop};
use epitome_model::{Block, Part, Ref, Stub, Tokens};
use epitome_passes::{Event, NoReply, Recipe, Reply, Stopped, Used, Writer};
use epitome_tokens::{Estimate, O200k};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::app::{App, Count};
use crate::choice;
use crate::failure::{Failure, Result, Status};
use crate::session::parse_tokens;

const EXAMPLES: &str = "\
Examples:
  epitome engine --recipe s06 --window 200k
  echo '{\"op\":\"hello\"}' | epitome engine";

/// What a model takes if nobody says it.
const WINDOW: u64 = 200_000;

/// The version of what is spoken over the pipe.
const PROTOCOL: u64 = 1;

/// Keep an agent's context small while it runs: one JSON object a line, in and out
///
/// An agent says what was said, and gets what to send. See docs/engine.md for what it may ask.
/// Everything that was said stays in a log, which every other command reads.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// Tokens that the model takes (128000, 200k) [default: 200k]
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,

    /// Tokens that every request has beside the messages: prompt and tools [default: 0]
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub overhead: Option<u64>,

    /// The wire whose messages come and go
    #[arg(long, value_name = "WIRE", default_value = "anthropic", value_parser = wires())]
    pub wire: String,

    /// Keep logs in this folder instead of epitome's own
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_log")]
    pub log: Option<PathBuf>,

    /// Keep logs in memory only: what goes is gone with the program
    #[arg(long)]
    pub no_log: bool,

    /// The model that writes summaries, as PROVIDER/MODEL; without one there are none.
    /// docs/models.md says which there are, and where their keys are looked for
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Where that model is, if not where its provider is
    #[arg(long, value_name = "URL", requires = "model")]
    pub base_url: Option<String>,

    /// A model to ask when that one has no answer; may be given several times
    #[arg(long, value_name = "MODEL")]
    pub fallback: Vec<String>,
}

fn wires() -> clap::builder::PossibleValuesParser {
    WIRES.iter().map(|wire| wire.name).collect::<Vec<_>>().into()
}

/// What an agent asks, and all that it may say with it.
#[derive(Deserialize)]
struct Request {
    op: Op,
    session: Option<String>,
    window: Option<u64>,
    overhead: Option<u64>,
    #[serde(default)]
    messages: Vec<Box<RawValue>>,
    usage: Option<Billed>,
    target_ratio: Option<f64>,
    focus: Option<String>,
    status: Option<u16>,
    #[serde(default)]
    body: String,
    #[serde(default, rename = "ref")]
    reference: String,
    /// Whether questions for summaries are answered.
    summaries: Option<bool>,
    /// Tokens that the model takes which writes them.
    writer_window: Option<u64>,
    text: Option<String>,
    stopped: Option<String>,
    failed: Option<String>,
    #[serde(default)]
    too_long: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Hello,
    Reset,
    Call,
    Force,
    Usage,
    Compact,
    Refused,
    Answer,
    Recall,
    Undo,
}

/// What the provider counted for the last response among the messages.
#[derive(Clone, Copy, Deserialize)]
struct Billed {
    input: u64,
    #[serde(default)]
    output: u64,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let settings = app.settings()?;
    let name = args.recipe.as_deref().or(settings.live_recipe());
    let recipe = choice::set(app, name)?.with(&settings.changes());
    let window = args.window.or(settings.values.live.window).unwrap_or(WINDOW);
    let overhead = args.overhead.or(settings.values.live.overhead).unwrap_or(0);
    let folder = args.log.clone().unwrap_or_else(|| app.config.logs());
    let folder = (!args.no_log).then_some(folder);
    let estimate = app.global.count == Count::Estimate;
    let mut engine = Engine {
        args: args.clone(),
        summaries: false,
        writer_window: None,
        midst: None,
        recipe,
        window,
        overhead,
        folder,
        estimate,
        model: model(app, args)?.map(Arc::new),
        context: None,
    };
    let (stdin, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in stdin.split(b'\n') {
        let line = line?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = engine.answer(&line);
        let answer = answer.unwrap_or_else(|failure| json!({ "error": failure }).to_string());
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// What a question for a summary came up in; it is answered when nothing is asked any more.
enum Midst {
    Call,
    Compact,
    Refused(Recovery),
}

/// The model that somebody named, here or in the settings.
fn model(app: &App, args: &Args) -> Result<Option<Patient>> {
    let set = &app.settings()?.values.compaction;
    let Some(model) = args.model.as_deref().or(set.model.as_deref()) else { return Ok(None) };
    let of_settings: Vec<String> = set.fallback.iter().cloned().collect();
    let fallback = if args.fallback.is_empty() { &of_settings } else { &args.fallback };
    let address = args.base_url.as_deref();
    let naming = Naming { model: Some(model), address, fallback, ..Naming::default() };
    Ok(Some(named_models(&app.config, &naming)?))
}

struct Engine {
    args: Args,
    summaries: bool,
    writer_window: Option<u64>,
    midst: Option<Midst>,
    recipe: Recipe,
    window: u64,
    overhead: u64,
    folder: Option<PathBuf>,
    estimate: bool,
    model: Option<Arc<Patient>>,
    context: Option<Context>,
}

impl Engine {
    fn answer(&mut self, line: &[u8]) -> Result<String> {
        let asked: Request = serde_json::from_slice(line)
            .map_err(|err| Failure::usage(format!("this asks for nothing known: {err}")))?;
        match asked.op {
            Op::Hello => {
                self.summaries = asked.summaries.unwrap_or(self.summaries);
                Ok(self.hello()?.to_string())
            }
            Op::Reset => {
                self.window = asked.window.unwrap_or(self.window);
                self.overhead = asked.overhead.unwrap_or(self.overhead);
                self.summaries = asked.summaries.unwrap_or(self.summaries);
                self.writer_window = asked.writer_window.or(self.writer_window);
                self.midst = None;
                Ok(self.reset(asked.session.as_deref().unwrap_or("session"))?.to_string())
            }
            Op::Call => self.call(&asked),
            Op::Force => self.force(&asked),
            Op::Usage => {
                let spent = self.model.as_ref().map(|model| model.spent());
                let context = self.context()?;
                let (usage, report) = (context.usage(), context.report());
                let mut told = json!({ "usage": usage, "report": report });
                if let Some(spent) = spent {
                    told["models"] = json!(spent);
                }
                Ok(told.to_string())
            }
            Op::Compact => {
                let context = self.context()?;
                context.ask_for_compaction(asked.focus.as_deref(), None);
                self.go_on(Midst::Compact)
            }
            Op::Refused => {
                let context = self.context()?;
                let recovery = context.refused(asked.status, &asked.body)?;
                match recovery {
                    Recovery::Summarise { .. } => self.go_on(Midst::Refused(recovery)),
                    Recovery::NotAnOverflow | Recovery::Retry { .. } | Recovery::Final { .. } => {
                        self.done(Midst::Refused(recovery))
                    }
                }
            }
            Op::Answer => {
                let context = self.context()?;
                context.answer(reply(&asked))?;
                let midst = self.midst.take().unwrap_or(Midst::Call);
                self.go_on(midst)
            }
            Op::Recall => Ok(self.recall(&asked.reference)?.to_string()),
            Op::Undo => Ok(json!({ "undone": self.context()?.undo()? }).to_string()),
        }
    }

    fn call(&mut self, asked: &Request) -> Result<String> {
        let wire = self.args.wire.clone();
        let context = self.context()?;
        say(context, &wire, &asked.messages)?;
        if let Some(Billed { input, output }) = asked.usage {
            context.billed(Tokens(input + output));
        }
        self.go_on(Midst::Call)
    }

    /// Does what is due, with the model that was named. Without one, whoever answers questions is
    /// asked the next one; the answer to all of it follows.
    fn go_on(&mut self, midst: Midst) -> Result<String> {
        let (summaries, model) = (self.summaries, self.model.clone());
        let context = self.context()?;
        match model {
            Some(model) => drop(context.view_with(&*model, &Stop::default())?),
            None if summaries => {
                if let Next::Ask(question) = context.step()? {
                    self.midst = Some(midst);
                    return Ok(json!({ "ask": question.ask, "why": question.why }).to_string());
                }
            }
            None => drop(context.view()?),
        }
        self.done(midst)
    }

    fn done(&mut self, midst: Midst) -> Result<String> {
        let wire = self.args.wire.clone();
        let context = self.context()?;
        match midst {
            Midst::Call => Sent::of(&wire, context)?.line(),
            Midst::Compact => {
                let (usage, events) = (context.usage(), context.events());
                let outcome = context.outcome().map(Outcome::to_string);
                Ok(json!({ "usage": usage, "outcome": outcome, "events": events }).to_string())
            }
            Midst::Refused(recovery) => {
                Sent { refused: Some(recovery), ..Sent::of(&wire, context)? }.line()
            }
        }
    }

    /// Compacts these messages alone: the session is not asked and not changed.
    fn force(&mut self, asked: &Request) -> Result<String> {
        let wire = &self.args.wire;
        let mut context = Context::in_memory(self.setup("forced"));
        say(&mut context, wire, &asked.messages)?;
        let tokens = context.usage().tokens.0 as f64;
        let target = asked.target_ratio.map(|ratio| Tokens((tokens * ratio) as u64));
        context.ask_for_compaction(None, target);
        match &self.model {
            Some(model) => drop(context.view_with(&**model, &Stop::default())?),
            None => drop(context.view()?),
        }
        Sent::of(wire, &mut context)?.line()
    }

    fn recall(&mut self, name: &str) -> Result<Value> {
        let context = self.context()?;
        let found = name.parse::<Ref>().ok().and_then(|reference| context.recall(&reference));
        let unknown = || {
            let what = format!("nothing was removed under {name}");
            Failure::new(Status::Unreadable, "not-found", what)
        };
        Ok(json!({ "text": found.ok_or_else(unknown)? }))
    }

    fn hello(&self) -> Result<Value> {
        let tool = compact_tool(&self.args.wire)?;
        let tool: Value = serde_json::from_str(&tool)
            .map_err(|err| Failure::new(Status::Bug, "bug", err.to_string()))?;
        Ok(json!({
            "ok": true,
            "epitome": env!("CARGO_PKG_VERSION"),
            "protocol": PROTOCOL,
            "recipe": self.recipe.name,
            "window": self.window,
            "wire": self.args.wire,
            "tool": tool,
        }))
    }

    fn reset(&mut self, session: &str) -> Result<Value> {
        let setup = self.setup(session);
        let Some(folder) = &self.folder else {
            self.context = Some(Context::in_memory(setup));
            return Ok(json!({ "ok": true }));
        };
        let path = free(folder, session);
        self.context = Some(Context::create(&path, setup)?);
        Ok(json!({ "ok": true, "log": path.display().to_string() }))
    }

    fn setup(&self, session: &str) -> Setup {
        let setup = Setup::new(self.recipe.clone())
            .with_id(session)
            .with_window(Tokens(self.window))
            .with_overhead(Tokens(self.overhead));
        let setup = if self.estimate { setup.with_counter(Estimate::new()) } else { setup };
        if let Some(model) = &self.model {
            return setup.with_writer(summary_writer(&**model));
        }
        if !self.summaries {
            return setup;
        }
        let window = Tokens(self.writer_window.unwrap_or(self.window));
        setup.with_writer(match self.estimate {
            true => Writer { window, counter: Arc::new(Estimate::new()) },
            false => Writer { window, counter: Arc::new(O200k::new()) },
        })
    }

    /// The context of the session; one without a name if nobody has begun any.
    fn context(&mut self) -> Result<&mut Context> {
        if self.context.is_none() {
            self.reset("session")?;
        }
        Ok(self.context.as_mut().expect("it was just begun"))
    }
}

/// What a model answered, as a client tells it.
fn reply(asked: &Request) -> std::result::Result<Reply, NoReply> {
    if asked.too_long {
        return Err(NoReply::TooLong);
    }
    let Some(text) = asked.text.clone() else {
        let reason = asked.failed.clone();
        return Err(NoReply::Failed(reason.unwrap_or_else(|| "there is no answer".into())));
    };
    let stopped = match asked.stopped.as_deref() {
        None | Some("end") => Stopped::End,
        Some("length") => Stopped::Length,
        Some("call") => Stopped::Call,
        Some("refused") => Stopped::Refused,
        Some(other) => Stopped::Other(other.to_owned()),
    };
    let used = asked.usage.map(|Billed { input, output }| Used {
        input: Tokens(input),
        output: Tokens(output),
        ..Used::default()
    });
    Ok(Reply { text, stopped, used })
}

fn say(context: &mut Context, wire: &str, messages: &[Box<RawValue>]) -> Result<()> {
    for message in messages {
        context.push_json(wire, message.get())?;
    }
    Ok(())
}

/// What is to be sent, and what happened.
#[derive(Serialize)]
struct Sent {
    /// On Anthropic's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Box<RawValue>>,
    /// On another wire: the body of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    refs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Recovery>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
}

impl Sent {
    fn of(wire: &str, context: &mut Context) -> Result<Sent> {
        let view = context.as_it_is();
        let raw = |text: String| {
            RawValue::from_string(text).map_err(|err| {
                Failure::new(Status::Bug, "bug", format!("a view is no JSON: {err}"))
            })
        };
        let (mut messages, mut body) = (None, None);
        match wire {
            "anthropic" => messages = Some(raw(view.messages())?),
            wire => {
                let made = view.body(wire)?.body;
                body = Some(raw(if made.is_empty() { "null".into() } else { made })?);
            }
        }
        let refs = refs(&view);
        Ok(Sent { messages, body, refs, refused: None, events: context.events() })
    }

    fn line(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|err| Failure::new(Status::Bug, "bug", err.to_string()))
    }
}

/// Of each result that was left out: the text in the view under which it can be had.
fn refs(view: &Outgoing<'_>) -> BTreeMap<String, String> {
    let blocks = view.transcript().context().flat_map(|(_, entry)| &entry.blocks);
    let stubs = blocks.filter_map(|block| match block {
        Block::Output(output) => match output.parts.as_slice() {
            [Part::Text(text)] => {
                let stub = Stub::parse(&text.read(view.source()))?;
                Some((output.call.to_string(), stub.reference().to_string()))
            }
            _ => None,
        },
        _ => None,
    });
    stubs.collect()
}

/// A file of this name that is not there yet.
fn free(folder: &Path, session: &str) -> PathBuf {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = session.chars().take(80).map(|c| if fits(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches('.').to_owned();
    let name = if name.is_empty() { "session".to_owned() } else { name };
    let names = std::iter::once(name.clone()).chain((2_u64..).map(|n| format!("{name}-{n}")));
    names
        .map(|name| folder.join(format!("{name}.jsonl")))
        .find(|path| !path.exists())
        .expect("there are more numbers than files")
}
