//! Looks sessions up in the archive.

use std::path::Path;

use super::open::{SessionPart, is_same_file};
use crate::archive::{Generations, SessionKey};
use crate::config::Config;
use crate::error::Result;
use crate::session::Loaded;

/// A session's key, and its generations in the archive.
#[derive(Clone)]
pub(super) struct Known {
    pub key: SessionKey,
    pub found: Generations,
}

impl Known {
    /// Looks up the generations of the session with the key `key`.
    pub fn of_key(config: &Config, key: SessionKey) -> Result<Known> {
        let found = config.archive().generations(&key)?;
        Ok(Known { key, found })
    }

    /// Whether the archive has nothing of the session, not even a damaged pack.
    pub fn is_empty(&self) -> bool {
        self.found.whole.is_empty() && self.found.damaged.is_empty()
    }

    /// Finds the session that was stored in the file of `part` when it was compacted. The paths in
    /// the generations of all sessions in the archive are compared. `None` if no generation that
    /// can be read has this path.
    pub fn of_path(config: &Config, part: &SessionPart) -> Result<Option<Known>> {
        let path = &part.real();
        for key in config.archive().sessions()? {
            let known = Known::of_key(config, key)?;
            if known.found.whole.iter().any(|generation| is_same_file(&generation.path, path)) {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }
}

/// The key of a session in the archive. If the session has no id, and the key from the name of its
/// file has no generations, the archive is searched for the path of the file: the session may have
/// lost its id.
///
/// # Errors
///
/// The errors of reading the archive, for example `NoPermission`.
pub(crate) fn key_in_archive<S>(
    config: &Config,
    session: &Loaded<S>,
    path: &Path,
) -> Result<SessionKey> {
    let key = crate::session::key_of(session, path);
    if session.transcript.head.id.is_none()
        && Known::of_key(config, key.clone())?.is_empty()
        && let Some(known) = Known::of_path(config, &SessionPart::at(path))?
    {
        return Ok(known.key);
    }
    Ok(key)
}
