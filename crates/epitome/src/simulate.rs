//! Replays the user's own sessions, request by request, under each recipe. Measures how much of the
//! content that the agent used later was kept, and what the requests would have cost.
//!
//! The real engine is used, but nothing is written and no model is called, so summaries are not
//! simulated. See `docs/simulate.md`.
//!
//! In this module, a call is a call of the model: a request and its response.

mod command;
mod counts;
mod exchange;
mod facts;
mod forced;
mod gate;
mod gate_result;
mod page;
mod recorded;
mod replay;
mod report;
mod rules;
mod view;

use std::sync::Arc;

use epitome_llm::{Catalogue, ListedModel};
use epitome_measure::{ForcedCompaction, History, Needs};
use epitome_model::{Counter, MicroDollars, Source, Tokens};
use epitome_passes::{Recipe, TokenUsage};
use epitome_tokens::{Calibration, Estimate, O200k};

use crate::config::Config;
use crate::drive::catalogue;
use crate::live::Setup;
use crate::recipes;
use crate::session::Loaded;
use crate::settings::Settings;

use counts::Remembering;
use exchange::Exchange;
use report::Replays;

pub use command::PolicyCommand;
pub use facts::{KnownFact, known_facts};
pub use forced::ForcedCut;
pub use gate::{Condition, Gate, GateError};
pub use gate_result::{Bound, GateResult};
pub use recorded::RecordedCost;
pub use replay::LiveCall;
pub use report::{RecipeReport, SessionReport, SimulateReport};
pub use rules::RuleViolation;

/// The model whose prices are used if a session names no model with known prices.
pub const PRICED_AS: &str = "claude-sonnet-4-6";

/// The tokens that are assumed for an agent's system prompt and tools, if nothing else is known.
/// The value is typical of the sessions from whose requests it can be computed.
pub const PROMPT: Tokens = Tokens(12_000);

/// The recipes that are compared by default, in addition to the one in the settings: the default
/// recipe, and the simplest one, which clears all results except the newest.
const COMPARED: [&str; 2] = ["epitome", "clear-tool-uses"];

/// The default context window, the same as that of `epitome engine`.
const WINDOW: u64 = 200_000;

/// The time in seconds for which a provider caches a request: Anthropic's default.
const TTL: u64 = 300;

/// The name under which the replay without compaction is reported.
pub const NO_COMPACTION: &str = "none";

/// How sessions are simulated.
#[derive(Clone, Debug)]
pub struct Simulate {
    /// The policy commands: programs that decide what is sent. They come before the recipes in the
    /// report.
    pub commands: Vec<PolicyCommand>,
    /// The recipes, each with its name in the report.
    pub recipes: Vec<(String, Recipe)>,
    /// The context window of the model.
    pub window: Tokens,
    /// The tokens of the system prompt and the tools that the engine is configured with; 0 if it is
    /// not told of them. What is billed for them is `prompt`.
    pub overhead: Tokens,
    /// The tokens of the system prompt and the tools that are billed, whether the engine is
    /// configured with them or not. `None`: they are computed from the requests that a session
    /// records, or are [`PROMPT`] if that is not possible.
    pub prompt: Option<Tokens>,
    /// The target of a forced compaction, as a share of the tokens of the context (0 to 1). `None`:
    /// the passes of a recipe remove all that they can, and the recipe determines the size of a
    /// digest; a policy command gets no target.
    pub target: Option<f64>,
    /// The table of prices.
    pub prices: Catalogue,
    /// The model whose prices are used. `None`: the model of each session.
    pub model: Option<String>,
    /// For how many seconds a provider caches a request.
    pub ttl: u64,
    /// Whether tokens are estimated instead of counted.
    pub estimate: bool,
}

