//! Chooses the model that answers, and the one that writes summaries.

use std::sync::Arc;
use std::time::Duration;

use epitome::models::{ModelSelection, chosen_model, named_models};
use epitome_error::{Error, ErrorKind, Result, sentence};
use epitome_llm::{ChoiceReason, Model};
use epitome_model::Tokens;
use epitome_passes::Recipe;

use crate::machine::Event;
use crate::options::ChatOptions;
use crate::session::{Models, WINDOW};

/// The models of a chat.
#[derive(Clone)]
pub struct ChatModels {
    /// The model that answers.
    pub answers: Arc<dyn Model>,
    /// The model that writes summaries. It is the answering model if the recipe needs no summaries,
    /// if no other model can be used, or if the answering model is the one that is chosen for
    /// summaries.
    pub summarises: Arc<dyn Model>,
}

impl ChatModels {
    /// The models for a chat. The options name the answering model. If they do not,
    /// `of_session` is used, which is the model of a resumed session; if it is `None`, the model of
    /// the settings. The events are notices about choices that the user may not expect.
    pub fn new(
        options: &ChatOptions,
        of_session: Option<&str>,
        recipe: &Recipe,
    ) -> Result<(ChatModels, Vec<Event>)> {
        let (name, note) = options.model_name(of_session)?;
        let mut notices: Vec<String> = note.into_iter().map(str::to_owned).collect();
        let answers = options.answering(name)?;
        let summarises = match options.summarising(&answers, recipe) {
            Ok(other) => other.unwrap_or_else(|| answers.clone()),
            Err(err) => {
                let why = sentence(&err);
                notices.push(format!("{} writes its own summaries: {why}", answers.name()));
                answers.clone()
            }
        };
        let notices = notices.into_iter().map(|text| Event::Notice { text }).collect();
        Ok((ChatModels { answers, summarises }, notices))
    }

    /// The name of the model that writes summaries, if it is not the one that answers.
    pub fn other_summariser(&self) -> Option<String> {
        let name = self.summarises.name();
        (name != self.answers.name()).then(|| name.to_string())
    }

    /// Both models, borrowed.
    pub fn as_models(&self) -> Models<'_> {
        Models { answers: &*self.answers, summarises: &*self.summarises }
    }
}

impl ChatOptions {
    /// The name of the model that answers. If only a model for summaries is configured, that model
    /// answers, and a notice for the user says so.
    ///
    /// # Errors
    ///
    /// `Usage` if no model is configured.
    pub fn model_name<'a>(
        &'a self,
        of_session: Option<&'a str>,
    ) -> Result<(&'a str, Option<&'static str>)> {
        let set = &self.settings.values;
        let named = self.model.as_deref().or(of_session).or(set.chat.model.as_deref());
        if let Some(name) = named {
            return Ok((name, None));
        }
        let Some(name) = set.compaction.model.as_deref() else {
            return Err(Error::new(ErrorKind::Usage, "no model is named").with_hint(
                "name one: --model anthropic/claude-haiku-4-5, ollama/qwen3:8b, …\n\
             `epitome config` has the setting chat.model; docs/models.md lists providers",
            ));
        };
        let note = "the model that answers is that of compaction.model, which is for summaries: \
                chat.model sets another";
        Ok((name, Some(note)))
    }

    fn answering(&self, name: &str) -> Result<Arc<dyn Model>> {
        let set = &self.settings.values.compaction;
        let naming = ModelSelection {
            model: Some(name),
            address: self.base_url.as_deref(),
            timeout: set.timeout.map(Duration::from_secs),
            tries: set.tries,
            ..ModelSelection::default()
        };
        Ok(Arc::new(named_models(&self.config, &naming)?))
    }

    /// The model that writes summaries: the model of the settings; if they name none, the cheapest
    /// model of the same provider whose window suffices. If a request to it fails, the fallback
    /// models of the settings write the summary, and at last the answering model. `None` if the
    /// recipe needs no summaries, or if the choice is the answering model.
    fn summarising(
        &self,
        answers: &Arc<dyn Model>,
        recipe: &Recipe,
    ) -> Result<Option<Arc<dyn Model>>> {
        let Some(rule) = &recipe.stages.live.summary else { return Ok(None) };
        let set = &self.settings.values.compaction;
        let own = answers.name().to_string();
        let provider = answers.name().provider;
        // A question for a summary may be as long as the chat's window.
        let window = self.window.or(answers.window()).unwrap_or(WINDOW);
        let answer = Tokens(rule.max_tokens);
        let fallback: Vec<String> = set.fallback.iter().cloned().chain([own.clone()]).collect();
        let mut naming = ModelSelection {
            model: set.model.as_deref().or(Some(provider.name())),
            session: Some(&answers.name().model),
            tokens: (window - answer, answer),
            fallback: &fallback,
            timeout: set.timeout.map(Duration::from_secs),
            tries: set.tries,
            address: None,
        };
        let (choice, _) = chosen_model(&self.config, &naming)?;
        if choice.name == *answers.name() || choice.because == ChoiceReason::Session {
            return Ok(None);
        }
        // The base URL of the options applies only to models of the answering model's provider.
        if choice.name.provider == provider {
            naming.address = self.base_url.as_deref();
        }
        let name = choice.name.to_string();
        naming.model = Some(&name);
        Ok(Some(Arc::new(named_models(&self.config, &naming)?)))
    }
}
