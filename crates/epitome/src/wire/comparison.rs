//! Compares conversations that the proxy changes with those that pass unchanged.

use std::collections::{BTreeMap, BTreeSet};

use epitome_model::{MicroDollars, Tokens, percent, plural};
use serde::Serialize;

use super::Chain;
use super::ledger::{Group, LedgerLine};

/// The number of conversations that each group needs before a difference between the groups is
/// reported.
pub const LEAST: u64 = 20;

/// The conversations that the proxy may change (treated), compared with those that it passes
/// unchanged for this comparison (held out). Only requests whose tokens the service counted and
/// whose price is known are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The conversations that the proxy may change.
    pub treated: GroupSum,
    /// The conversations that the proxy passes unchanged.
    pub holdout: GroupSum,
    /// The number of conversations that were in both groups. They are in neither sum.
    pub mixed: u64,
    /// The difference between the cost of a request of a treated conversation and of one held out.
    /// `None` if a group has too few conversations, or cost nothing.
    pub request_cost: Option<Difference>,
    /// The difference between the costs of a turn of the user, including the requests with which
    /// models got removed texts back. `None` if a group has too few conversations, no turns, or
    /// cost nothing.
    pub turn_cost: Option<Difference>,
    /// The number of conversations that each group needs before a difference is reported.
    pub least: u64,
}

/// A row of the comparison, as it is displayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// What is compared.
    pub title: &'static str,
    /// The value for conversations that the proxy may change.
    pub treated: String,
    /// The value for conversations that the proxy passes unchanged.
    pub holdout: String,
    /// How much the two values differ: `-20.0% (-24.4 to -15.1)`. Empty in rows other than costs,
    /// and if there are too few conversations.
    pub difference: String,
}

impl Comparison {
    /// The rows, in the order in which they are displayed.
    pub fn rows(&self) -> Vec<ComparisonRow> {
        let row =
            |title, value: fn(&GroupSum) -> String, difference: Option<Difference>| ComparisonRow {
                title,
                treated: value(&self.treated),
                holdout: value(&self.holdout),
                difference: difference.map(|it| it.to_string()).unwrap_or_default(),
            };
        let input = |sum: &GroupSum| Tokens(sum.per_request(sum.input_tokens.0)).to_string();
        let cached =
            |sum: &GroupSum| format!("{}%", percent(sum.cached_tokens.0, sum.input_tokens.0));
        let output = |sum: &GroupSum| Tokens(sum.per_request(sum.output_tokens.0)).to_string();
        vec![
            row("conversations", |sum| sum.conversations.to_string(), None),
            row("turns", |sum| sum.turns.to_string(), None),
            row("requests", |sum| sum.requests.to_string(), None),
            row("input tokens a request", input, None),
            row("of them from a cache", cached, None),
            row("output tokens a request", output, None),
            row("cost a request", |sum| precise(sum.per_request(sum.cost.0)), self.request_cost),
            row("cost a turn", |sum| precise(sum.per_turn(sum.cost.0)), self.turn_cost),
        ]
    }

    /// Notes on the rows, as sentences: that there are too few conversations, that the groups do
    /// not differ by more than chance, or that conversations were in both groups.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let differences = [self.request_cost, self.turn_cost];
        if self.treated.conversations.min(self.holdout.conversations) < self.least {
            notes.push(format!(
                "too few to compare: each group needs {} conversations with a known price",
                self.least
            ));
        } else if !differences.iter().flatten().any(Difference::is_clear) {
            notes.push("the groups do not differ by more than chance explains".to_owned());
        }
        if self.mixed > 0 {
            notes.push(format!(
                "{} in both groups, because --holdout changed, in neither sum",
                plural(self.mixed, "conversation")
            ));
        }
        notes
    }
}

/// An amount in millionths of a dollar, with four decimals of a dollar.
fn precise(amount: u64) -> String {
    let rounded = (amount + 50) / 100;
    format!("${}.{:04}", rounded / 10_000, rounded % 10_000)
}

/// The sum of the compared requests of a group of conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupSum {
    /// The number of conversations.
    pub conversations: u64,
    /// The number of turns of the user.
    pub turns: u64,
    /// The number of requests.
    pub requests: u64,
    /// All input tokens.
    pub input_tokens: Tokens,
    /// The input tokens that were read from a cache.
    pub cached_tokens: Tokens,
    /// The output tokens.
    pub output_tokens: Tokens,
    /// What the requests cost at list prices.
    pub cost: MicroDollars,
}

