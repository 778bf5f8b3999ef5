//! Where the summary of a stored session comes from: the caller, or a model that writes it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use epitome_llm::{CallTotals, ChoiceReason, ListedModel, Model, Provider, Stop};
use epitome_model::{Counter, MicroDollars, Source, TokenUsage, Tokens};
use epitome_passes::{Recipe, Writer};
use epitome_tokens::O200k;
use serde::Serialize;

use crate::config::Config;
use crate::drive::{
    Forecast, ModelSelection, SummaryJob, catalogue, chosen_model, named_models, summary_writer,
    summary_writer_of,
};
use crate::error::Result;
use crate::session::Loaded;
use crate::settings::Settings;

/// The value of options and settings that selects a model of the session's own provider.
pub const AUTO: &str = "auto";
/// A window, in tokens, into which any question fits.
const UNLIMITED: Tokens = Tokens(1 << 40);

/// Where a summary comes from.
#[derive(Clone, Copy)]
pub enum SummaryFrom<'a> {
    /// From the caller: this text.
    Text(&'a str),
    /// From a model.
    Model {
        /// Which model is called.
        request: &'a ModelRequest,
        /// Called with the address of the session: before the model is called, and after it has
        /// responded or failed.
        on: &'a (dyn Fn(&Path, ModelEvent) + Sync),
    },
}

/// What happens while a model writes a summary.
#[derive(Clone, Debug)]
pub enum ModelEvent {
    /// The model is about to be called.
    Asking {
        /// The name of the model.
        model: String,
        /// The tokens of the first question.
        tokens: Tokens,
    },
    /// The model has written the summary, or all attempts have failed.
    Asked {
        /// The calls that were made, and their usage.
        models: AskedModels,
        /// The date of the list prices.
        prices_of: String,
    },
}

/// The calls of models for one session, including failed ones.
#[derive(Clone, Debug, Serialize)]
pub struct AskedModels {
    /// The name of the model that was called first.
    pub model: String,
    /// The usage of all calls, in sum.
    #[serde(flatten)]
    pub spent: CallTotals,
}

/// The model that options and settings select for summaries.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    model: Option<String>,
    address: Option<String>,
    fallback: Vec<String>,
    timeout: Option<Duration>,
    tries: Option<u32>,
}

/// The questions that a model would be asked about a session. The serde form is the JSON of
/// `epitome compact --summarise --dry-run --json` (`docs/json.md`).
#[derive(Clone, Debug, Serialize)]
pub struct WouldAsk {
    /// The address of the session: the path of its file, or `DATABASE#ID`.
    pub session: String,
    /// The name of the recipe.
    pub recipe: String,
    /// Always true.
    pub dry_run: bool,
    /// The questions, estimated.
    pub would_ask: Questions,
}

/// The questions to a model, estimated before any is asked.
#[derive(Clone, Debug, Serialize)]
pub struct Questions {
    /// The name of the model.
    pub model: String,
    /// Why this model was chosen.
    pub because: ChoiceReason,
    /// The number of questions and their tokens.
    #[serde(flatten)]
    pub forecast: Forecast,
    /// What the questions would cost at list prices; `null` if these are unknown.
    pub cost: Option<MicroDollars>,
    /// The date of the list prices.
    pub prices_of: String,
}

impl ModelRequest {
    /// Selects the model that the option `model` names or, if that is empty, the model that the
    /// settings name. If neither names a model, or the name is `auto`, a model of the session's
    /// provider is chosen. `address` and `fallback` are options, too; if `fallback` is empty, the
    /// fallback of the settings is used.
    pub fn new(
        settings: &Settings,
        model: &str,
        address: Option<&str>,
        fallback: &[String],
    ) -> ModelRequest {
        let set = &settings.values.compaction;
        let of_settings: Vec<String> = set.fallback.iter().cloned().collect();
        let model = Some(model).filter(|it| !it.is_empty()).or(set.model.as_deref());
        ModelRequest {
            model: model.filter(|it| *it != AUTO).map(Into::into),
            address: address.map(Into::into),
            fallback: if fallback.is_empty() { of_settings } else { fallback.to_vec() },
            timeout: set.timeout.map(Duration::from_secs),
            tries: set.tries,
        }
    }

    /// The values on which the choice of a model depends: the options and settings, and the model
    /// and size of the session.
    fn selection<'n, S: Source>(
        &'n self,
        counter: &dyn Counter,
        session: &'n Loaded<S>,
        recipe: &Recipe,
    ) -> Result<ModelSelection<'n>> {
        let entries = session.transcript.entries();
        let mut speakers = entries.filter_map(|(_, entry)| entry.model.as_deref());
        // If the model is given by its name, the size of the session is not needed.
        let model = self.model.as_deref();
        let job = if model.is_none_or(|model| Provider::find(model).is_some()) {
            // The history is estimated as one question, which is the longest possible.
            let whole = Writer { window: UNLIMITED, counter: Arc::new(O200k::new()) };
            SummaryJob::prepare(session, recipe, counter, whole)?
        } else {
            None
        };
        Ok(ModelSelection {
            model,
            address: self.address.as_deref(),
            fallback: &self.fallback,
            session: speakers.next_back(),
            tokens: job.map_or_else(Default::default, |job| job.tokens()),
            timeout: self.timeout,
            tries: self.tries,
        })
    }

    /// Lets a model write the summary. Returns an empty text if there is nothing to summarise.
    pub(super) fn write<S: Source>(
        &self,
        config: &Config,
        counter: &dyn Counter,
        session: &Loaded<S>,
        recipe: &Recipe,
        mut on: impl FnMut(ModelEvent),
    ) -> Result<String> {
        let model = named_models(config, &self.selection(counter, session, recipe)?)?;
        let job = SummaryJob::prepare(session, recipe, counter, summary_writer(&model))?;
        let Some(job) = job else { return Ok(String::new()) };
        let (tokens, _) = job.tokens();
        let name = model.name().to_string();
        on(ModelEvent::Asking { model: name.clone(), tokens });
        let written = job.write_with(&model, &Stop::default());
        let models = AskedModels { model: name, spent: model.spent() };
        let prices_of = catalogue(config)?.date().to_owned();
        on(ModelEvent::Asked { models, prices_of });
        Ok(written?.text)
    }

    /// Estimates the questions that a model would be asked, and their cost. Calls no model, and
    /// needs no key.
    pub(super) fn forecast<S: Source>(
        &self,
        config: &Config,
        counter: &dyn Counter,
        session: &Loaded<S>,
        recipe: &Recipe,
        path: &Path,
    ) -> Result<WouldAsk> {
        let (choice, table) = chosen_model(config, &self.selection(counter, session, recipe)?)?;
        let known = table.look_up(&choice.name);
        let writer = summary_writer_of(&choice.name, known.map(ListedModel::usable_window));
        let job = SummaryJob::prepare(session, recipe, counter, writer)?;
        let forecast = job.map_or_else(Forecast::default, SummaryJob::forecast);
        let Forecast { input, output, .. } = forecast;
        let used = TokenUsage { input, output, ..TokenUsage::default() };
        let would_ask = Questions {
            model: choice.name.to_string(),
            because: choice.because,
            forecast,
            cost: known.map(|known| known.cost(&used)),
            prices_of: table.date().to_owned(),
        };
        let session = path.display().to_string();
        let recipe = recipe.name.clone();
        Ok(WouldAsk { session, recipe, dry_run: true, would_ask })
    }
}
