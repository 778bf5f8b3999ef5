//! The status line of an agent that is running: how full its context is, how many tokens compacting
//! would save, and what was spent today.
//!
//! An agent runs the status line after each response, so it must be fast. Of the sessions, it reads
//! only what was appended since it last ran and, if the agent does not say how full the context is,
//! the end of the agent's session. The tokens that compacting would save are computed by another
//! process ([`refresh`]), which stores them in a file for the status line.

mod today;

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use epitome_formats::claude::{Status, read_billed};
use epitome_model::{MicroDollars, Tokens};
use serde::{Deserialize, Serialize};

use crate::archive::Hash;
use crate::config::Config;
use crate::drive::catalogue;
use crate::error::Result;
use crate::list::saving;
use crate::regular;
use crate::settings::Settings;
use crate::store::disk;

/// The number of bytes at the end of a session that are read to find its last request.
const TAIL: u64 = 256 << 10;
/// The saving is computed again when the size of a session has changed by more than a twentieth:
/// one part in `GROWN`.
const GROWN: u64 = 20;

/// What the status line displays. A value is `None` if it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StatusLine {
    /// The tokens of the last request and its response.
    pub context_tokens: Option<Tokens>,
    /// The context window of the model.
    pub window: Option<Tokens>,
    /// The tokens that compacting would remove from the context, as of the last [`refresh`].
    pub saving_tokens: Option<Tokens>,
    /// What the requests in all sessions of Claude Code cost since midnight UTC, in millionths of a
    /// dollar.
    pub today: Option<MicroDollars>,
    /// Whether `today` may be too low, because not all sessions have been read yet.
    pub is_partial: bool,
    /// Whether `saving_tokens` should be computed again: see [`refresh`].
    #[serde(skip)]
    pub is_outdated: bool,
}

impl StatusLine {
    /// How full the context is, in per cent of the window. `None` if one of the two is not known.
    pub fn percent(&self) -> Option<u64> {
        let context = self.context_tokens?;
        let window = self.window?;
        Some(context.0 * 100 / window.0.max(1))
    }
}

/// The status line of a session of Claude Code.
///
/// # Errors
///
/// The errors of [`catalogue`]. Files that cannot be read are no error.
pub fn status_line(config: &Config, status: &Status) -> Result<StatusLine> {
    let prices = catalogue(config)?;
    let session = status.session.as_deref().map(Path::new);
    let last = || last_context(session?);
    let named = || Some(prices.find(status.model.as_deref()?)?.window);
    let (today, is_partial) = today::spent(config, &prices);
    let size = session.and_then(|path| std::fs::metadata(path).ok()).map(|meta| meta.len());
    let saved = session.and_then(|path| Saved::load(config, path));
    let is_outdated = match (size, &saved) {
        (None | Some(0), _) => false,
        (Some(_), None) => true,
        (Some(size), Some(saved)) => saved.size.abs_diff(size) * GROWN > size,
    };
    Ok(StatusLine {
        context_tokens: status.context.or_else(last),
        window: status.window.or_else(named),
        saving_tokens: saved.and_then(|saved| saved.saving),
        today: Some(today),
        is_partial,
        is_outdated,
    })
}

/// Computes how many tokens compacting a session would save, and stores the number for the next
/// status lines.
///
/// # Errors
///
/// `Recipe` if the recipe of the settings cannot be used; `Disk` or `NoPermission` if the result
/// cannot be stored.
pub fn refresh(config: &Config, settings: &Settings, session: &Path) -> Result<()> {
    let size = std::fs::metadata(session).map_or(0, |meta| meta.len());
    // The size is stored at once, so that status lines do not start the same computation meanwhile.
    let before = Saved::load(config, session).and_then(|saved| saved.saving);
    Saved { size, saving: before }.store(config, session)?;
    let recipe = crate::recipes::resolve(config, settings, None)?;
    Saved { size, saving: saving(session, &recipe) }.store(config, session)
}

/// The tokens that compacting a session would save, and the size that the session had when they
/// were computed. `saving` is `None` if the session could not be read, or if the first computation
/// is still running.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    size: u64,
    saving: Option<Tokens>,
}

impl Saved {
    fn load(config: &Config, session: &Path) -> Option<Saved> {
        serde_json::from_slice(&regular::read(&Saved::path(config, session)).ok()?).ok()
    }

    fn store(&self, config: &Config, session: &Path) -> Result<()> {
        let path = Saved::path(config, session);
        if let Some(folder) = path.parent() {
            disk::private_folder(folder)?;
        }
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        crate::store::write_over(&path, |out| Ok(out.write_all(&bytes)?))
    }

    fn path(config: &Config, session: &Path) -> PathBuf {
        let name = Hash::compute(session.as_os_str().as_encoded_bytes()).to_string();
        config.home.join("cache/status-line").join(format!("{}.json", &name[..16]))
    }
}

/// The tokens of the last request of a session and its response, from the end of the file.
fn last_context(session: &Path) -> Option<Tokens> {
    let mut file = regular::open(session).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let usage = read_billed(&bytes).requests.last()?.usage;
    Some(Tokens(usage.input + usage.output))
}

#[cfg(test)]
mod tests;
