//! `epitome chat --demo`: shows what the engine does, with a scripted model and real tools, on a
//! generated project in its own folder.

mod guided;
mod model;
mod project;

use std::path::Path;
use std::sync::Arc;

use epitome::live;
use epitome_engine::{Context, ResponseCall};
use epitome_error::{Error, ErrorKind, Result};
use epitome_llm::Catalogue;
use epitome_model::Tokens;
use epitome_passes::{Recipe, built_in};

use crate::agent::{Agent, Front};
use crate::machine::{Event, Input, Limits, Machine, TurnEnd};
use crate::notices::{change, losses};
use crate::permissions::{Access, Answer, Permissions};
use crate::session::setup;
use crate::tools::Workplace;

use model::{ScriptedAnswer, ScriptedModel};

pub use guided::{Guided, ScriptLine, guided};

/// The context window: so small that it is full within a minute.
const WINDOW: Tokens = Tokens(24_000);

/// Runs the demo in an empty folder, and prints each line of it.
///
/// # Errors
///
/// If files cannot be written, or the engine does not do what the demo shows.
pub fn run(folder: &Path, print: &mut dyn FnMut(&Line)) -> Result<()> {
    let place = place(folder)?;
    let model = Arc::new(ScriptedModel::new(WINDOW));
    let log = folder.join("demo.jsonl");
    let context = live::create(&log, setup(recipe("epitome")?, &*model, None))?;
    let permissions = Permissions::new(place.root().to_owned());
    let mut machine = Machine::new(context, permissions, Limits::default())?;
    machine.prompt(PROMPT)?;
    let agent = Agent::new(machine, model.clone(), Catalogue::built_in(), place);
    let mut demo = Demo { agent, model, log, print };
    demo.done(&format!("a scripted model, with a window of {WINDOW} tokens that soon is full"));
    demo.ingest()?;
    demo.digest()?;
    demo.recall()?;
    demo.summary()?;
    demo.passes()?;
    demo.end()
}

const PROMPT: &str = "You are a coding agent. Recall what was shortened; do not guess it.";

/// Writes the project of the demo, and returns the workplace of the tools in it.
fn place(folder: &Path) -> Result<Workplace> {
    let root = folder.join("project");
    let failed = |err: std::io::Error| {
        Error::new(ErrorKind::Disk, "cannot write the project").at(folder).because(err)
    };
    project::write(&root).map_err(failed)?;
    Workplace::new(&root).map_err(failed)
}

/// A line of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The headline of a step.
    Step(String),
    /// A message of the user.
    User(String),
    /// A message of the model.
    Model(String),
    /// What happens besides messages: a call, its result, a compaction, a notice, or a remark of
    /// the demo.
    Done(String),
    /// How full the window is.
    Window(String),
}

struct Demo<'p> {
    agent: Agent,
    model: Arc<ScriptedModel>,
    log: std::path::PathBuf,
    print: &'p mut dyn FnMut(&Line),
}

