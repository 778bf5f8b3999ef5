//! The report of a simulation, as the documented JSON.

use epitome_model::{MicroDollars, Tokens, Transcript, plural};
use serde::Serialize;

use super::forced::ForcedCut;
use super::gate_result::GateResult;
use super::recorded::{RecordedCost, rounded};
use super::replay::LiveCall;
use super::rules::{RequestTally, RuleViolation};
use super::{Job, NO_COMPACTION, PROMPT, Simulate, SimulatedSession};

/// The report of a simulation of several sessions. `docs/json.md` describes its JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulateReport {
    /// The figures of each policy command and recipe over all sessions. The first entry is without
    /// compaction.
    pub recipes: Vec<RecipeReport>,
    /// What the sessions record about their requests; `null` if they record no usage.
    pub recorded: Option<RecordedCost>,
    /// The number of requests to models.
    pub calls: u64,
    /// The tokens of all messages.
    pub tokens: Tokens,
    /// The number of compactions that were forced with each recipe.
    pub cuts: u64,
    /// The context window.
    pub window: Tokens,
    /// The tokens of everything in a request that is not in messages. The engine is configured with
    /// this number.
    pub overhead: Tokens,
    /// The tokens of the system prompt and the tools that are billed: for all sessions if the
    /// caller set the number, otherwise only for sessions from whose requests it cannot be
    /// computed.
    pub prompt: Tokens,
    /// For how many seconds a provider caches a request.
    pub ttl: u64,
    /// The date of the prices.
    pub prices: String,
    /// The name of the counter of tokens.
    pub counter: &'static str,
    /// The conditions of a gate, if one was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateResult>,
    /// The report of each session.
    pub sessions: Vec<SessionReport>,
}

/// The report of one session: its figures with each recipe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionReport {
    /// The path of the session.
    pub session: String,
    /// The agent of the session.
    pub agent: &'static str,
    /// The number of requests to the model.
    pub calls: u64,
    /// The tokens of all messages.
    pub tokens: Tokens,
    /// The number of forced compactions.
    pub cuts: u64,
    /// The model whose prices are used.
    pub priced_as: String,
    /// The tokens of the system prompt and the tools in every request, as billed.
    pub prompt: Tokens,
    /// What the session records about its requests; `null` if it records no usage.
    pub recorded: Option<RecordedCost>,
    /// The session's figures with each recipe.
    pub recipes: Vec<RecipeReport>,
}

/// The figures of a recipe. Shares are from 0 to 1; a figure that was not measured is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecipeReport {
    /// The name of the recipe; `none` without compaction.
    pub recipe: String,
    /// At forced compactions: the share of the tokens that stays.
    pub kept: Option<f64>,
    /// At forced compactions: of the facts that later responses use, the share that the compacted
    /// context contains. Rare facts have more weight.
    pub recall: Option<f64>,
    /// Like `recall`, but a fact counts only if its whole line is still in the context.
    pub in_line: Option<f64>,
    /// Like `recall`, but facts that can be recalled or read again are also counted.
    pub recoverable: Option<f64>,
    /// At forced compactions: the share of pins of which every rule is kept. Pins are rule files,
    /// skills, and texts between pin marks of the user.
    pub pins: Option<f64>,
    /// At forced compactions: the share of later edits for which a file must be read again.
    pub rereads: Option<f64>,
    /// In the replay of all requests: the cost relative to no compaction, if the provider caches
    /// every beginning of an earlier request.
    pub cost: Option<f64>,
    /// Like `cost`, if the provider caches only whole earlier requests.
    pub cost_bp: Option<f64>,
    /// Like `cost`, plus the cost of reading again the texts that edits needed.
    pub cost_rereads: Option<f64>,
    /// The cost that `cost` is computed from, in millionths of a dollar.
    pub micro_dollars: MicroDollars,
    /// The cost that `cost_bp` is computed from, in millionths of a dollar.
    pub micro_dollars_bp: MicroDollars,
    /// In the replay of all requests: of the facts that a response uses, the share that its context
    /// contained.
    pub call_recall: Option<f64>,
    /// Like `call_recall`, but only for facts whose last occurrence was more than ten requests
    /// before.
    pub far_recall: Option<f64>,
    /// The mean number of tokens in a request.
    pub context: Tokens,
    /// The share of requests that are larger than the window.
    pub over: f64,
    /// In the replay of all requests: the share of edits for which a file had to be read again.
    pub live_rereads: Option<f64>,
    /// In the replay of all requests: the number of compactions.
    pub compactions: u64,
    /// The share of requests that break none of the rules for requests (see [`RuleViolation`]).
    pub rules: Option<f64>,
    /// The rules that requests break; empty if they break none.
    pub violations: Vec<RuleViolation>,
    #[serde(skip)]
    sums: Sums,
}

