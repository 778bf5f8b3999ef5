//! A summary is a question: the context asks it, whoever drives it answers.

use epitome_formats::{Summary, epitome, named};
use epitome_model::{Tokens, weigh};
use epitome_passes::{Options, Recipe, Trigger, Why, compact};

use super::Context;
use crate::compact::{kept_end, says_more_than_a_summary};
use crate::error::{Error, ErrorKind, Result};

/// What a model is asked to summarise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Why.
    pub why: Why,
    /// What the summary will stand for: items of the transcript, in the order they are sent.
    pub items: Vec<usize>,
    /// What is sent behind it as it is.
    pub kept: Vec<usize>,
    /// Tokens that the summary may have.
    pub max_tokens: u64,
    /// What it tells of, one heading each.
    pub sections: Vec<String>,
    /// What somebody asked it to look at.
    pub focus: Option<String>,
}

impl Context {
    /// The answer to the last question: the words of a summary, or why there are none. Without a
    /// summary the context stays as the passes have left it.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written, `Refused` if nothing was asked.
    pub fn answer(&mut self, answer: std::result::Result<String, String>) -> Result<()> {
        let asked = self.pending.take();
        let question = asked.ok_or_else(|| Error::new(ErrorKind::Refused, "nothing was asked"))?;
        let before = self.tokens();
        let why = question.why;
        let outcome = match answer {
            Ok(text) => match self.summarise(&text, &question) {
                Ok(()) => Ok(self.tokens()),
                Err(err) if err.kind() == ErrorKind::Refused => Err(err.to_string()),
                Err(err) => return Err(err),
            },
            Err(reason) => Err(reason),
        };
        self.machine.answered(why, before, outcome);
        Ok(())
    }

    /// What a summary could stand for; nothing if all is kept.
    pub(super) fn question(&mut self, why: Why) -> Option<Question> {
        let rule = self.machine.live().summary.clone()?;
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let format = named("epitome").expect("our own format is one of them");
        let options = Options {
            counter: &*self.counter,
            thinking_is_bound: format.thinking_is_bound,
            counted: self.counts.items(),
        };
        let keep =
            Recipe { passes: Vec::new(), trigger: Trigger::default(), ..self.recipe.clone() };
        let kept = compact(transcript, source, &keep, &options).kept;
        let (old, kept) = kept_end(transcript, &kept);
        let told = |item: &&usize| !transcript.head.prompt.contains(item);
        let items: Vec<usize> = old.iter().filter(told).copied().collect();
        says_more_than_a_summary(transcript, old).then(|| Question {
            why,
            items,
            kept: kept.to_vec(),
            max_tokens: rule.max_tokens,
            sections: rule.sections,
            focus: self.focus.take(),
        })
    }

    fn summarise(&mut self, text: &str, question: &Question) -> Result<()> {
        let refuse = |what: &str| Error::new(ErrorKind::Refused, what);
        if text.trim().is_empty() {
            return Err(refuse("the summary is empty"));
        }
        let stands_for: Tokens = question.items.iter().map(|&item| self.counts.item(item)).sum();
        if self.counter.count(text) >= stands_for {
            return Err(refuse("the summary is longer than what it stands for"));
        }
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let tokens = weigh(transcript, source, &*self.counter).total();
        let summary = Summary { text, kept: &question.kept, tokens };
        let write = epitome::FORMAT.summarise.expect("our own format has summaries");
        let line = write(transcript, source, &summary).map_err(refuse)?;
        self.log.flush()?;
        self.log.append(&line)?;
        self.recount();
        Ok(())
    }
}