/// The result of simulating a session.
#[derive(Clone, Debug)]
pub struct SimulatedSession {
    /// The report of the session.
    pub report: SessionReport,
    /// The calls of the model in each replay of the session: without compaction, then for each
    /// policy command, then for each recipe.
    pub live: Vec<Vec<LiveCall>>,
    /// The forced compactions of each replay, in the same order. The first list is empty, because
    /// that replay has no compaction.
    pub forced: Vec<Vec<ForcedCut>>,
}

impl Simulate {
    /// The defaults of `epitome simulate`, with the user's settings. `names` are recipes by name or
    /// file; without names, the recipe for live contexts, `epitome` and `clear-tool-uses` are
    /// compared.
    ///
    /// # Errors
    ///
    /// `Recipe` if one of the recipes does not exist or cannot be read; `Settings` or `Unreadable`
    /// if the user's table of models cannot be used.
    pub fn new(config: &Config, settings: &Settings, names: &[String]) -> crate::Result<Simulate> {
        let mut wanted: Vec<Option<&str>> = names.iter().map(|name| Some(&**name)).collect();
        if wanted.is_empty() {
            wanted.push(None);
            wanted.extend(COMPARED.map(Some));
        }
        let mut all: Vec<(String, Recipe)> = Vec::new();
        for name in wanted {
            let recipe = recipes::resolve_live(config, settings, name)?;
            let name = name.map_or_else(|| recipe.name.clone(), str::to_owned);
            if !all.iter().any(|(known, _)| *known == name) {
                all.push((name, recipe));
            }
        }
        let live = &settings.values.live;
        Ok(Simulate {
            commands: Vec::new(),
            recipes: all,
            window: Tokens(live.window.unwrap_or(WINDOW)),
            overhead: Tokens(live.overhead.unwrap_or(0)),
            prompt: live.overhead.map(Tokens),
            target: None,
            prices: catalogue(config)?,
            model: None,
            ttl: TTL,
            estimate: false,
        })
    }

    /// Sets the tokens of prompt and tools, for the engine and for the bill.
    pub fn with_overhead(self, overhead: Tokens) -> Simulate {
        Simulate { overhead, prompt: Some(overhead), ..self }
    }

    /// Replays a session under every recipe and policy command, and without compaction.
    ///
    /// # Errors
    ///
    /// `Usage` if a policy command cannot be used, for example because it does not answer in time.
    /// Otherwise the errors of a context in memory, which would be bugs.
    pub fn session<S: Source>(
        &self,
        name: &str,
        session: &Loaded<S>,
    ) -> crate::Result<SimulatedSession> {
        let transcript = &session.transcript;
        let source = &session.source;
        let counter = Remembering::new(self.counter());
        let history = History::from_transcript(transcript, source, &counter);
        let needs = Needs::from_history(&history);
        let model = transcript.entries().rev().find_map(|(_, entry)| entry.model.as_deref());
        let price = self.price(model);
        let cuts: Vec<ForcedCompaction<'_>> = needs
            .cuts
            .iter()
            .map(|&call| ForcedCompaction::before(call, &history, &needs))
            .collect();
        let fit = match self.prompt {
            Some(_) => None,
            None => crate::billed::fitted_alone(transcript, source, self.counter()),
        };
        let job =
            Job { with: self, name, history: &history, needs: &needs, source, price, fit, counter };
        let mut replays = vec![Replays::default()];
        let uncompacted = &mut replays[0];
        uncompacted.live = job.uncompacted(&mut uncompacted.tally);
        for command in &self.commands {
            replays.push(job.replays_of_command(command, &cuts)?);
        }
        for (_, recipe) in &self.recipes {
            replays.push(job.replays_of_recipe(recipe, &cuts)?);
        }
        let agent = session.format.name;
        let report = SessionReport::from_replays((name, agent), transcript, &job, &replays);
        let (live, forced) = replays.into_iter().map(|it| (it.live, it.forced)).unzip();
        Ok(SimulatedSession { report, live, forced })
    }