impl GroupSum {
    /// The amount divided by the number of requests, rounded down; 0 without requests.
    pub fn per_request(&self, amount: u64) -> u64 {
        amount.checked_div(self.requests).unwrap_or(0)
    }

    /// The amount divided by the number of turns, rounded down; 0 without turns.
    pub fn per_turn(&self, amount: u64) -> u64 {
        amount.checked_div(self.turns).unwrap_or(0)
    }

    fn add(&mut self, line: &LedgerLine) {
        let usage = line.usage.unwrap_or_default();
        self.turns += u64::from(line.turn);
        self.requests += 1;
        self.input_tokens += usage.all_input();
        self.cached_tokens += usage.cached;
        self.output_tokens += usage.output;
        self.cost += line.cost.unwrap_or_default();
    }
}

/// The difference between the two groups in a cost per request or turn, in per cent of the cost in
/// the conversations held out, with the 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The measured difference: -20 if treated conversations cost a fifth less.
    pub percent: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Difference {
    /// Whether the groups differ by more than chance explains.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { percent, low, high } = self;
        write!(f, "{percent:+.1}% ({low:+.1} to {high:+.1})")
    }
}

/// Compares the two groups. `None` if no conversation was held out.
pub(crate) fn compare(lines: &[LedgerLine]) -> Option<Comparison> {
    let mut groups: BTreeMap<Chain, BTreeSet<Group>> = BTreeMap::new();
    for (line, session) in lines.iter().filter_map(|line| Some((line, line.session?))) {
        groups.entry(session).or_default().insert(line.group);
    }
    if !groups.values().any(|groups| groups.contains(&Group::Holdout)) {
        return None;
    }
    let in_both = |session: &Chain| groups.get(session).is_some_and(|groups| groups.len() > 1);
    let mixed = groups.keys().filter(|session| in_both(session)).count() as u64;
    let mut sums: [BTreeMap<Chain, GroupSum>; 2] = Default::default();
    for line in lines {
        let Some(session) = line.session.filter(|session| !in_both(session)) else { continue };
        if line.usage.is_some() && line.cost.is_some() {
            let group = usize::from(line.group == Group::Holdout);
            sums[group].entry(session).or_default().add(line);
        }
    }
    let [treated, holdout] = sums.map(|sums| sums.into_values().collect::<Vec<_>>());
    Some(Comparison {
        treated: total(&treated),
        holdout: total(&holdout),
        mixed,
        request_cost: difference(&treated, &holdout, |sum| sum.requests),
        turn_cost: difference(&treated, &holdout, |sum| sum.turns),
        least: LEAST,
    })
}

fn total(conversations: &[GroupSum]) -> GroupSum {
    let mut total = GroupSum { conversations: conversations.len() as u64, ..GroupSum::default() };
    for GroupSum { turns, requests, input_tokens, cached_tokens, output_tokens, cost, .. } in
        conversations
    {
        total.turns += turns;
        total.requests += requests;
        total.input_tokens += *input_tokens;
        total.cached_tokens += *cached_tokens;
        total.output_tokens += *output_tokens;
        total.cost += *cost;
    }
    total
}

/// The difference between the two groups in the cost per `count`. The statistics treat a
/// conversation as one observation, because requests of one conversation are similar. The interval
/// is computed for the logarithm of the ratio of the two costs, by the delta method.
fn difference(
    treated: &[GroupSum],
    holdout: &[GroupSum],
    count: fn(&GroupSum) -> u64,
) -> Option<Difference> {
    /// The quantile of the normal distribution for an interval of 95%.
    const Z: f64 = 1.96;
    let (treated, its_error) = ratio(treated, count)?;
    let (holdout, other_error) = ratio(holdout, count)?;
    let log = (treated / holdout).ln();
    let error = Z * its_error.hypot(other_error);
    let percent = |log: f64| (log.exp() - 1.0) * 100.0;
    Some(Difference {
        percent: percent(log),
        low: percent(log - error),
        high: percent(log + error),
    })
}