impl Demo<'_> {
    fn ingest(&mut self) -> Result<()> {
        self.step("1. A long result is shortened before it is first sent (ingest).");
        let cat = ScriptedAnswer::call("shell", r#"{"command":"cat build.log"}"#);
        self.turn(
            "Why does the build fail? The log is in build.log.",
            [
                cat,
                ScriptedAnswer::say(
                    "src/pricing.rs, line 118: a u64 is given where a f64 is expected (E0308).",
                ),
            ],
        )?;
        let report = self.context().report();
        let originals = report.originals;
        let sent = report.sent;
        self.done(&format!("{originals} tokens so far, of which {sent} were sent"));
        self.expect(sent.0 * 2 < originals.0, "the log is shortened")
    }

    fn digest(&mut self) -> Result<()> {
        self.step("2. When the window fills, what is old becomes a digest of its own lines.");
        let mut steps: Vec<ScriptedAnswer> =
            (0..project::MODULES).map(ScriptedAnswer::read_module).collect();
        steps.push(ScriptedAnswer::say("All modules use the same table of rates."));
        self.turn("Read every file of src, one by one.", steps)?;
        let digested = !self.context().digested_calls().is_empty();
        self.expect(digested, "the window fills, and the old part becomes a digest")?;
        self.command("/losses")?;
        self.command("/undo")
    }

    fn recall(&mut self) -> Result<()> {
        self.step("3. Nothing is lost: the model reads back what was shortened (recall).");
        let found = ScriptedAnswer::recall("E0308");
        let step = ScriptedAnswer::say("error[E0308]: mismatched types, at src/pricing.rs:118:20.");
        self.turn("What exactly did the compiler say?", [found, step])
    }

    fn summary(&mut self) -> Result<()> {
        self.step("4. A model writes a summary, if the recipe says so (/recipe s06, /compact).");
        self.command("/undo")?;
        self.reopen("s06")?;
        self.command("/compact the error in pricing")?;
        let outcome = self.context().outcome();
        let written = outcome.is_some_and(|it| it.by_stage.contains_key("summary"));
        self.expect(written, "the model writes a summary")?;
        self.command("/undo")
    }

    fn passes(&mut self) -> Result<()> {
        self.step("5. Or old results are shortened in place, each with a reference.");
        self.reopen("clear-tool-uses")?;
        let compact = ScriptedAnswer::call("compact", r#"{"focus":"the error in pricing"}"#);
        let edit = concat!(
            r#"{"path":"src/pricing.rs","old_string":"net * rate","#,
            r#""new_string":"net as f64 * rate"}"#,
        );
        let fix = ScriptedAnswer::call("edit", edit);
        let recall = ScriptedAnswer::recall("Rates of region");
        let step = ScriptedAnswer::say("Fixed: the amount is converted before it is multiplied.");
        self.turn("Make room, then fix it.", [compact, recall, fix, step])?;
        let shortened = !self.context().references().is_empty();
        self.expect(shortened, "old results are shortened")?;
        self.command("/losses")
    }

    fn end(&mut self) -> Result<()> {
        let report = self.context().report();
        let originals = report.originals;
        let sent = report.sent;
        let entries = report.entries;
        self.step(&format!("{originals} tokens were said; a request now sends {sent} of them."));
        self.done(&format!("all {entries} messages are in the log, to which lines are only added"));
        let most = self.model.largest();
        self.done(&format!("no request had more than {WINDOW} tokens (the largest had {most})"));
        self.expect(most <= WINDOW, "no request is too long")
    }

    fn turn(
        &mut self,
        message: &str,
        steps: impl IntoIterator<Item = ScriptedAnswer>,
    ) -> Result<()> {
        self.model.play(steps);
        let mut front = Printed { print: &mut *self.print, ended: None };
        self.agent.turn(message, &mut front)?;
        let ended = front.ended;
        self.expect(ended == Some(TurnEnd::Answered), "the model answers")?;
        self.window();
        Ok(())
    }

    /// Prints a slash command as a line of the user, and carries it out.
    fn command(&mut self, line: &str) -> Result<()> {
        (self.print)(&Line::User(line.to_owned()));
        let input = match line.split_once(' ').unwrap_or((line, "")) {
            ("/compact", focus) => Input::Compact(Some(focus.to_owned())),
            ("/undo", _) => Input::Undo,
            _ => {
                for line in losses(self.agent.machine().context()) {
                    self.done(&line);
                }
                return Ok(());
            }
        };
        let before = self.context().usage().tokens;
        let mut front = Printed { print: &mut *self.print, ended: None };
        self.agent.take(input, &mut front)?;
        self.agent.finish(&mut front)?;
        let changed = self.context().usage().tokens != before;
        self.expect(changed, "the context changes")?;
        self.window();
        Ok(())
    }

    /// Opens the same log with another recipe.
    fn reopen(&mut self, name: &str) -> Result<()> {
        (self.print)(&Line::User(format!("/recipe {name}")));
        let context = live::open(&self.log, setup(recipe(name)?, &*self.model, None))?;
        self.agent.machine_mut().replace_context(context)
    }

    fn context(&self) -> &Context {
        self.agent.machine().context()
    }

    fn step(&mut self, text: &str) {
        (self.print)(&Line::Step(text.to_owned()));
    }

    fn done(&mut self, text: &str) {
        (self.print)(&Line::Done(text.to_owned()));
    }

    fn window(&mut self) {
        let usage = self.context().usage();
        let percent = usage.percent.unwrap_or_default();
        (self.print)(&Line::Window(format!("[ctx: {percent}%] {} tokens", usage.tokens)));
    }

    fn expect(&self, is_so: bool, what: &str) -> Result<()> {
        if is_so {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Broken, format!("the demo does not show what it should: {what}")))
    }
}

fn recipe(name: &str) -> Result<Recipe> {
    match built_in(name) {
        Some(recipe) => Ok(recipe),
        None => Err(Error::new(ErrorKind::Broken, format!("there is no recipe {name}"))),
    }
}

/// Prints events, and allows every call, because the folder belongs to the demo.
struct Printed<'p> {
    print: &'p mut dyn FnMut(&Line),
    ended: Option<TurnEnd>,
}

impl Front for Printed<'_> {
    fn show(&mut self, event: &Event) {
        let line = match event {
            Event::User { text } => Line::User(text.clone()),
            Event::Call { tool, arguments, .. } => Line::Done(format!("{tool} {arguments}")),
            Event::Result { error, text, .. } => {
                let first = epitome_model::short(text.lines().next().unwrap_or_default(), 60);
                let lines = text.lines().count();
                let failed = if *error { "failed: " } else { "" };
                Line::Done(format!("  {failed}{lines} lines: {first}"))
            }
            Event::Context { event } => match change(event) {
                Some(text) => Line::Done(text),
                None => return,
            },
            Event::Undone { before, after } => {
                Line::Done(format!("taken back ({before} → {after} tokens)"))
            }
            Event::Notice { text } => Line::Done(text.clone()),
            Event::Done { ended, answer, reason, .. } => {
                self.ended = Some(*ended);
                Line::Model(reason.as_ref().unwrap_or(answer).clone())
            }
            Event::Session { .. }
            | Event::Loaded { .. }
            | Event::Text { .. }
            | Event::Thinking { .. }
            | Event::Restart
            | Event::Retry(_)
            | Event::Progress { .. }
            | Event::Permission { .. }
            | Event::Question { .. }
            | Event::Task { .. }
            | Event::Permitted { .. }
            | Event::Usage { .. }
            | Event::Window { .. }
            | Event::Losses { .. } => return,
        };
        (self.print)(&line);
    }

    fn permit(&mut self, _: &ResponseCall, access: &Access) -> Option<Answer> {
        (self.print)(&Line::Done(format!("  asked whether to {access}: allowed once")));
        Some(Answer::Once)
    }

    fn is_attended(&self) -> bool {
        false
    }
}
