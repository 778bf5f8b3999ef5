//! The usage of a session's requests, by day and model.

use std::collections::BTreeMap;

use epitome_llm::Catalogue;
use epitome_model::{MicroDollars, Tokens, Transcript, requests_with_counts, short};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::ops::timestamp;
use crate::redact::Screen;

/// The maximum number of models of a session that are listed separately. The usage of all other
/// models is summed under the model `null`.
const MODELS: usize = 16;
/// The maximum number of characters in the name of a model.
const NAME: usize = 80;

/// The usage of one day's requests to one model, as the provider counted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayUsage {
    /// The day in UTC; `null` if the session does not record it.
    pub day: Option<Date>,
    /// The model; `null` if the session does not name it, or if it is not among the first 16 models
    /// of the session.
    pub model: Option<String>,
    /// The number of requests whose usage is recorded.
    pub requests: u64,
    /// All input tokens, whether they were read from a cache or not.
    pub input: Tokens,
    /// The input tokens that were read from a cache, as far as they are recorded.
    pub cached: Tokens,
    /// The output tokens, as far as they are recorded.
    pub output: Tokens,
    /// The cost that the session records, or else the cost at list prices.
    pub cost: MicroDollars,
    /// The number of requests whose cost is unknown; `cost` does not include them.
    pub unpriced: u64,
    /// The number of requests whose cost is at list prices and whose output is not recorded; `cost`
    /// includes only their input.
    pub unrecorded_output: u64,
}

/// The usage of a session, by day and model. Secrets in names of models are hidden.
pub(super) fn usage(
    transcript: &Transcript,
    prices: Option<&Catalogue>,
    screen: &Screen,
) -> Vec<DayUsage> {
    let mut models: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<(Option<Date>, Option<usize>), DayUsage> = BTreeMap::new();
    for request in requests_with_counts(transcript) {
        let day = request.time.and_then(timestamp);
        let day = day.map(|time| time.to_zoned(TimeZone::UTC).date());
        let model = request.model.and_then(|model| place(&mut models, model));
        let sum = sums.entry((day, model)).or_default();
        let used = request.usage;
        sum.requests += 1;
        sum.input += Tokens(used.input);
        sum.cached += Tokens(used.cache.map_or(0, |cache| cache.read));
        sum.output += Tokens(used.output);
        let listed = match (prices, request.model, used.tokens()) {
            (Some(prices), Some(model), Some(tokens)) => prices.cost(model, &tokens),
            _ => None,
        };
        match (used.cost, listed) {
            (Some(cost), _) => sum.cost += cost,
            (None, Some(cost)) => {
                sum.cost += cost;
                sum.unrecorded_output += u64::from(used.output == 0);
            }
            (None, None) => sum.unpriced += 1,
        }
    }
    let names: Vec<String> = models.iter().map(|model| name(model, screen)).collect();
    let days = sums.into_iter().map(|((day, model), sum)| {
        let model = model.map(|at: usize| names[at].clone());
        DayUsage { day, model, ..sum }
    });
    days.collect()
}

/// The name of a model as it is displayed and stored.
pub(super) fn name(model: &str, screen: &Screen) -> String {
    short(&screen.text(model), NAME)
}

/// The index of a model in `models`. A model that is missing is added, unless `models` has
/// [`MODELS`] elements already: then `None` is returned.
fn place<'t>(models: &mut Vec<&'t str>, model: &'t str) -> Option<usize> {
    let known = models.iter().position(|it| *it == model);
    known.or_else(|| {
        let is_room = models.len() < MODELS;
        is_room.then(|| models.push(model))?;
        Some(models.len() - 1)
    })
}

#[cfg(test)]
mod tests {
    use epitome_model::{CacheUse, Entry, Item, RecordedUsage};

    use super::*;
    use crate::config::Config;

    fn transcript(requests: &[(&str, &str, RecordedUsage)]) -> Transcript {
        let item = |&(time, model, usage): &(&str, &str, RecordedUsage)| {
            let (time, model) = (Some(time.into()), Some(model.into()));
            Item::Entry(Box::new(Entry { time, model, usage: Some(usage), ..Entry::default() }))
        };
        Transcript { items: requests.iter().map(item).collect(), ..Transcript::default() }
    }

    fn usages(requests: &[(&str, &str, RecordedUsage)]) -> Vec<DayUsage> {
        let dir = tempfile::tempdir().expect("a folder");
        let screen = Screen::new(&Config::from_home(dir.path()));
        usage(&transcript(requests), Some(&Catalogue::built_in()), &screen)
    }

    #[test]
    fn requests_are_summed_by_day_and_model_and_what_is_not_known_is_counted() {
        let cache = Some(CacheUse { read: 400_000, written: 0 });
        let listed = RecordedUsage { input: 1_000_000, output: 100_000, cache, cost: None };
        let silent = RecordedUsage { output: 0, ..listed };
        let stored = RecordedUsage { cost: Some(MicroDollars(7)), cache: None, ..listed };
        let (first, late) = ("2026-11-20T23:59:59Z", "2026-11-21T00:00:00Z");
        let haiku = "claude-haiku-4-5";
        let found = usages(&[
            (late, haiku, listed),
            (first, haiku, silent),
            (first, haiku, stored),
            (first, "x", listed),
            ("1763683199000", haiku, stored),
            ("in May", haiku, stored),
        ]);
        let sum = |day: Option<&str>, model: &str, requests: u64| DayUsage {
            day: day.map(|day| day.parse().expect("a day")),
            model: Some(model.to_owned()),
            requests,
            input: Tokens(1_000_000 * requests),
            output: Tokens(100_000),
            ..DayUsage::default()
        };
        let expect = [
            DayUsage { cost: MicroDollars(7), ..sum(None, haiku, 1) },
            DayUsage { cost: MicroDollars(7), ..sum(Some("2025-11-20"), haiku, 1) },
            DayUsage {
                cached: Tokens(400_000),
                cost: MicroDollars(640_007),
                unrecorded_output: 1,
                ..sum(Some("2026-11-20"), haiku, 2)
            },
            DayUsage { cached: Tokens(400_000), unpriced: 1, ..sum(Some("2026-11-20"), "x", 1) },
            DayUsage {
                cached: Tokens(400_000),
                cost: MicroDollars(1_140_000),
                ..sum(Some("2026-11-21"), haiku, 1)
            },
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn of_many_models_the_last_share_a_sum() {
        let one = RecordedUsage { input: 1, ..RecordedUsage::default() };
        let names: Vec<String> = (0..40).map(|n| format!("m{n}")).collect();
        let requests: Vec<_> = names.iter().map(|name| ("", &**name, one)).collect();
        let found = usages(&requests);
        assert_eq!(found.len(), MODELS + 1);
        assert_eq!((found[0].model.as_deref(), found[0].requests), (None, 40 - MODELS as u64));
    }
}