/// The cost per `count` in a group, and the standard error of its logarithm. `None` if the group
/// has too few conversations, or if its cost or its count is zero.
#[expect(clippy::cast_precision_loss, reason = "a statistic with three digits")]
fn ratio(conversations: &[GroupSum], count: fn(&GroupSum) -> u64) -> Option<(f64, f64)> {
    let n = conversations.len();
    let cost: f64 = conversations.iter().map(|sum| sum.cost.0 as f64).sum();
    let counted: f64 = conversations.iter().map(|sum| count(sum) as f64).sum();
    if (n as u64) < LEAST || cost == 0.0 || counted == 0.0 {
        return None;
    }
    let ratio = cost / counted;
    let residue = |sum: &GroupSum| sum.cost.0 as f64 - ratio * count(sum) as f64;
    let squares: f64 = conversations.iter().map(|sum| residue(sum).powi(2)).sum();
    let variance = squares * n as f64 / (n as f64 - 1.0);
    Some((ratio, variance.sqrt() / cost))
}

#[cfg(test)]
mod tests {
    use epitome_model::TokenUsage;

    use super::*;

    /// The requests of a conversation, the first of which begins a turn.
    fn conversation(session: u8, group: Group, costs: &[u64]) -> Vec<LedgerLine> {
        let lines = costs.iter().enumerate().map(|(n, cost)| LedgerLine {
            session: Some(Chain::from_bytes([session; 16])),
            group,
            turn: n == 0,
            usage: Some(TokenUsage { cached: Tokens(10), ..TokenUsage::default() }),
            cost: Some(MicroDollars(*cost)),
            ..LedgerLine::default()
        });
        lines.collect()
    }

    #[test]
    fn nothing_is_compared_without_conversations_held_out() {
        assert_eq!(compare(&conversation(1, Group::Treated, &[5, 6])), None);
    }

    #[test]
    fn few_conversations_are_summed_and_not_compared() {
        let mut lines = conversation(1, Group::Treated, &[5, 6]);
        lines.extend(conversation(2, Group::Holdout, &[9]));
        lines.extend(conversation(3, Group::Holdout, &[9]));
        lines.extend(conversation(3, Group::Treated, &[9]));
        let unpriced = LedgerLine { cost: None, ..lines[0].clone() };
        lines.push(unpriced);
        let sum = |requests, cost| GroupSum {
            conversations: 1,
            turns: 1,
            requests,
            input_tokens: Tokens(10 * requests),
            cached_tokens: Tokens(10 * requests),
            output_tokens: Tokens(0),
            cost: MicroDollars(cost),
        };
        let expect = Comparison {
            treated: sum(2, 11),
            holdout: sum(1, 9),
            mixed: 1,
            request_cost: None,
            turn_cost: None,
            least: LEAST,
        };
        assert_eq!(compare(&lines), Some(expect.clone()));
        let notes = [
            "too few to compare: each group needs 20 conversations with a known price",
            "1 conversation in both groups, because --holdout changed, in neither sum",
        ];
        assert_eq!(expect.notes(), notes);
        let row = ComparisonRow {
            title: "of them from a cache",
            treated: "100%".into(),
            holdout: "100%".into(),
            difference: String::new(),
        };
        assert_eq!(expect.rows()[4], row);
    }

    #[test]
    fn a_difference_is_clear_if_conversations_vary_less() {
        let groups = |treated: [u64; 2]| {
            let mut lines = Vec::new();
            for n in 0..20 {
                let even = usize::from(n % 2 == 0);
                lines.extend(conversation(n, Group::Treated, &[treated[even], treated[even]]));
                lines.extend(conversation(100 + n, Group::Holdout, &[[900, 1_100][even]; 2]));
            }
            compare(&lines).expect("a comparison")
        };
        let clear = groups([750, 850]);
        let cost = clear.request_cost.expect("enough");
        // 800 instead of 1,000, with standard errors of 1.4% and 2.3%.
        assert!((cost.percent + 20.0).abs() < 1e-9, "{cost:?}");
        assert!((-25.0..-23.0).contains(&cost.low), "{cost:?}");
        assert!((-16.5..-14.5).contains(&cost.high), "{cost:?}");
        assert!(cost.is_clear() && clear.notes().is_empty());
        assert!(cost.to_string().starts_with("-20.0% (-2"), "{cost}");
        assert_eq!(clear.turn_cost, clear.request_cost);
        assert!(!groups([100, 1_800]).request_cost.expect("enough").is_clear());
    }
}
