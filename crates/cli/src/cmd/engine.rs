//! `epitome engine`: a live context over a pipe, for agents in any language.

mod logs;
mod request;
mod sent;
mod talk;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser};
use epitome::{Naming, Store, named_models, recipes};
use epitome_formats::APIS;
use epitome_llm::{Patient, Provider};
use epitome_model::Tokens;
use epitome_passes::{Recipe, SummaryRule};
use serde_json::json;

use crate::app::{App, Count};
use crate::failure::{Failure, Result};
use crate::session::parse_tokens;
use crate::summarise::AUTO;
use logs::Logs;
use talk::{Size, Talk, Ways};

const EXAMPLES: &str = "\
Examples:
  epitome engine --recipe s06 --window 200k
  echo '{\"op\":\"hello\"}' | epitome engine";

/// What a model takes if nobody says it.
const WINDOW: u64 = 200_000;

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

    /// The model that writes summaries, as PROVIDER/MODEL; without one there are none. A PROVIDER
    /// alone stands for its cheapest model that will do, `auto` for whose wire it is.
    /// docs/models.md says which there are, and where their keys are looked for
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// The model of the agent, which writes them if the provider has none that is cheaper
    #[arg(long, value_name = "MODEL", requires = "model")]
    pub session_model: Option<String>,

    /// Where that model is, if not where its provider is
    #[arg(long, value_name = "URL", requires = "model")]
    pub base_url: Option<String>,

    /// A model to ask when that one has no answer; may be given several times
    #[arg(long, value_name = "MODEL")]
    pub fallback: Vec<String>,
}

fn wires() -> PossibleValuesParser {
    apis().collect::<Vec<_>>().into()
}

/// The names of the APIs; older names are accepted and not shown.
pub fn apis() -> impl Iterator<Item = PossibleValue> {
    APIS.iter().map(|api| PossibleValue::new(api.name).aliases(api.aliases))
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let settings = app.settings()?;
    let recipe = recipes::resolve_live(&app.config, settings, args.recipe.as_deref())?;
    let size = Size {
        window: args.window.or(settings.values.live.window).unwrap_or(WINDOW),
        overhead: args.overhead.or(settings.values.live.overhead).unwrap_or(0),
        summaries: false,
        writer_window: None,
    };
    size.check()?;
    let folder = args.log.clone().unwrap_or_else(|| app.config.logs());
    let logs = Logs::new(folder, Store::new(&app.config.home));
    let model = model(app, args, &recipe, size.window)?.map(Arc::new);
    let ways = Ways {
        wire: args.wire.clone(),
        recipe,
        logs: (!args.no_log).then_some(logs),
        estimate: app.global.count == Count::Estimate,
        model,
    };
    let mut talk = Talk::new(ways, size);
    let (stdin, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in stdin.split(b'\n') {
        let line = line?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = talk.answer(line);
        let answer = answer.unwrap_or_else(|failure| json!({ "error": failure }).to_string());
        writeln!(out, "{}", epitome_render::inert_json(answer))?;
        out.flush()?;
    }
    Ok(())
}

/// The model that somebody named, here or in the settings.
fn model(app: &App, args: &Args, recipe: &Recipe, window: u64) -> Result<Option<Patient>> {
    let set = &app.settings()?.values.compaction;
    let Some(model) = args.model.as_deref().or(set.model.as_deref()) else { return Ok(None) };
    let of_settings: Vec<String> = set.fallback.iter().cloned().collect();
    let fallback = if args.fallback.is_empty() { &of_settings } else { &args.fallback };
    let model = if model == AUTO { of_wire(&args.wire)?.name() } else { model };
    let address = args.base_url.as_deref();
    // What a model takes that is to hear all that this one heard, its answer included.
    let answer = recipe
        .live
        .summary
        .as_ref()
        .map_or(SummaryRule::default().max_tokens, |rule| rule.max_tokens);
    let tokens = (Tokens(window.saturating_sub(answer)), Tokens(answer));
    let timeout = set.timeout.map(Duration::from_secs);
    let tries = set.tries;
    let (model, session) = (Some(model), args.session_model.as_deref());
    let naming = Naming { model, address, fallback, session, tokens, timeout, tries };
    Ok(Some(named_models(&app.config, &naming)?))
}

/// Who runs the models of a wire, if that is one alone.
fn of_wire(wire: &str) -> Result<Provider> {
    match wire {
        "anthropic" => Ok(Provider::Anthropic),
        "openai-responses" => Ok(Provider::OpenAi),
        "gemini-api" | "gemini" => Ok(Provider::Google),
        _ => {
            let what = format!("`--model {AUTO}`: many providers speak {wire}");
            Err(Failure::usage(what).hint("name one: --model openai, groq, openrouter, …"))
        }
    }
}
