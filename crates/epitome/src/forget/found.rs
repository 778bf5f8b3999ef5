//! The texts that rules find in a session.

use std::collections::BTreeMap;

use epitome_redact::{Finder, Redactor};
use epitome_store::forgotten::{self, ForgottenText};

use super::session::ForgetSession;
use super::text::ForgetText;
use crate::config::Config;
use crate::error::Result;

/// The texts that rules find in a session and that can be forgotten.
pub struct FoundTexts {
    /// Forgets the texts. `None` if there are none.
    pub forget: Option<ForgetText>,
    /// For each rule that found texts, how many of them are forgotten.
    pub by_rule: BTreeMap<String, u64>,
    /// What compactions removed from the session and could not be put back, so that the rules did
    /// not search it: each as a sentence.
    pub missing: Vec<String>,
}

impl FoundTexts {
    /// Searches the versions of a session that were kept, and the session as it is now with what
    /// compactions removed. Texts that are too short or too long are left out.
    ///
    /// # Errors
    ///
    /// `Archive` if the vault cannot be listed, or a version cannot be read; the errors of reading
    /// the session as it is now.
    pub fn search(
        config: &Config,
        session: &ForgetSession,
        finder: &Finder,
    ) -> Result<FoundTexts> {
        let mut redactor = Redactor::new(finder);
        let missing = session.learn_all(config, &mut redactor)?;
        let is_taken = |(text, _): &(&str, &str)| forgotten::check(text).is_ok();
        let secrets: Vec<(&str, &str)> = redactor.secrets().filter(is_taken).collect();
        let texts: Vec<&str> = secrets.iter().map(|(text, _)| *text).collect();
        let forget = ForgottenText::all(texts.iter().copied())
            .map(|forgotten| ForgetText::from_text(forgotten, &texts))
            .transpose()?;
        let mut by_rule = BTreeMap::new();
        for (_, rule) in secrets {
            *by_rule.entry(rule.to_owned()).or_default() += 1;
        }
        Ok(FoundTexts { forget, by_rule, missing })
    }
}
