//! What models take and cost: data, with a user's own file before it.

use epitome_model::{MicroDollars, Tokens};
use epitome_passes::TokenUsage;
use serde::Deserialize;

use crate::name::{ModelName, Provider};

/// The table that comes with epitome.
const BUILT_IN: &str = include_str!("../models.toml");

/// Tokens that a model which reasons may have for it, beside those of its answer.
pub(crate) const THOUGHT: u64 = 8_000;

/// What is known of models.
///
/// ```
/// use epitome_llm::Catalogue;
/// use epitome_model::{MicroDollars, Tokens};
/// use epitome_passes::TokenUsage;
///
/// let catalogue = Catalogue::built_in();
/// let (input, output) = (Tokens(1_000_000), Tokens(100_000));
/// let used = TokenUsage { input, output, ..TokenUsage::default() };
/// let cost = catalogue.cost("claude-haiku-4-5-20251001", &used);
/// assert_eq!(cost, Some(MicroDollars(1_500_000)));
/// assert_eq!(catalogue.cost("a model of tomorrow", &used), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    date: String,
    models: Vec<Known>,
}

/// A model that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// What it is called, and where.
    pub name: ModelName,
    /// Tokens that question and answer may have together.
    pub window: Tokens,
    /// Tokens that an answer may have.
    pub output: Tokens,
    /// Whether it reasons before it answers, which counts as part of the answer.
    pub thinks: bool,
    /// Whether it is good enough to write summaries.
    pub summaries: bool,
    /// What it costs.
    pub price: Price,
    /// From how much input on all tokens of a request cost how much.
    pub above: Option<(Tokens, Price)>,
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Dollars")]
pub struct Price {
    /// Read, neither from a cache nor into one.
    pub input: MicroDollars,
    /// Read from a cache.
    pub cached: MicroDollars,
    /// Written into a cache.
    pub written: MicroDollars,
    /// Written.
    pub output: MicroDollars,
}

/// Why a table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no table of models: {0}")]
pub struct CatalogueError(pub String);

impl Catalogue {
    /// The table that comes with epitome.
    pub fn built_in() -> Catalogue {
        Catalogue::parse(BUILT_IN).expect("the built-in table is read by a test")
    }

    /// A table in TOML, as `models.toml` has it.
    ///
    /// # Errors
    ///
    /// When it is no such table.
    pub fn parse(text: &str) -> Result<Catalogue, CatalogueError> {
        let file: File = toml::from_str(text).map_err(|err| CatalogueError(err.to_string()))?;
        let models = file.model.into_iter().map(Row::known).collect::<Result<_, _>>()?;
        Ok(Catalogue { date: file.date, models })
    }

    /// With a user's own table before it: a model that stands in both is as the user says.
    #[must_use]
    pub fn with(mut self, own: Catalogue) -> Catalogue {
        let is_own = |name: &ModelName| own.models.iter().any(|known| known.name == *name);
        self.models.retain(|known| !is_own(&known.name));
        self.models.splice(0..0, own.models);
        self.date = self.date.max(own.date);
        self
    }

    /// The day of its newest prices, as `2026-11-21`.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The models, in the order of the table.
    pub fn models(&self) -> impl Iterator<Item = &Known> {
        self.models.iter()
    }

    /// A model by its name. A date or `latest` behind it makes no other model of it.
    pub fn known(&self, name: &ModelName) -> Option<&Known> {
        let of = |known: &&Known| known.name.provider == name.provider;
        self.models.iter().filter(of).find(|known| is_called(&known.name.model, &name.model))
    }

    /// A model by the name alone that sessions call it by. Who runs it counts only as far as the
    /// first one in the table that does so: a model has a price, whoever sells it.
    pub fn named(&self, model: &str) -> Option<&Known> {
        let (_, last) = model.rsplit_once('/').unwrap_or(("", model));
        let find =
            |called: &str| self.models.iter().find(|known| is_called(&known.name.model, called));
        find(model).or_else(|| find(last))
    }

    /// What tokens of one request to a model cost at list prices.
    pub fn cost(&self, model: &str, used: &TokenUsage) -> Option<MicroDollars> {
        Some(self.named(model)?.cost(used))
    }
}

impl Known {
    /// Tokens that question and answer may have together, beside the reasoning of a model that
    /// reasons.
    pub fn room(&self) -> Tokens {
        if self.thinks { self.window - Tokens(THOUGHT) } else { self.window }
    }

    /// What one request costs.
    pub fn cost(&self, used: &TokenUsage) -> MicroDollars {
        let input = used.input + used.cached + used.cache_written;
        let price = match &self.above {
            Some((above, price)) if input > *above => price,
            Some(_) | None => &self.price,
        };
        price.of(used)
    }
}

impl Price {
    /// What tokens cost, to the nearest millionth of a dollar.
    fn of(&self, used: &TokenUsage) -> MicroDollars {
        let parts = [
            (used.input, self.input),
            (used.cached, self.cached),
            (used.cache_written, self.written),
            (used.output, self.output),
        ];
        let sum: u128 =
            parts.iter().map(|(tokens, price)| u128::from(tokens.0) * u128::from(price.0)).sum();
        MicroDollars(u64::try_from((sum + 500_000) / 1_000_000).unwrap_or(u64::MAX))
    }
}

/// Whether a model that the table calls `known` may be called so: `claude-haiku-4-5` is
/// `claude-haiku-4-5-20251001`, and Bedrock's and others' dots are hyphens.
fn is_called(known: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(known) else {
        return known.replace('.', "-") == name;
    };
    let rest = rest.trim_start_matches(['-', '@', ':']);
    let digits = |c: char| c.is_ascii_digit() || c == '-';
    name == known
        || rest == "latest"
        || (rest.len() >= 8 && rest.chars().all(digits) && name.len() > known.len() + rest.len())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    date: String,
    #[serde(default)]
    model: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    provider: String,
    name: String,
    window: u64,
    output: u64,
    #[serde(default)]
    thinks: bool,
    #[serde(default)]
    summaries: bool,
    price: Price,
    above: Option<Above>,
}