/// The sums from which the figures over several sessions are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    calls: u64,
    /// Requests that are larger than the window.
    over: u64,
    /// Tokens of all requests.
    context: u64,
    /// The number of pins that were kept, and the number of all pins.
    pins: (u64, u64),
    /// The number of edits after forced compactions for which a file must be read again, and the
    /// number of all edits after forced compactions.
    rereads: (u64, u64),
    /// The number of edits in the replay of all requests for which a file must be read again, and
    /// the number of all edits in that replay.
    live_rereads: (u64, u64),
    /// The cost of reading again the texts that edits in the replay needed.
    reread: MicroDollars,
    /// The number of requests that break no rule, and the number of all requests.
    valid: (u64, u64),
}

/// The replays of a session under one recipe or policy command.
#[derive(Clone, Debug, Default)]
pub(super) struct Replays {
    pub live: Vec<LiveCall>,
    pub forced: Vec<ForcedCut>,
    pub tally: RequestTally,
}

impl SessionReport {
    pub(super) fn from_replays(
        (name, agent): (&str, &'static str),
        transcript: &Transcript,
        job: &Job<'_>,
        replays: &[Replays],
    ) -> SessionReport {
        let rows = job.with.names().zip(replays);
        let mut recipes: Vec<RecipeReport> =
            rows.map(|(name, replays)| RecipeReport::new(name, job.with, replays)).collect();
        compare(&mut recipes);
        let none = recipes.first().map_or(MicroDollars(0), |none| none.micro_dollars);
        let Simulate { prices, window, .. } = job.with;
        SessionReport {
            session: name.to_owned(),
            agent,
            calls: job.history.calls.len() as u64,
            tokens: job.history.tokens(),
            cuts: job.needs.cuts.len() as u64,
            priced_as: job.price.name.to_string(),
            prompt: job.prompt(),
            recorded: RecordedCost::in_session(transcript, prices, *window, none),
            recipes,
        }
    }
}

impl RecipeReport {
    /// The headings of a table of recipes, for the columns of [`cells`](RecipeReport::cells).
    pub const HEADS: [&str; 14] = [
        "recipe",
        "kept",
        "recall",
        "in line",
        "recoverable",
        "pins",
        "cost",
        "bp",
        "dollars",
        "call",
        "far",
        "context",
        "over",
        "re-reads",
    ];

    /// The meaning of each column except the first.
    pub const LEGEND: [(&str, &str); 13] = [
        ("kept", "of forced compactions, tokens after of those before"),
        ("recall", "facts that the next 40 calls use and the compacted context holds"),
        ("in line", "the same, in whole lines"),
        ("recoverable", "the same, with what can be recalled or read again"),
        ("pins", "what sets rules and stays whole"),
        ("cost", "the bill of that without compaction, the recipe asked before every call"),
        ("bp", "the same, where only whole earlier requests are cached"),
        ("dollars", "that bill at list prices"),
        ("call", "facts that a response uses and its request holds"),
        ("far", "the same, of facts from more than ten calls ago"),
        ("context", "tokens of a request, on average"),
        ("over", "requests that do not fit into the window"),
        ("re-reads", "edits for which a file has to be read again"),
    ];

