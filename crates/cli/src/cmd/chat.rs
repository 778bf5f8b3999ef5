//! `epitome chat`: a coding agent on the engine.

mod headless;
mod start;

use clap::Args as ClapArgs;
use epitome_chat::Rule;
use epitome_chat::demo::Line;
use epitome_model::MicroDollars;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::session::parse_tokens;
use crate::text::{BOLD, DIM, visible};

const EXAMPLES: &str = "\
Examples:
  epitome chat --demo
  epitome chat -p \"Why does the test fail?\" --model anthropic/claude-haiku-4-5
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
    /// What to do: the agent answers, and the program ends
    #[arg(long, short, value_name = "MESSAGE", required_unless_present = "demo")]
    pub prompt: Option<String>,

    /// Show the engine at work with a scripted model, in a temporary folder; nothing of yours is
    /// read or changed
    #[arg(long, conflicts_with_all = [
        "prompt", "model", "recipe", "window", "resume", "yes", "allow", "budget",
    ])]
    pub demo: bool,

    /// The model, as PROVIDER/MODEL; by default that of the settings (compaction.model).
    /// docs/models.md lists providers, and where their keys are looked for
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// The base URL of the model, if not its provider's
    #[arg(long, value_name = "URL", requires = "model")]
    pub base_url: Option<String>,

    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// The context window in tokens (128000, 200k), if not the model's
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,

    /// Go on with this session; `last` is the newest
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,

    /// Allow everything that would be asked
    #[arg(long, short)]
    pub yes: bool,

    /// Allow `write` (inside the project), or `shell: WORDS` (plain commands that begin with these
    /// words); may be given several times
    #[arg(long, value_name = "RULE", value_parser = parse_rule)]
    pub allow: Vec<Rule>,

    /// Send no request once this many dollars are spent, at list prices
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    pub budget: Option<MicroDollars>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let Some(message) = args.prompt.as_deref().filter(|_| !args.demo) else {
        return demo(app);
    };
    let started = start::start(app, args)?;
    headless::run(app, started, message)
}

/// Runs the demo in a temporary folder, which is deleted at the end.
fn demo(app: &App) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("epitome-chat-").tempdir()?;
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
         epitome chat -p \"What is this project?\" --model anthropic/claude-haiku-4-5\n",
    )
}

fn parse_rule(text: &str) -> std::result::Result<Rule, String> {
    Rule::parse(text).map_err(|err| err.to_string())
}

/// An amount of money: 2, 0.50.
fn parse_dollars(text: &str) -> std::result::Result<MicroDollars, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_amount = !(whole.is_empty() && part.is_empty()) && digits(whole) && digits(part);
    let amount = is_amount.then(|| {
        let micro: String = part.chars().chain("000000".chars()).take(6).collect();
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        whole.checked_mul(1_000_000)?.checked_add(micro.parse().ok()?)
    });
    amount.flatten().map(MicroDollars).ok_or_else(|| format!("`{text}` is no amount of dollars"))
}

/// The failure of a turn that has no answer.
fn no_answer(kind: &'static str, reason: &str) -> Failure {
    Failure::new(crate::failure::Status::Refused, kind, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_dollars_are_exact() {
        for (text, expect) in [
            ("2", Some(2_000_000)),
            ("2.00", Some(2_000_000)),
            ("0.000001", Some(1)),
            (".5", Some(500_000)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(parse_dollars(text).ok(), expect.map(MicroDollars), "{text}");
        }
    }
}