    /// The names in the report: no compaction, the policy commands, the recipes.
    fn names(&self) -> impl Iterator<Item = &str> {
        let commands = self.commands.iter().map(|command| command.line.as_str());
        let recipes = self.recipes.iter().map(|(name, _)| name.as_str());
        std::iter::once(NO_COMPACTION).chain(commands).chain(recipes)
    }

    fn counter(&self) -> &'static dyn Counter {
        if self.estimate { &const { Estimate::new() } } else { &const { O200k::new() } }
    }

    /// The prices for a session of this model: those of the model that the caller chose or, if none
    /// is chosen, of the session's model. If that model has no known prices, those of
    /// [`PRICED_AS`].
    fn price(&self, model: Option<&str>) -> &ListedModel {
        let named = |name: &str| self.prices.find(name);
        let chosen = self.model.as_deref().or(model).and_then(named);
        chosen.or_else(|| named(PRICED_AS)).expect("the built-in table has it")
    }
}

/// A session, and the data that all replays of the session share.
struct Job<'j> {
    with: &'j Simulate,
    /// The name of the session.
    name: &'j str,
    history: &'j History,
    needs: &'j Needs,
    source: &'j dyn Source,
    price: &'j ListedModel,
    /// How counted tokens are converted to billed tokens, if that is known.
    fit: Option<Calibration>,
    counter: Remembering,
}

impl Job<'_> {
    /// What the tokens of a bill cost at list prices. A bill has counted tokens, which are
    /// converted to billed ones.
    fn dollars(&self, bill: &epitome_measure::Bill) -> MicroDollars {
        let epitome_measure::Bill { cached, written, output } = *bill;
        let cached = self.billed(cached);
        let cache_written = self.billed(written);
        let output = self.billed(output);
        self.price.cost(&TokenUsage { input: Tokens(0), cached, cache_written, output })
    }

    /// Counted tokens converted to tokens as the provider counts them.
    fn billed(&self, counted: Tokens) -> Tokens {
        self.fit.map_or(counted, |fit| fit.scale(counted))
    }

    /// The tokens of the system prompt and the tools in every request, as the provider counts them.
    fn prompt(&self) -> Tokens {
        self.with.prompt.or(self.fit.map(|fit| fit.fixed)).unwrap_or(PROMPT)
    }

    /// The tokens of the system prompt and the tools in every request, as the counter counts them.
    fn counted_prompt(&self) -> Tokens {
        let factor = self.fit.map_or(1_000, |fit| u64::from(fit.factor)).max(1);
        Tokens(self.prompt().0 * 1_000 / factor)
    }

    fn replays_of_recipe(
        &self,
        recipe: &Recipe,
        cuts: &[ForcedCompaction<'_>],
    ) -> crate::Result<Replays> {
        let mut replays = Replays::default();
        replays.forced = self.forced(recipe, cuts, &mut replays.tally)?;
        replays.live = self.live(recipe, &mut replays.tally)?;
        Ok(replays)
    }

    fn replays_of_command(
        &self,
        command: &PolicyCommand,
        cuts: &[ForcedCompaction<'_>],
    ) -> crate::Result<Replays> {
        let mut policy = command.start(self.name, self.with.window.0, self.with.overhead.0)?;
        let mut exchange = Exchange::new(self.history, self.source, &self.counter);
        let mut replays = Replays::default();
        let tally = &mut replays.tally;
        replays.forced = self.forced_of_command(&mut policy, &mut exchange, cuts, tally)?;
        replays.live = self.live_of_command(&mut policy, &mut exchange, tally)?;
        Ok(replays)
    }

    /// The setup of a context that is compacted with a recipe.
    fn setup(&self, recipe: &Recipe) -> Setup {
        Setup::new(recipe.clone())
            .with_window(self.with.window)
            .with_overhead(self.with.overhead)
            .with_counter(self.counter.clone())
    }

    fn pool(&self) -> view::Pool {
        view::Pool::from_blocks(&self.history.pieces)
    }
}

/// The measured blocks of a context, in order.
type Pieces = Vec<Arc<epitome_measure::MeasuredBlock>>;
