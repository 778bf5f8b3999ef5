//! A summary of a stored session that a model writes: who is asked, about what, and at what cost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use epitome::{
    Asked, Forecast, Loaded, Naming, catalogue, chosen_model, named_models, summary_writer,
    summary_writer_of,
};
use epitome_llm::{Because, Model, Provider, Spent, Stop};
use epitome_model::{MicroDollars, Source, Tokens};
use epitome_passes::{Recipe, TokenUsage, Writer};
use epitome_tokens::O200k;
use serde::Serialize;

use crate::app::App;
use crate::failure::Result;
use crate::text::{BOLD, DIM, count};

/// The model that stands for one of whoever runs the session's.
pub const AUTO: &str = "auto";
/// A window that takes any question whole.
const ANY: Tokens = Tokens(1 << 40);

/// What somebody said of the model that is to write.
#[derive(Clone, Debug)]
pub struct Wish {
    model: Option<String>,
    address: Option<String>,
    fallback: Vec<String>,
    timeout: Option<Duration>,
    tries: Option<u32>,
}

/// What was asked of models, by session.
#[derive(Debug, Default)]
pub struct Account(Mutex<BTreeMap<String, Models>>);

/// What was asked for one session, failures included. See `docs/json.md`.
#[derive(Clone, Debug, Serialize)]
pub struct Models {
    /// The one that was asked first.
    pub model: String,
    #[serde(flatten)]
    pub spent: Spent,
}

/// What would be asked. See `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct WouldAsk {
    session: String,
    recipe: String,
    dry_run: bool,
    would_ask: Questions,
}

#[derive(Debug, Serialize)]
struct Questions {
    model: String,
    because: Because,
    #[serde(flatten)]
    forecast: Forecast,
    /// In millionths of a dollar, at list prices; nothing if they are not known.
    cost: Option<MicroDollars>,
    /// Of these prices.
    prices_of: String,
}

impl Wish {
    /// What the command line says, or else the settings.
    pub fn new(app: &App, model: &str, address: Option<&str>, fallback: &[String]) -> Result<Wish> {
        let set = &app.settings()?.values.compaction;
        let of_settings: Vec<String> = set.fallback.iter().cloned().collect();
        let model = Some(model).filter(|it| !it.is_empty()).or(set.model.as_deref());
        Ok(Wish {
            model: model.filter(|it| *it != AUTO).map(Into::into),
            address: address.map(Into::into),
            fallback: if fallback.is_empty() { of_settings } else { fallback.to_vec() },
            timeout: set.timeout.map(Duration::from_secs),
            tries: set.tries,
        })
    }

    fn naming<'n, S: Source>(
        &'n self,
        app: &App,
        session: &'n Loaded<S>,
        recipe: &Recipe,
    ) -> Result<Naming<'n>> {
        let entries = session.transcript.entries();
        let mut speakers = entries.filter_map(|(_, entry)| entry.model.as_deref());
        // Whoever is named is asked, whatever it takes.
        let model = self.model.as_deref();
        let asked = if model.is_none_or(|model| Provider::named(model).is_some()) {
            // As one question, which is the longest that there can be.
            let whole = Writer { window: ANY, counter: Arc::new(O200k::new()) };
            Asked::about(session, recipe, app.counter(), whole)?
        } else {
            None
        };
        Ok(Naming {
            model,
            address: self.address.as_deref(),
            fallback: &self.fallback,
            session: speakers.next_back(),
            tokens: asked.map_or_else(Default::default, |asked| asked.tokens()),
            timeout: self.timeout,
            tries: self.tries,
        })
    }

    /// A summary; nothing, if there is nothing to tell.
    pub fn written<S: Source>(
        &self,
        app: &App,
        session: &Loaded<S>,
        recipe: &Recipe,
        name: &str,
        account: &Account,
    ) -> Result<String> {
        let model = named_models(&app.config, &self.naming(app, session, recipe)?)?;
        let asked = Asked::about(session, recipe, app.counter(), summary_writer(&model))?;
        let Some(asked) = asked else { return Ok(String::new()) };
        let (tokens, _) = asked.tokens();
        app.note(&format!("{DIM}asking {} about {tokens} tokens{DIM:#}", model.name()));
        let written = asked.of(&model, &Stop::default());
        let spent = model.spent();
        app.note(&cost(&spent, catalogue(&app.config)?.date()));
        let models = Models { model: model.name().to_string(), spent };
        account.lock().insert(name.to_owned(), models);
        Ok(written?.text)
    }

    /// What would be asked. Nobody is, and no key is needed.
    pub fn forecast<S: Source>(
        &self,
        app: &App,
        session: &Loaded<S>,
        recipe: &Recipe,
        name: &str,
    ) -> Result<WouldAsk> {
        let (choice, table) = chosen_model(&app.config, &self.naming(app, session, recipe)?)?;
        let known = table.known(&choice.name);
        let writer = summary_writer_of(&choice.name, known.map(epitome_llm::Known::room));
        let asked = Asked::about(session, recipe, app.counter(), writer)?;
        let forecast = asked.map_or_else(Forecast::default, Asked::forecast);
        let Forecast { input, output, .. } = forecast;
        let used = TokenUsage { input, output, ..TokenUsage::default() };
        let would_ask = Questions {
            model: choice.name.to_string(),
            because: choice.because,
            forecast,
            cost: known.map(|known| known.cost(&used)),
            prices_of: table.date().to_owned(),
        };
        let recipe = recipe.name.clone();
        Ok(WouldAsk { session: name.to_owned(), recipe, dry_run: true, would_ask })
    }
}

