//! Asks the configured model for summaries of stored sessions.

mod model_choice;

use std::sync::Arc;

use epitome_engine::{StartedSummary, SummaryRequest, WINDOW};
use epitome_llm::{Failure, Model, ModelName, Provider, Stop};
use epitome_model::{Counter, Source, Tokens};
use epitome_passes::{
    ContextKind, NoReply, Options, Recipe, Reply, StopReason, SummaryInProgress, SummaryProgress,
    Writer, WrittenSummary,
};
use epitome_tokens::O200k;
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::session::Loaded;
use epitome_engine::stored::no_summaries;

pub use model_choice::{ModelSelection, catalogue, chosen_model, named_models};

/// The window and the counter of a model that writes a summary.
///
/// Epitome counts tokens as OpenAI's models do. For other models, the same text may have up to a
/// third more tokens, so only three quarters of their window are used.
pub fn summary_writer(model: &dyn Model) -> Writer {
    summary_writer_of(model.name(), model.window())
}

/// Like [`summary_writer`], for a model of which only the name and the window are known.
pub fn summary_writer_of(name: &ModelName, window: Option<Tokens>) -> Writer {
    let window = window.unwrap_or(WINDOW);
    let window = match name.provider {
        Provider::OpenAi => window,
        Provider::Anthropic
        | Provider::Google
        | Provider::Groq
        | Provider::OpenRouter
        | Provider::Ollama
        | Provider::Compatible => Tokens(window.0 / 4 * 3),
    };
    Writer { window, counter: Arc::new(O200k::new()) }
}

/// The maximum cost of a summary, in questions and tokens. If the model's answers are shorter than
/// the maximum, later questions are shorter, too, because they contain earlier answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// The number of questions that the model is asked.
    pub questions: u64,
    /// The tokens of all questions together, as OpenAI's models count them.
    pub input: Tokens,
    /// The maximum number of tokens of all answers together.
    pub output: Tokens,
}

/// A summary of a stored session that a model is going to write.
#[derive(Debug)]
pub struct SummaryJob {
    writing: SummaryInProgress,
}

impl SummaryJob {
    /// Prepares the summary of a session. It covers everything except the end of the session, which
    /// the recipe keeps. `None` if there is nothing to summarise. Calls no model.
    ///
    /// # Errors
    ///
    /// `ReadOnly` if sessions of this agent are never written; `Refused` if they cannot hold a
    /// summary, or if this session does not fit the model.
    pub fn prepare<S: Source>(
        session: &Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
        writer: Writer,
    ) -> Result<Option<SummaryJob>> {
        let Loaded { format, source, transcript, .. } = session;
        session.writer()?;
        if format.summarise.is_none() {
            return Err(no_summaries(format));
        }
        let request = SummaryRequest {
            transcript,
            source,
            recipe,
            options: Options {
                kind: ContextKind::Stored,
                counter,
                thinking_is_bound: format.thinking_is_bound,
                counted: &[],
            },
            rule: recipe.stages.stored.summary.clone().unwrap_or_default(),
            writer,
        };
        let begun = request
            .begin(|end| end, |items, kept| format.originals_before(source, items, kept))
            .map_err(refused)?;
        Ok(begun.map(|StartedSummary { writing, .. }| SummaryJob { writing }))
    }

    /// The tokens of the first question and the maximum tokens of its answer, as OpenAI's models
    /// count them.
    pub fn tokens(&self) -> (Tokens, Tokens) {
        let ask = self.writing.ask();
        let counter = O200k::new();
        (counter.count(&ask.system) + counter.count(&ask.prompt), Tokens(ask.max_tokens))
    }

    /// Computes the maximum number of questions, and of the tokens of all questions and answers.
    /// Calls no model.
    pub fn forecast(self) -> Forecast {
        let counter = O200k::new();
        let mut estimate = Forecast::default();
        let mut writing = self.writing;
        loop {
            let ask = writing.ask();
            let longest = ask.max_tokens;
            estimate.questions += 1;
            estimate.input += counter.count(&ask.system) + counter.count(&ask.prompt);
            estimate.output += Tokens(longest);
            // An answer of the maximum length is assumed. The answer to the last question either is
            // written as the summary or is refused, and both end the loop.
            let text = " word".repeat(usize::try_from(longest).unwrap_or(usize::MAX / 8));
            let reply = Reply { text, stopped: StopReason::End, used: None };
            match writing.answer(Ok(reply)) {
                SummaryProgress::Ask(next) => writing = *next,
                SummaryProgress::Written(_) | SummaryProgress::Nothing { .. } => return estimate,
            }
        }
    }

    /// Asks `model` the questions until the summary is written.
    ///
    /// # Errors
    ///
    /// `Refused` if the model gives no answer, or none that can be used.
    pub fn write_with(self, model: &dyn Model, stop: &Stop) -> Result<WrittenSummary> {
        let mut writing = self.writing;
        loop {
            let reply = model.ask(writing.ask(), stop);
            match writing.answer(reply.map_err(|failure| no_reply(model, failure))) {
                SummaryProgress::Ask(next) => writing = *next,
                SummaryProgress::Written(written) => return Ok(written),
                SummaryProgress::Nothing { reason, .. } => {
                    let what = format!("{} wrote no summary: {reason}", model.name());
                    return Err(Error::new(ErrorKind::Refused, what)
                        .with_hint("nothing was written; without a model it is made small, too"));
                }
            }
        }
    }
}

/// Logs a failure of a model, and converts it for the state machine of the summary.
pub(crate) fn no_reply(model: &dyn Model, failure: Failure) -> NoReply {
    tracing::warn!(model = %model.name(), cause = ?failure.cause(), "no answer: {failure}");
    match failure {
        Failure::TooLong { .. } => NoReply::TooLong,
        failure => NoReply::Failed(failure.to_string()),
    }
}

fn refused(reason: String) -> Error {
    Error::new(ErrorKind::Refused, reason)
}
