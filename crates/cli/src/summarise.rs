//! Shows the requests to models that write summaries, and what they cost.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use epitome::models::Forecast;
use epitome::ops::{AskedModels, ModelEvent, Questions, WouldAsk};
use epitome_llm::{CallTotals, ChoiceReason};

use crate::app::App;
use crate::text::{BOLD, DIM, count};

/// The requests to models and their costs, by session.
#[derive(Debug, Default)]
pub struct Account(Mutex<BTreeMap<String, AskedModels>>);

impl Account {
    /// Shows which model is asked to summarise a session, or after the answer, what the requests
    /// cost. Records the requests and their cost.
    pub fn take(&self, app: &App, session: &Path, event: ModelEvent) {
        match event {
            ModelEvent::Asking { model, tokens } => {
                app.note(&format!("{DIM}asking {model} about {tokens} tokens{DIM:#}"));
            }
            ModelEvent::Asked { models, prices_of } => {
                app.note(&cost(&models.spent, &prices_of));
                self.lock().insert(session.display().to_string(), models);
            }
        }
    }

    /// The requests for a session; `None` if no model was asked.
    pub fn calls_for(&self, session: &str) -> Option<AskedModels> {
        self.lock().get(session).cloned()
    }

    /// Whether any model was asked about a session.
    pub fn has(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, AskedModels>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Describes which model would be asked for a summary, and the estimated cost.
pub fn render(would_ask: &WouldAsk) -> String {
    let Questions { model, because, forecast, cost, prices_of } = &would_ask.would_ask;
    let Forecast { questions, input, output } = forecast;
    let session = crate::text::path(Path::new(&would_ask.session));
    if *questions == 0 {
        return format!("{BOLD}nothing to summarise{BOLD:#}  {session}\n");
    }
    let why = match because {
        ChoiceReason::Configured => "it was named",
        ChoiceReason::Cheapest => "the cheapest suitable model of its provider",
        ChoiceReason::Session => "the session's own model",
    };
    let price = match cost {
        Some(cost) => format!("at most about {cost} at list prices of {prices_of}"),
        None => "price not known".to_owned(),
    };
    format!(
        "{BOLD}would ask{BOLD:#} {model} ({why})  {session}\n\
         {} of together {input} tokens, with answers of at most {output}: {price}\n\
         {DIM}no model was called, and nothing was written{DIM:#}\n",
        count(*questions, "question"),
    )
}

/// Describes the cost of requests to a model in one line. If a price is unknown or a usage is not
/// recorded, the line says so.
fn cost(spent: &CallTotals, date: &str) -> String {
    let CallTotals { calls, failed, unsaid, used, cost, unpriced } = spent;
    let input = used.input + used.cached + used.cache_written;
    let mut parts = vec![count(*calls, "call"), format!("{input} tokens read")];
    parts.push(format!("{} written", used.output));
    let priced = calls.saturating_sub(*unsaid + *unpriced);
    parts.extend((priced > 0).then(|| format!("about {cost} at list prices of {date}")));
    parts.extend((*unpriced > 0).then(|| match priced {
        0 => "price not known".to_owned(),
        _ => format!("{} of unknown price", count(*unpriced, "call")),
    }));
    parts.extend((*failed > 0).then(|| format!("{failed} failed")));
    parts.extend((*unsaid > *failed).then(|| "some without recorded usage".to_owned()));
    format!("{DIM}{}{DIM:#}", parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use epitome_model::{MicroDollars, TokenUsage, Tokens};

    use super::*;

    #[test]
    fn what_is_not_known_is_not_told_as_nothing() {
        let used = TokenUsage { input: Tokens(900), output: Tokens(100), ..TokenUsage::default() };
        let spent = |calls, failed, unsaid, cost, unpriced| {
            let (used, cost) =
                (if calls == unsaid { TokenUsage::default() } else { used }, MicroDollars(cost));
            cost_of(&CallTotals { calls, failed, unsaid, used, cost, unpriced })
        };
        fn cost_of(spent: &CallTotals) -> String {
            anstream::adapter::strip_str(&cost(spent, "a day")).to_string()
        }
        for (told, expect) in [
            (
                spent(1, 0, 0, 50_000, 0),
                "1 call · 900 tokens read · 100 written · about $0.05 at list prices of a day",
            ),
            (
                spent(1, 0, 0, 0, 0),
                "1 call · 900 tokens read · 100 written · about $0.00 at list prices of a day",
            ),
            (spent(1, 0, 0, 0, 1), "1 call · 900 tokens read · 100 written · price not known"),
            (
                spent(1, 0, 1, 0, 0),
                "1 call · 0 tokens read · 0 written · some without recorded usage",
            ),
            (spent(3, 3, 3, 0, 0), "3 calls · 0 tokens read · 0 written · 3 failed"),
            (
                spent(3, 1, 1, 50_000, 1),
                "3 calls · 900 tokens read · 100 written · about $0.05 at list prices of a day · \
                 1 call of unknown price · 1 failed",
            ),
        ] {
            assert_eq!(told, expect);
        }
    }
}