impl Account {
    /// What was asked for a session.
    pub fn of(&self, session: &str) -> Option<Models> {
        self.lock().get(session).cloned()
    }

    /// Whether anything was.
    pub fn has(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Models>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WouldAsk {
    /// For people.
    pub fn render(&self) -> String {
        let Questions { model, because, forecast, cost, prices_of } = &self.would_ask;
        let Forecast { questions, input, output } = forecast;
        let session = crate::text::path(std::path::Path::new(&self.session));
        if *questions == 0 {
            return format!("{BOLD}nothing to summarise{BOLD:#}  {session}\n");
        }
        let why = match because {
            Because::Configured => "it is named",
            Because::Cheapest => "the cheapest of its provider that will do",
            Because::Session => "the session's own",
        };
        let price = match cost {
            Some(cost) => format!("at most about {cost} at list prices of {prices_of}"),
            None => "of no known price".to_owned(),
        };
        format!(
            "{BOLD}would ask{BOLD:#} {model} ({why})  {session}\n\
             {} of together {input} tokens, with answers of at most {output}: {price}\n\
             {DIM}nobody was asked, and nothing was written{DIM:#}\n",
            count(*questions, "question"),
        )
    }
}

/// What was spent on a model, in one line. What is not known is not told as nothing.
fn cost(spent: &Spent, date: &str) -> String {
    let Spent { calls, failed, unsaid, used, cost, unpriced } = spent;
    let input = used.input + used.cached + used.cache_written;
    let mut told = vec![count(*calls, "call"), format!("{input} tokens read")];
    told.push(format!("{} written", used.output));
    let priced = calls.saturating_sub(*unsaid + *unpriced);
    told.extend((priced > 0).then(|| format!("about {cost} at list prices of {date}")));
    told.extend((*unpriced > 0).then(|| match priced {
        0 => "of no known price".to_owned(),
        _ => format!("{} of no known price", count(*unpriced, "call")),
    }));
    told.extend((*failed > 0).then(|| format!("{failed} without an answer")));
    told.extend((*unsaid > *failed).then(|| "not all said what they came to".to_owned()));
    format!("{DIM}{}{DIM:#}", told.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_told_as_nothing() {
        let used = TokenUsage { input: Tokens(900), output: Tokens(100), ..TokenUsage::default() };
        let spent = |calls, failed, unsaid, cost, unpriced| {
            let (used, cost) =
                (if calls == unsaid { TokenUsage::default() } else { used }, MicroDollars(cost));
            cost_of(&Spent { calls, failed, unsaid, used, cost, unpriced })
        };
        fn cost_of(spent: &Spent) -> String {
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
            (spent(1, 0, 0, 0, 1), "1 call · 900 tokens read · 100 written · of no known price"),
            (
                spent(1, 0, 1, 0, 0),
                "1 call · 0 tokens read · 0 written · not all said what they came to",
            ),
            (spent(3, 3, 3, 0, 0), "3 calls · 0 tokens read · 0 written · 3 without an answer"),
            (
                spent(3, 1, 1, 50_000, 1),
                "3 calls · 900 tokens read · 100 written · about $0.05 at list prices of a day · \
                 1 call of no known price · 1 without an answer",
            ),
        ] {
            assert_eq!(told, expect);
        }
    }
}