    /// The cells of the recipe's row in a table.
    pub fn cells(&self) -> Vec<String> {
        let is_none = self.recipe == NO_COMPACTION;
        vec![
            if is_none { "no compaction".to_owned() } else { self.recipe.clone() },
            percent(self.kept),
            percent(self.recall),
            percent(self.in_line),
            percent(self.recoverable),
            percent(self.pins),
            percent(self.cost),
            percent(self.cost_bp),
            self.micro_dollars.to_string(),
            percent(self.call_recall),
            percent(self.far_recall),
            self.context.to_string(),
            percent(Some(self.over)),
            percent(self.live_rereads),
        ]
    }

    fn new(name: &str, with: &Simulate, replays: &Replays) -> RecipeReport {
        let Replays { live, forced, tally } = replays;
        let of_cuts = |share: fn(&ForcedCut) -> f64| mean(forced.iter().map(share));
        let of_calls = |share: fn(&LiveCall) -> Option<f64>| mean(live.iter().filter_map(share));
        let sum = |tokens: fn(&LiveCall) -> u64| live.iter().map(tokens).sum::<u64>();
        let pair = |one: fn(&ForcedCut) -> u64, of: fn(&ForcedCut) -> u64| {
            (forced.iter().map(one).sum(), forced.iter().map(of).sum())
        };
        let over = live.iter().filter(|call| call.figures.context > with.window).count() as u64;
        let sums = Sums {
            calls: live.len() as u64,
            over,
            context: sum(|call| call.figures.context.0),
            pins: pair(|it| it.kept_pins, |it| it.pins),
            rereads: pair(|it| it.figures.rereads, |it| it.figures.edits),
            live_rereads: (sum(|call| call.figures.reread), sum(|call| call.figures.edits)),
            reread: MicroDollars(sum(|call| call.rereads.0)),
            valid: (tally.requests - tally.broken, tally.requests),
        };
        let report = RecipeReport {
            recipe: name.to_owned(),
            kept: of_cuts(ForcedCut::kept_share),
            recall: of_cuts(|it| it.figures.recall),
            in_line: of_cuts(|it| it.figures.in_line),
            recoverable: of_cuts(|it| it.figures.recoverable),
            pins: None,
            rereads: None,
            cost: None,
            cost_bp: None,
            cost_rereads: None,
            micro_dollars: MicroDollars(sum(|call| call.cost.0)),
            micro_dollars_bp: MicroDollars(sum(|call| call.cost_requests.0)),
            call_recall: of_calls(|call| call.figures.recall),
            far_recall: of_calls(|call| call.figures.far),
            context: Tokens(0),
            over: 0.0,
            live_rereads: None,
            compactions: sum(|call| call.compactions),
            rules: None,
            violations: RuleViolation::sum(tally.violations.iter()),
            sums,
        };
        report.finished()
    }

    /// How many requests break a rule, and which rules, as a sentence.
    fn rule_finding(&self) -> String {
        let rules = self.violations.iter().map(|violation| {
            let RuleViolation { rule, what, first, count } = violation;
            format!("{rule} {count} times (first: {first}: {what})")
        });
        let rules = rules.collect::<Vec<_>>().join("; ");
        let (valid, all) = self.sums.valid;
        format!("Of {all} requests of {}, {} break a rule: {rules}.", self.recipe, all - valid)
    }

