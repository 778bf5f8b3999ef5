//! Which model answers, and which one writes summaries.

use std::sync::Arc;
use std::time::Duration;

use epitome::models::{ModelSelection, chosen_model, named_models};
use epitome_chat::machine::Event;
use epitome_chat::session::WINDOW;
use epitome_llm::{Because, Model};
use epitome_model::Tokens;
use epitome_passes::Recipe;

use super::Args;
use crate::app::App;
use crate::failure::{Failure, Result};

/// The models of a chat.
#[derive(Clone)]
pub struct ChatModels {
    /// Answers.
    pub answers: Arc<dyn Model>,
    /// Writes summaries. The same one, if the recipe has none.
    pub summarises: Arc<dyn Model>,
}

impl ChatModels {
    /// The models that options, a session that goes on, and settings name, in this order. Events
    /// say what the user may not expect.
    pub fn new(
        app: &App,
        args: &Args,
        of_session: Option<&str>,
        recipe: &Recipe,
    ) -> Result<(ChatModels, Vec<Event>)> {
        let (name, note) = model_name(app, args, of_session)?;
        let mut notices: Vec<String> = note.into_iter().collect();
        let answers = answering(app, args, name)?;
        let summarises = match summarising(app, args, &answers, recipe) {
            Ok(other) => other.unwrap_or_else(|| answers.clone()),
            Err(failure) => {
                let why = failure.told();
                notices.push(format!("{} writes its own summaries: {why}", answers.name()));
                answers.clone()
            }
        };
        let notices = notices.into_iter().map(|text| Event::Notice { text }).collect();
        Ok((ChatModels { answers, summarises }, notices))
    }

    /// The name of the model that writes summaries, if it is another one.
    pub fn other_summariser(&self) -> Option<String> {
        let name = self.summarises.name();
        (name != self.answers.name()).then(|| name.to_string())
    }

    /// Both, as a session takes them.
    pub fn borrowed(&self) -> epitome_chat::session::Models<'_> {
        epitome_chat::session::Models { answers: &*self.answers, summarises: &*self.summarises }
    }
}

/// The name of the model that answers, and a notice about it for the user.
pub fn model_name<'a>(
    app: &'a App,
    args: &'a Args,
    of_session: Option<&'a str>,
) -> Result<(&'a str, Option<String>)> {
    let set = &app.settings()?.values;
    let named = args.model.as_deref().or(of_session).or(set.chat.model.as_deref());
    if let Some(name) = named {
        return Ok((name, None));
    }
    let Some(name) = set.compaction.model.as_deref() else {
        return Err(Failure::usage("no model is named")
            .hint("name one: --model anthropic/claude-haiku-4-5, ollama/qwen3:8b, …")
            .hint("`epitome config` has the setting chat.model; docs/models.md lists providers"));
    };
    let note = "the model that answers is that of compaction.model, which is for summaries: \
                chat.model sets another";
    Ok((name, Some(note.to_owned())))
}

fn answering(app: &App, args: &Args, name: &str) -> Result<Arc<dyn Model>> {
    let set = &app.settings()?.values.compaction;
    let naming = ModelSelection {
        model: Some(name),
        address: args.base_url.as_deref(),
        timeout: set.timeout.map(Duration::from_secs),
        tries: set.tries,
        ..ModelSelection::default()
    };
    Ok(Arc::new(named_models(&app.config, &naming)?))
}

/// The model that writes summaries, if the recipe has any and it is another one: that of the
/// settings, or else the cheapest of the same provider that takes such a question. If it has no
/// answer, the one that answers is asked.
fn summarising(
    app: &App,
    args: &Args,
    answers: &Arc<dyn Model>,
    recipe: &Recipe,
) -> Result<Option<Arc<dyn Model>>> {
    let Some(rule) = &recipe.stages.live.summary else { return Ok(None) };
    let set = &app.settings()?.values.compaction;
    let own = answers.name().to_string();
    let provider = answers.name().provider;
    // A question may hold all that the chat's window does.
    let window = args.window.map(Tokens).or(answers.window()).unwrap_or(WINDOW);
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
    let (choice, _) = chosen_model(&app.config, &naming)?;
    if choice.name == *answers.name() || choice.because == Because::Session {
        return Ok(None);
    }
    // What one address offers is with it; another provider is elsewhere.
    if choice.name.provider == provider {
        naming.address = args.base_url.as_deref();
    }
    let name = choice.name.to_string();
    naming.model = Some(&name);
    Ok(Some(Arc::new(named_models(&app.config, &naming)?)))
}
