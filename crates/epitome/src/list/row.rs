//! A session of the list, as JSON.

use std::path::Path;

use epitome_model::{Bytes, Tokens};
use jiff::Timestamp;
use serde::Serialize;

use super::ListedSession;
use crate::ops::BillingFit;

/// A session as `epitome list --json` shows it. See `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct ListedRow<'a> {
    #[serde(serialize_with = "epitome_model::lossy_path")]
    session: &'a Path,
    agent: &'a str,
    id: &'a str,
    project: Option<&'a str>,
    title: Option<&'a str>,
    modified: Option<Timestamp>,
    disk_bytes: Bytes,
    turns: Option<u64>,
    context_tokens: Option<Tokens>,
    request_tokens: Option<Tokens>,
    calibration: Option<BillingFit>,
    saving_tokens: Option<Tokens>,
    compactions: u64,
    compactions_in_effect: u64,
    restored: bool,
    counter: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl ListedSession {
    /// The session as JSON.
    pub fn row(&self) -> ListedRow<'_> {
        let seen = self.seen.as_ref().ok();
        ListedRow {
            session: &self.file.path,
            agent: self.file.agent,
            id: seen.map_or(&self.file.id, |seen| &seen.id),
            project: seen.and_then(|seen| seen.cwd.as_deref()),
            title: seen.and_then(|seen| seen.title.as_deref()),
            modified: Timestamp::try_from(self.file.modified).ok(),
            disk_bytes: self.size(),
            turns: seen.and_then(|seen| seen.turns),
            context_tokens: seen.and_then(|seen| seen.context),
            request_tokens: seen.and_then(|seen| seen.request),
            calibration: seen
                .and_then(|seen| seen.calibration)
                .as_ref()
                .map(BillingFit::from_calibration),
            saving_tokens: seen.map(|seen| seen.saving),
            compactions: self.compactions,
            compactions_in_effect: seen.map_or(0, |seen| seen.in_effect),
            restored: seen.is_some_and(|seen| seen.restored),
            counter: "estimate",
            error: self.seen.as_ref().err().map(String::as_str),
        }
    }
}
