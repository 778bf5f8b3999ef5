//! Limits and prices of models: a built-in table, which the user's own file overrides.

use epitome_model::{MicroDollars, Tokens};
use epitome_passes::TokenUsage;
use serde::Deserialize;

use crate::name::{ModelName, Provider};

/// The built-in table.
const BUILT_IN: &str = include_str!("../models.toml");

/// Tokens that a reasoning model may use for reasoning, in addition to its answer.
pub(crate) const THOUGHT: u64 = 8_000;

/// A table of models.
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
    models: Vec<ListedModel>,
}

/// A model of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedModel {
    /// The provider and the name of the model.
    pub name: ModelName,
    /// The context window: the maximum tokens of a request and its response together.
    pub window: Tokens,
    /// Maximum output tokens.
    pub output: Tokens,
    /// Whether the model reasons before it responds; reasoning counts as output.
    pub thinks: bool,
    /// Whether the model is good enough to write summaries.
    pub summaries: bool,
    /// The price of the model.
    pub price: Price,
    /// The price of long requests, if it differs: a number of tokens, and the price of all tokens
    /// of a request whose input has more tokens than this number.
    pub above: Option<(Tokens, Price)>,
}

/// Price of a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Dollars")]
pub struct Price {
    /// Input that was neither read from a cache nor written to one.
    pub input: MicroDollars,
    /// Input that was read from a cache.
    pub cached: MicroDollars,
    /// Input that was written to a cache.
    pub written: MicroDollars,
    /// Output.
    pub output: MicroDollars,
}

/// Why a table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid model table: {0}")]
pub struct CatalogueError(pub String);

impl Catalogue {
    /// The built-in table.
    pub fn built_in() -> Catalogue {
        Catalogue::parse(BUILT_IN).expect("the built-in table is read by a test")
    }

    /// Parses a table in TOML, as in `models.toml`.
    ///
    /// # Errors
    ///
    /// [`CatalogueError`] if the text is not such a table.
    pub fn parse(text: &str) -> Result<Catalogue, CatalogueError> {
        let file: File = toml::from_str(text).map_err(|err| CatalogueError(err.to_string()))?;
        let models = file.model.into_iter().map(Row::into_model).collect::<Result<_, _>>()?;
        Ok(Catalogue { date: file.date, models })
    }

    /// Adds the rows of a user's table before the existing rows, and removes the existing rows of
    /// the same models.
    #[must_use]
    pub fn with(mut self, own: Catalogue) -> Catalogue {
        self.models.retain(|known| own.models.iter().all(|model| model.name != known.name));
        self.models.splice(0..0, own.models);
        self.date = self.date.max(own.date);
        self
    }

    /// The date of the newest prices in the table, such as `2026-11-21`; empty if the table has
    /// none.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The models, in the order of the table.
    pub fn models(&self) -> impl Iterator<Item = &ListedModel> {
        self.models.iter()
    }

    /// Looks a model up by its provider and its name. The name may end in a date or `latest`; a
    /// name without such an end may have hyphens in place of dots.
    pub fn look_up(&self, name: &ModelName) -> Option<&ListedModel> {
        let mut models = self.models.iter();
        models.find(|known| {
            known.name.provider == name.provider && is_called(&known.name.model, &name.model)
        })
    }

    /// Looks a model up by its name alone, as sessions record it. If the table does not have the
    /// name, looks up the part after its last `/`. If several providers have the model, uses the
    /// first row of the table and assumes that its price is the same everywhere.
    pub fn find(&self, model: &str) -> Option<&ListedModel> {
        let (_, last) = model.rsplit_once('/').unwrap_or(("", model));
        let mut models = self.models.iter();
        let whole = models.clone().find(|known| is_called(&known.name.model, model));
        whole.or_else(|| models.find(|known| is_called(&known.name.model, last)))
    }

    /// The cost of one request at list prices. `None` if the table does not have the model.
    pub fn cost(&self, model: &str, used: &TokenUsage) -> Option<MicroDollars> {
        Some(self.find(model)?.cost(used))
    }
}

impl ListedModel {
    /// The tokens that a request and its response may have together: the context window, less 8,000
    /// tokens for reasoning if the model reasons.
    pub fn usable_window(&self) -> Tokens {
        if self.thinks { self.window - Tokens(THOUGHT) } else { self.window }
    }

    /// The cost of one request at list prices.
    pub fn cost(&self, used: &TokenUsage) -> MicroDollars {
        let input = used.input + used.cached + used.cache_written;
        let price = match &self.above {
            Some((above, price)) if input > *above => price,
            Some(_) | None => &self.price,
        };
        price.cost(used)
    }
}

impl Price {
    /// The cost of these tokens, rounded to the nearest millionth of a dollar.
    fn cost(&self, used: &TokenUsage) -> MicroDollars {
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

/// Whether `name` means the model that the table calls `known`. A date or `latest` may follow the
/// name: `claude-haiku-4-5-20251001` is `claude-haiku-4-5`. Bedrock and others write hyphens for
/// dots; a date after such a name is not recognised.
fn is_called(known: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(known) else {
        return known.replace('.', "-") == name;
    };
    let rest = rest.trim_start_matches(['-', '@', ':']);
    name == known
        || rest == "latest"
        || (rest.len() >= 8
            && rest.chars().all(|c| c.is_ascii_digit() || c == '-')
            && name.len() > known.len() + rest.len())
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

/// Dollars per million tokens, as written in the table. Cached input without a price of its own
/// costs as much as other input, and so does input that is written to the cache.
#[derive(Deserialize)]
struct Dollars {
    input: f64,
    cached: Option<f64>,
    written: Option<f64>,
    output: f64,
}

impl Row {
    fn into_model(self) -> Result<ListedModel, CatalogueError> {
        let Some(provider) = Provider::find(&self.provider) else {
            return Err(CatalogueError(format!("unknown provider {}", self.provider)));
        };
        Ok(ListedModel {
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
        let input = amount(dollars.input)?;
        Ok(Price {
            input,
            cached: dollars.cached.map_or(Ok(input), amount)?,
            written: dollars.written.map_or(Ok(input), amount)?,
            output: amount(dollars.output)?,
        })
    }
}

fn amount(dollars: f64) -> Result<MicroDollars, String> {
    // A price of a million dollars or more is a mistake in the table.
    if !(0.0..1e6).contains(&dollars) {
        return Err(format!("{dollars} is not a price"));
    }
    Ok(MicroDollars((dollars * 1e6).round() as u64))
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
            let known = catalogue.find(name).map(|known| &*known.name.model);
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
        let known = both.find("llama-3.1-8b-instant").expect("it is in both");
        assert_eq!(known.window, Tokens(8));
        assert_eq!(known.price.cached, MicroDollars(1_000_000));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let row = "[[model]]\nprovider = \"x\"\nname = \"y\"\nwindow = 1\noutput = 1\n";
        let cases = [
            ("window = 3", "unknown field"),
            (&format!("{row}price = {{ input = 1, output = 1 }}"), "unknown provider x"),
            (&format!("{row}price = {{ input = -1, output = 1 }}"), "-1 is not a price"),
            (&format!("{row}price = {{ input = 1 }}"), "missing field"),
        ];
        for (text, expect) in cases {
            let err = Catalogue::parse(text).expect_err(text).to_string();
            assert!(err.contains(expect), "{err}");
        }
    }
}
