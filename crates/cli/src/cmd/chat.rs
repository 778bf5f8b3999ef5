//! `epitome chat`: a coding agent on the engine.

mod editor;
mod headless;
mod input;
mod interactive;

use std::cell::RefCell;
use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

use clap::Args as ClapArgs;
use epitome_chat::demo::Line;
use epitome_chat::{ChatOptions, Rule, Wait};
use epitome_model::{MicroDollars, Tokens};
use indicatif::ProgressBar;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::session::parse_tokens;
use crate::text::{BOLD, DIM, visible};

/// The maximum time that one call of [`Interrupt::wait`] waits. The call is repeated until a signal
/// comes.
const LOOK: Duration = Duration::from_secs(3_600);

const EXAMPLES: &str = "\
Examples:
  epitome chat --demo
  epitome chat --model anthropic/claude-haiku-4-5
  epitome chat -p \"Why does the test fail?\" --model anthropic/claude-haiku-4-5
  git diff | epitome chat -p \"Review this.\" --model anthropic/claude-haiku-4-5
  epitome chat -p \"Fix it.\" --resume last --model anthropic/claude-haiku-4-5 --allow write";

/// Work on a project with a coding agent whose context never runs out
///
/// The agent reads, searches and changes files and runs commands in the current folder. Reading
/// there is free; writing, commands, and anything outside need a yes. Its context is kept small by
/// a recipe, and every message is kept in a log, which all other commands read. docs/agent.md
/// describes the tools, the permissions, and the output with --json.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Carry out this message, print the answer, and exit. Piped input is added to the message; `-`
    /// is the piped input alone. Without this option, you talk with the agent in the terminal
    #[arg(long, short, value_name = "MESSAGE")]
    pub prompt: Option<String>,

    /// Speak the Agent Client Protocol on standard input and output: an editor is the interface
    #[arg(long, conflicts_with_all = ["prompt", "resume"])]
    pub acp: bool,

    /// Show the agent at work with a scripted model, in a temporary folder; nothing of yours is
    /// read or changed. Each line is typed for you, and you send it
    #[arg(long, conflicts_with_all = [
        "prompt", "acp", "model", "recipe", "window", "resume", "yes", "allow", "deny", "budget",
    ])]
    pub demo: bool,

    /// Show the demo as a log that runs by itself, as it does without a terminal
    #[arg(long, requires = "demo")]
    pub text: bool,

    /// The model that answers, as PROVIDER/MODEL; by default that of the settings (chat.model).
    /// docs/models.md lists providers, and where their keys are looked for
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// The base URL of the model, if not its provider's
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// The context window in tokens (128000, 200k), if not the model's
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,

    /// Go on with this session; `last` is the newest of this folder
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,

    /// Allow everything that would be asked
    #[arg(long, short)]
    pub yes: bool,

    /// Allow `write` (inside the project), `shell: WORDS` (plain commands that begin with these
    /// words), or `mcp__SERVER` and `mcp__SERVER__TOOL`; may be given several times
    #[arg(long, value_name = "RULE", value_parser = parse_rule)]
    pub allow: Vec<Rule>,

    /// Refuse `write` (anywhere), `shell: WORDS` (command lines in which these words follow each
    /// other), or tools as --allow names them, whatever is allowed; may be given several times
    #[arg(long, value_name = "RULE", value_parser = parse_denial)]
    pub deny: Vec<Rule>,

    /// Send no request once this many dollars are spent, at list prices
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    pub budget: Option<MicroDollars>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.demo {
        return demo(app, args.text);
    }
    if args.acp {
        return editor::run(app, args);
    }
    match args.prompt.as_deref() {
        Some(message) => {
            let options = args.options(app)?;
            if message.trim().is_empty() {
                return Err(
                    Failure::usage("the message is empty").hint("say what to do: -p \"Fix it.\"")
                );
            }
            options.check()?;
            let message = input::message(app, message)?;
            headless::run(app, options.start(&[], &waits(app))?, &message)
        }
        None => interactive::run(app, args),
    }
}

impl Args {
    /// The options and settings, in the form that the library takes.
    fn options(&self, app: &App) -> Result<ChatOptions> {
        let Args { model, base_url, recipe, window, resume, yes, allow, deny, budget, .. } =
            self.clone();
        let config = app.config.clone();
        let settings = app.settings()?.clone();
        let window = window.map(Tokens);
        Ok(ChatOptions {
            config,
            settings,
            model,
            base_url,
            recipe,
            window,
            resume,
            yes,
            allow,
            deny,
            budget,
        })
    }
}

/// Returns a function that shows what the start of a chat is waiting for.
fn waits(app: &App) -> impl Fn(Wait<'_>) {
    let shown = RefCell::new(None);
    move |wait| match wait {
        Wait::ForServers(names) => {
            let bar = app.bar("{spinner} waiting for the tools of {msg} (MCP)", 1);
            bar.set_message(names.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            *shown.borrow_mut() = Some(bar);
        }
        Wait::Over => shown.take().iter().for_each(ProgressBar::finish_and_clear),
    }
}

/// Calls `stop` after a signal, to end an interface that has to restore the terminal or close a
/// connection. A second signal kills the program.
fn stop_on_signal(stop: impl FnOnce() + Send + 'static) {
    let interrupt = Interrupt::new();
    std::thread::spawn(move || {
        while !interrupt.wait(LOOK) {}
        stop();
    });
}

/// Runs the demo in a temporary folder, which is deleted at the end.
fn demo(app: &App, as_text: bool) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("epitome-chat-").tempdir();
    let folder = folder.map_err(|err| Failure::disk("cannot create a temporary folder", &err))?;
    if !as_text && !app.global.json && stdin().is_terminal() && stdout().is_terminal() {
        return interactive::demo(app, folder.path());
    }
    let mut printed = Ok(());
    let mut print = |line: &Line| {
        let line = match line {
            Line::Step(text) => format!("\n{BOLD}{text}{BOLD:#}\n"),
            Line::User(text) => format!("{BOLD}>{BOLD:#} {}\n", visible(text)),
            Line::Model(text) => format!("{}\n", visible(text)),
            Line::Done(text) => format!("  {DIM}{}{DIM:#}\n", visible(text)),
            Line::Window(text) => format!("  {DIM}{text}{DIM:#}\n"),
        };
        if printed.is_ok() {
            printed = app.print(&line);
        }
    };
    epitome_chat::demo::run(folder.path(), &mut print)?;
    printed?;
    app.print(
        "\nNext, with your own project and model:\n  \
         epitome chat --model anthropic/claude-haiku-4-5\n",
    )
}

fn parse_rule(text: &str) -> std::result::Result<Rule, String> {
    Rule::allow(text).map_err(|err| err.to_string())
}

fn parse_denial(text: &str) -> std::result::Result<Rule, String> {
    Rule::deny(text).map_err(|err| err.to_string())
}

/// Parses an amount of dollars: 2, 0.50.
fn parse_dollars(text: &str) -> std::result::Result<MicroDollars, String> {
    match epitome_chat::parse_dollars(text) {
        Some(dollars) => Ok(dollars),
        None => Err(format!("`{text}` is no amount of dollars")),
    }
}

/// The failure of a turn that has no answer.
fn no_answer(kind: &'static str, reason: &str) -> Failure {
    Failure::new(crate::failure::Status::Refused, kind, reason)
}