    /// Combines the figures of several sessions. Some shares are means over the sessions; the other
    /// figures are computed from sums.
    fn over_all(of: &[&RecipeReport]) -> RecipeReport {
        let shares = |share: fn(&RecipeReport) -> Option<f64>| {
            mean(of.iter().filter_map(|report| share(report)))
        };
        let sum = |n: fn(&RecipeReport) -> u64| of.iter().map(|report| n(report)).sum::<u64>();
        let pair = |one: fn(&Sums) -> (u64, u64)| {
            of.iter().fold((0, 0), |(a, b), report| {
                let (c, d) = one(&report.sums);
                (a + c, b + d)
            })
        };
        let report = RecipeReport {
            recipe: of.first().map_or_else(String::new, |report| report.recipe.clone()),
            kept: shares(|it| it.kept),
            recall: shares(|it| it.recall),
            in_line: shares(|it| it.in_line),
            recoverable: shares(|it| it.recoverable),
            call_recall: shares(|it| it.call_recall),
            far_recall: shares(|it| it.far_recall),
            pins: None,
            rereads: None,
            cost: None,
            cost_bp: None,
            cost_rereads: None,
            micro_dollars: MicroDollars(sum(|it| it.micro_dollars.0)),
            micro_dollars_bp: MicroDollars(sum(|it| it.micro_dollars_bp.0)),
            context: Tokens(0),
            over: 0.0,
            live_rereads: None,
            compactions: sum(|it| it.compactions),
            rules: None,
            violations: RuleViolation::sum(of.iter().flat_map(|it| &it.violations)),
            sums: Sums {
                calls: sum(|it| it.sums.calls),
                over: sum(|it| it.sums.over),
                context: sum(|it| it.sums.context),
                pins: pair(|it| it.pins),
                rereads: pair(|it| it.rereads),
                live_rereads: pair(|it| it.live_rereads),
                reread: MicroDollars(sum(|it| it.sums.reread.0)),
                valid: pair(|it| it.valid),
            },
        };
        report.finished()
    }

