//! Counts the requests that break a rule, for a recipe or a policy command.

use std::sync::Arc;

use epitome_measure::{MeasuredBlock, broken_rules};
use serde::Serialize;

/// The name in JSON of an answer from which no request could be made.
const BAD_ANSWER: &str = "bad-answer";

/// A rule that requests of a recipe or a policy command break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleViolation {
    /// The rule: `empty`, `first-role`, `last-role`, `open-call`, `orphan-result`, `late-result`,
    /// `repeated-id` or `lost-request`; or `bad-answer`, if a policy command gave an answer from
    /// which no request could be made.
    pub rule: &'static str,
    /// What is wrong with the first request that breaks the rule.
    pub what: String,
    /// The place of the first request that breaks the rule: `call 12 of session.jsonl`.
    pub first: String,
    /// The number of requests that break the rule.
    pub count: u64,
}

/// The number of requests, and the rules that they broke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestTally {
    /// The number of requests.
    pub requests: u64,
    /// The number of requests that break a rule.
    pub broken: u64,
    /// The broken rules, in the order in which they were first broken.
    pub violations: Vec<RuleViolation>,
}

impl RequestTally {
    /// Adds a request to the model, which sends the blocks `view`. `request` is the last text of
    /// the user before it.
    pub(super) fn add(
        &mut self,
        view: &[Arc<MeasuredBlock>],
        request: Option<&MeasuredBlock>,
        place: impl Fn() -> String,
    ) {
        self.requests += 1;
        let broken = broken_rules(view, request);
        self.broken += u64::from(!broken.is_empty());
        for rule in broken {
            self.count(rule.name(), rule.breach().to_owned(), place());
        }
    }

    /// Adds an answer from which no request could be made.
    pub(super) fn add_bad_answer(&mut self, why: String, place: impl Fn() -> String) {
        self.requests += 1;
        self.broken += 1;
        self.count(BAD_ANSWER, why, place());
    }

    fn count(&mut self, rule: &'static str, what: String, first: String) {
        RuleViolation { rule, what, first, count: 1 }.add_to(&mut self.violations);
    }
}

impl RuleViolation {
    /// Sums the violations of each rule, the most frequent rule first. A sum has the description
    /// and the place of the first violation.
    pub(super) fn sum<'v>(all: impl Iterator<Item = &'v RuleViolation>) -> Vec<RuleViolation> {
        let mut sums = Vec::new();
        all.for_each(|violation| violation.clone().add_to(&mut sums));
        sums.sort_by_key(|violation| std::cmp::Reverse(violation.count));
        sums
    }

    fn add_to(self, sums: &mut Vec<RuleViolation>) {
        match sums.iter_mut().find(|known| known.rule == self.rule) {
            Some(known) => known.count += self.count,
            None => sums.push(self),
        }
    }
}
