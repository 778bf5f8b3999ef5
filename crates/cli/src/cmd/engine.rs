//! `epitome engine`: a live context over a pipe, for agents in any language.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser};
use epitome::models::{ModelSelection, named_models};
use epitome::ops::AUTO;
use epitome::pipe::{Logs, ProviderModel, Server, ServerOptions, Size};
use epitome::recipes;
use epitome::storage::Store;
use epitome_api::APIS;
use epitome_llm::{Provider, RetryingModel};
use epitome_model::Tokens;
use epitome_passes::{Recipe, SummaryRule};
use epitome_tokens::{Estimate, O200k};

use crate::app::{App, Count};
use crate::confirm::can_ask;
use crate::failure::{Failure, Result};
use crate::session::{parse_tokens, unread_input};
use crate::text::DIM;

const EXAMPLES: &str = "\
Examples:
  epitome engine --recipe s06 --window 200k
  echo '{\"op\":\"hello\"}' | epitome engine";

/// The context window in tokens, if neither an option nor a setting gives one.
const WINDOW: u64 = 200_000;

/// Keep an agent's context small while it runs: one JSON object a line, in and out
///
/// An agent sends its new messages and receives what to send to the model. docs/engine.md describes
/// the operations. Every message is kept in a log, which every other command reads.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A recipe by name, or a file; `epitome recipes` lists them [default: epitome]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,

    /// The context window of the model in tokens (128000, 200k) [default: 200k]
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,

    /// Tokens of every request in addition to the messages: prompt and tools [default: 0]
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub overhead: Option<u64>,

    /// The model API whose messages are read and written
    #[arg(long, value_name = "WIRE", default_value = "anthropic", value_parser = wires())]
    pub wire: String,

    /// Keep logs in this folder instead of epitome's own
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_log")]
    pub log: Option<PathBuf>,

    /// Keep logs in memory only: they are lost when the program ends
    #[arg(long)]
    pub no_log: bool,

    /// The model that writes summaries, as PROVIDER/MODEL; without it none are written. A PROVIDER
    /// alone means its cheapest suitable model, `auto` the provider of the API. docs/models.md
    /// lists providers, and where their keys are looked for
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// The agent's model, which writes summaries if the provider has no cheaper one
    #[arg(long, value_name = "MODEL", requires = "model")]
    pub session_model: Option<String>,

    /// The base URL of that model, if not its provider's
    #[arg(long, value_name = "URL", requires = "model")]
    pub base_url: Option<String>,

    /// A model to call if that one fails; may be given several times
    #[arg(long, value_name = "MODEL")]
    pub fallback: Vec<String>,
}

fn wires() -> PossibleValuesParser {
    apis().collect::<Vec<_>>().into()
}

/// The names of the APIs. Older names are accepted, but not shown in the help.
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
    if can_ask() {
        app.note(&format!(
            "{DIM}reading one JSON object a line; docs/engine.md, Ctrl-D ends{DIM:#}"
        ));
    }
    let folder = args.log.clone().unwrap_or_else(|| app.config.logs());
    let logs = Logs::new(folder, Store::new(&app.config.home));
    let model = model(app, args, &recipe, size.window)?;
    let options = ServerOptions {
        api: args.wire.clone(),
        recipe,
        logs: if args.no_log { None } else { Some(Box::new(logs)) },
        counter: match app.global.count {
            Count::Estimate => Arc::new(Estimate::new()),
            Count::O200k => Arc::new(O200k::new()),
        },
        model: match model {
            Some(model) => Some(Arc::new(ProviderModel::new(Arc::new(model)))),
            None => None,
        },
    };
    let mut server = Server::new(options, size);
    let stdin = std::io::stdin().lock();
    let mut out = std::io::stdout().lock();
    for line in stdin.split(b'\n') {
        let line = line.map_err(|err| unread_input(&err))?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        writeln!(out, "{}", epitome_render::inert_json(server.answer(line)))?;
        out.flush()?;
    }
    Ok(())
}

/// The model that writes summaries: that of the options, or else that of the settings. `None` if
/// neither names one.
fn model(app: &App, args: &Args, recipe: &Recipe, window: u64) -> Result<Option<RetryingModel>> {
    let set = &app.settings()?.values.compaction;
    let Some(model) = args.model.as_deref().or(set.model.as_deref()) else { return Ok(None) };
    let of_settings: Vec<String> = set.fallback.iter().cloned().collect();
    let fallback = if args.fallback.is_empty() { &of_settings } else { &args.fallback };
    let model = if model == AUTO { of_wire(&args.wire)?.name() } else { model };
    let address = args.base_url.as_deref();
    // The model must be able to read everything that the agent's model has read, and to answer.
    let answer = recipe
        .stages
        .live
        .summary
        .as_ref()
        .map_or(SummaryRule::default().max_tokens, |rule| rule.max_tokens);
    let tokens = (Tokens(window.saturating_sub(answer)), Tokens(answer));
    let timeout = set.timeout.map(Duration::from_secs);
    let tries = set.tries;
    let model = Some(model);
    let session = args.session_model.as_deref();
    let naming = ModelSelection { model, address, fallback, session, tokens, timeout, tries };
    Ok(Some(named_models(&app.config, &naming)?))
}

/// The only provider of an API format. An error if several providers offer it.
fn of_wire(wire: &str) -> Result<Provider> {
    match wire {
        "anthropic" => Ok(Provider::Anthropic),
        "openai-responses" => Ok(Provider::OpenAi),
        "gemini-api" | "gemini" => Ok(Provider::Google),
        _ => {
            let what = format!("`--model {AUTO}`: many providers offer {wire}");
            Err(Failure::usage(what).hint("name one: --model openai, groq, openrouter, …"))
        }
    }
}
