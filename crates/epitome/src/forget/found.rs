//! The texts that rules find in a session.

use std::collections::BTreeMap;

use epitome_redact::{Finder, Redactor};
use epitome_store::forgotten::{self, ForgottenText};

use super::LeftOutText;
use super::session::ForgetSession;
use super::text::{ForgetText, check_records};
use crate::config::Config;
use crate::error::{ErrorKind, Result};

/// The texts that rules find in a session and that can be forgotten.
pub struct FoundTexts {
    /// Forgets the texts. `None` if there are none.
    pub forget: Option<ForgetText>,
    /// For each rule that found texts, how many of them are forgotten.
    pub by_rule: BTreeMap<String, u64>,
    /// The texts that are not forgotten, because they are in epitome's own records.
    pub left_out: Vec<LeftOutText>,
    /// What compactions removed from the session and could not be put back, so that the rules did
    /// not search it: each as a sentence.
    pub missing: Vec<String>,
}

impl FoundTexts {
    /// Searches the versions of a session that were kept, and the session as it is now with what
    /// compactions removed. Left out are texts that [`check`](forgotten::check) refuses, for
    /// example because they are too short, and those that [`ForgetText::plan`] refuses.
    ///
    /// # Errors
    ///
    /// `Archive` if the vault cannot be listed, or a version cannot be read; the errors of reading
    /// the session as it is now, and epitome's own records.
    pub fn search(config: &Config, session: &ForgetSession, finder: &Finder) -> Result<FoundTexts> {
        let mut redactor = Redactor::new(finder);
        let missing = session.learn_all(config, &mut redactor)?;
        let is_taken = |(text, _): &(&str, &str)| forgotten::check(text).is_ok();
        let secrets: BTreeMap<&str, &str> = redactor.secrets().filter(is_taken).collect();
        let mut texts: Vec<&str> = secrets.keys().copied().collect();
        let recorded = in_records(config, &texts)?;
        texts.retain(|text| !recorded.contains_key(text));
        let mut by_rule = BTreeMap::new();
        for text in &texts {
            *by_rule.entry(secrets[text].to_owned()).or_default() += 1;
        }
        let left_out = recorded.into_iter().map(|(text, reason)| {
            let rule = secrets[text].to_owned();
            LeftOutText { rule, reason }
        });
        let left_out: Vec<LeftOutText> = left_out.collect();
        let mut forget = None;
        if let Some(forgotten) = ForgottenText::all(texts.iter().copied()) {
            let mut found = ForgetText::from_text(forgotten, &texts)?;
            found.left_out.clone_from(&left_out);
            forget = Some(found);
        }
        Ok(FoundTexts { forget, by_rule, left_out, missing })
    }
}

/// Those of `texts` that are in epitome's own records, each with the message of the error for it.
/// The records are searched for all texts at once. If they contain one, they are searched again for
/// each half of the texts, and so on.
fn in_records<'t>(config: &Config, texts: &[&'t str]) -> Result<BTreeMap<&'t str, String>> {
    let Some(all) = ForgottenText::all(texts.iter().copied()) else { return Ok(BTreeMap::new()) };
    match check_records(config, &all) {
        Ok(()) => Ok(BTreeMap::new()),
        Err(err) if err.kind() != ErrorKind::Refused => Err(err),
        Err(err) => {
            if let [text] = texts {
                return Ok(BTreeMap::from([(*text, err.to_string())]));
            }
            let (first, second) = texts.split_at(texts.len() / 2);
            let mut found = in_records(config, first)?;
            found.extend(in_records(config, second)?);
            Ok(found)
        }
    }
}