#[derive(Deserialize)]
struct Above {
    input_tokens: u64,
    #[serde(flatten)]
    price: Price,
}

/// Dollars for a million tokens, as people write them.
#[derive(Deserialize)]
struct Dollars {
    input: f64,
    cached: Option<f64>,
    written: Option<f64>,
    output: f64,
}

impl Row {
    fn known(self) -> Result<Known, CatalogueError> {
        let unknown = || CatalogueError(format!("nobody is called {}", self.provider));
        let provider = Provider::named(&self.provider).ok_or_else(unknown)?;
        Ok(Known {
            name: ModelName { provider, model: self.name },
            window: Tokens(self.window),
            output: Tokens(self.output),
            thinks: self.thinks,
            summaries: self.summaries,
            price: self.price,
            above: self.above.map(|above| (Tokens(above.input_tokens), above.price)),
        })
    }
}

impl TryFrom<Dollars> for Price {
    type Error = String;

    fn try_from(dollars: Dollars) -> Result<Price, String> {
        let amount = |dollars: f64| {
            // A million dollars for a million tokens is no price.
            let is_price = (0.0..1e6).contains(&dollars);
            let micro = MicroDollars((dollars * 1e6).round() as u64);
            is_price.then_some(micro).ok_or_else(|| format!("{dollars} is no price"))
        };
        let input = amount(dollars.input)?;
        let or_input = |price: Option<f64>| price.map_or(Ok(input), amount);
        Ok(Price {
            input,
            cached: or_input(dollars.cached)?,
            written: or_input(dollars.written)?,
            output: amount(dollars.output)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, cached: u64, cache_written: u64, output: u64) -> TokenUsage {
        let [input, cached, cache_written, output] =
            [input, cached, cache_written, output].map(Tokens);
        TokenUsage { input, cached, cache_written, output }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let cases = [
            ("claude-sonnet-4-6", used(1_000_000, 0, 0, 0), Some(3_000_000)),
            ("claude-sonnet-4-6", used(0, 1_000_000, 0, 0), Some(300_000)),
            ("claude-sonnet-4-6", used(0, 0, 1_000_000, 0), Some(3_750_000)),
            ("claude-sonnet-4-6", used(0, 0, 0, 1_000_000), Some(15_000_000)),
            ("claude-sonnet-4-6", used(1, 0, 0, 0), Some(3)),
            // Above 100,000 tokens of input everything costs more.
            ("claude-haiku-5-5", used(100_000, 0, 0, 0), Some(10_000)),
            ("claude-haiku-5-5", used(50_000, 50_001, 0, 0), Some(27_500)),
            ("gpt-6-luna", used(0, 0, 0, 0), Some(0)),
            ("mock-model", used(1, 1, 1, 1), None),
        ];
        let catalogue = Catalogue::built_in();
        for (model, used, expect) in cases {
            let cost = catalogue.cost(model, &used);
            assert_eq!(cost, expect.map(MicroDollars), "{model} {used:?}");
        }
    }

    #[test]
    fn a_model_is_known_by_the_names_that_sessions_use() {
        let cases = [
            ("claude-haiku-4-5-20251001", Some("claude-haiku-4-5")),
            ("claude-sonnet-4-6-latest", Some("claude-sonnet-4-6")),
            ("anthropic/claude-opus-4-6", Some("claude-opus-4-6")),
            ("gpt-5-2025-08-07", Some("gpt-5")),
            ("gpt-5-mini", Some("gpt-5-mini")),
            ("gpt-5-turbo", None),
            ("gpt-5.1-codex-max", None),
            ("claude-sonnet", None),
            ("", None),
        ];
        let catalogue = Catalogue::built_in();
        for (name, expect) in cases {
            let known = catalogue.named(name).map(|known| &*known.name.model);
            assert_eq!(known, expect, "{name}");
        }
    }

    #[test]
    fn a_users_own_table_comes_first() {
        let own = "date = \"2027-01-01\"\n[[model]]\nprovider = \"ollama\"\nname = \"qwen3\"\n\
            window = 32768\noutput = 8192\nprice = { input = 0, output = 0 }\n[[model]]\n\
            provider = \"groq\"\nname = \"llama-3.1-8b-instant\"\nwindow = 8\noutput = 4\n\
            price = { input = 1, output = 2 }";
        let count = Catalogue::built_in().models().count();
        let both = Catalogue::built_in().with(Catalogue::parse(own).expect("a table"));
        assert_eq!((both.models().count(), both.date()), (count + 1, "2027-01-01"));
        let known = both.named("llama-3.1-8b-instant").expect("it is in both");
        assert_eq!(known.window, Tokens(8));
        assert_eq!(known.price.cached, MicroDollars(1_000_000));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let row = "[[model]]\nprovider = \"x\"\nname = \"y\"\nwindow = 1\noutput = 1\n";
        let cases = [
            ("window = 3", "unknown field"),
            (&format!("{row}price = {{ input = 1, output = 1 }}"), "nobody is called x"),
            (&format!("{row}price = {{ input = -1, output = 1 }}"), "-1 is no price"),
            (&format!("{row}price = {{ input = 1 }}"), "missing field"),
        ];
        for (text, expect) in cases {
            let err = Catalogue::parse(text).expect_err(text).to_string();
            assert!(err.contains(expect), "{err}");
        }
    }
}