    /// Computes the figures from the sums.
    fn finished(self) -> RecipeReport {
        let Sums { calls, over, context, pins, rereads, live_rereads, valid, .. } = self.sums;
        let share = |(part, of): (u64, u64)| (of > 0).then(|| rounded(part as f64 / of as f64));
        RecipeReport {
            pins: share(pins),
            rereads: share(rereads),
            live_rereads: share(live_rereads),
            rules: share_rounded_down(valid),
            context: Tokens(context / calls.max(1)),
            over: share((over, calls)).unwrap_or_default(),
            ..self
        }
    }
}

impl SimulateReport {
    /// The rows of a table with the headings [`RecipeReport::HEADS`]: one for the sessions as they
    /// happened, if that is recorded, one for no compaction, and one for each policy command and
    /// recipe.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let recorded = self.recorded.iter().map(|it| {
            let mut cells = vec!["-".to_owned(); RecipeReport::HEADS.len()];
            let mut set = |head, cell| {
                let at = RecipeReport::HEADS.iter().position(|it| *it == head);
                cells[at.expect("a column")] = cell;
            };
            set("recipe", "as it happened".to_owned());
            let sign = if it.at_least && it.cost.is_some() { "≥ " } else { "" };
            set("cost", format!("{sign}{}", percent(it.cost)));
            set("dollars", it.dollars().unwrap_or_else(|| "-".to_owned()));
            set("context", it.context.to_string());
            set("over", percent(Some(it.over)));
            cells
        });
        recorded.chain(self.recipes.iter().map(RecipeReport::cells)).collect()
    }

    /// The result for the first recipe and, if it is recorded, what the sessions cost as they
    /// happened.
    pub fn finding(&self) -> String {
        let [none, first, ..] = self.recipes.as_slice() else { return String::new() };
        let share = |share: f64| format!("{:.0}%", share * 100.0);
        let keeps = first.call_recall.map_or_else(String::new, |recall| {
            format!("keeps {:.1}% of what was needed later, ", recall * 100.0)
        });
        let costs = first.cost.map_or_else(String::new, |cost| {
            let with = first.micro_dollars;
            let without = none.micro_dollars;
            format!("costs {} of no compaction ({with} of {without}), ", share(cost))
        });
        let over = match first.over {
            over if over > 0.0 => format!("is over the window in {} of its requests", share(over)),
            _ => "is never over the window".to_owned(),
        };
        let without = match none.over {
            over if over > 0.0 => format!(" (without compaction: {})", share(over)),
            _ => String::new(),
        };
        let found = format!("{} {keeps}{costs}and {over}{without}.", first.recipe);
        format!("{found}{}", self.as_it_happened())
    }

    /// The cost that the sessions record, as a sentence.
    fn as_it_happened(&self) -> String {
        let Some(recorded) = &self.recorded else { return String::new() };
        let Some(dollars) = recorded.micro_dollars else { return String::new() };
        let at_least = if recorded.at_least { "at least " } else { "" };
        let compactions = match recorded.compactions {
            0 => "without a compaction that is recorded".to_owned(),
            n => format!("with {}", plural(n, "compaction")),
        };
        let what = if self.sessions.len() == 1 { "the session" } else { "the sessions" };
        format!(" As it happened, {compactions}, {what} cost {at_least}{dollars}.")
    }

    /// For each recipe or policy command whose requests break rules, a paragraph that says how many
    /// do, and which rules.
    pub fn rule_findings(&self) -> Vec<String> {
        let broken = self.recipes.iter().filter(|recipe| !recipe.violations.is_empty());
        broken.map(RecipeReport::rule_finding).collect()
    }

    /// The report of these sessions together.
    pub fn from_sessions(with: &Simulate, simulated: &[SimulatedSession]) -> SimulateReport {
        let sessions: Vec<SessionReport> = simulated.iter().map(|it| it.report.clone()).collect();
        let recipe = |n: usize| {
            let reports: Vec<&RecipeReport> = sessions.iter().map(|it| &it.recipes[n]).collect();
            RecipeReport::over_all(&reports)
        };
        let count = if sessions.is_empty() { 0 } else { with.names().count() };
        let mut recipes: Vec<RecipeReport> = (0..count).map(recipe).collect();
        compare(&mut recipes);
        let recorded: Vec<Option<RecordedCost>> = sessions.iter().map(|it| it.recorded).collect();
        SimulateReport {
            recipes,
            recorded: RecordedCost::over_all(&recorded),
            calls: sessions.iter().map(|it| it.calls).sum(),
            tokens: sessions.iter().map(|it| it.tokens).sum(),
            cuts: sessions.iter().map(|it| it.cuts).sum(),
            window: with.window,
            overhead: with.overhead,
            prompt: with.prompt.unwrap_or(PROMPT),
            ttl: with.ttl,
            prices: with.prices.date().to_owned(),
            counter: with.counter().name(),
            gates: Vec::new(),
            sessions,
        }
    }
}

/// Sets the cost of each recipe relative to the first entry, which is without compaction.
fn compare(recipes: &mut [RecipeReport]) {
    let Some(MicroDollars(none)) = recipes.first().map(|none| none.micro_dollars) else { return };
    let ratio = |cost: u64| (none > 0).then(|| rounded(cost as f64 / none as f64));
    for report in recipes {
        report.cost = ratio(report.micro_dollars.0);
        report.cost_bp = ratio(report.micro_dollars_bp.0);
        report.cost_rereads = ratio(report.micro_dollars.0 + report.sums.reread.0);
    }
}

/// The quotient `part / of` with four decimals, rounded down so that only a full share is 1. `None`
/// if `of` is 0.
fn share_rounded_down((part, of): (u64, u64)) -> Option<f64> {
    (of > 0).then(|| (part * 10_000 / of) as f64 / 10_000.0)
}

fn mean(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sum = 0.0;
    let mut count = 0_u64;
    for share in shares {
        sum += share;
        count += 1;
    }
    (count > 0).then(|| rounded(sum / count as f64))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |it| format!("{:.1}%", it * 100.0))
}
