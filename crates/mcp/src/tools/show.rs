//! `show`: the text that a stub replaced, or a call or response of a session.

use std::path::Path;

use epitome::agents::SessionFile;
use epitome::ops::{OpenSession, archived_text, session_text};
use epitome::{History, Version};
use epitome_passes::Name;
use epitome_redact::Redactor;

use super::Library;
use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::sessions::Sessions;

impl Library {
    pub(super) fn show(
        &self,
        sessions: &Sessions<'_>,
        arguments: &Arguments,
        redactor: Option<&mut Redactor<'_>>,
    ) -> Result<String, ToolError> {
        let wanted = arguments.text("ref");
        let lines = arguments.optional_text("lines").map(parse_lines).transpose()?;
        let name = Name::parse(wanted.trim().trim_start_matches("epitome "))
            .ok_or_else(|| ToolError::new(format!("`{wanted}` is no reference of a stub")))?;
        let text = match arguments.optional_text("session") {
            Some(session) => {
                let path = sessions.path(session)?;
                self.learn(&path, redactor);
                session_text(&OpenSession::new(&self.config, &path), &name)?.ok_or_else(|| {
                    ToolError::new(format!("no text of this session is called {wanted}"))
                })?
            }
            None => self.archived(sessions, &name, redactor)?,
        };
        Ok(match lines {
            Some((first, last)) => {
                let skipped = text.split_inclusive('\n').skip(first - 1);
                skipped.take((last + 1).saturating_sub(first)).collect()
            }
            None => text,
        })
    }

    fn archived(
        &self,
        sessions: &Sessions<'_>,
        name: &Name,
        redactor: Option<&mut Redactor<'_>>,
    ) -> Result<String, ToolError> {
        let Name::Text(reference) = name else {
            return Err(ToolError::new("calls and responses are numbered: name the `session`"));
        };
        let archived = archived_text(&self.config, reference)?;
        if let Some(media) = &archived.found.about.media {
            let bytes = archived.bytes.len();
            return Ok(format!("A picture ({media}, {bytes} bytes of base64): not shown here.\n"));
        }
        let key = &archived.found.key;
        let is_it = |file: &&SessionFile| file.agent == key.agent && file.id == key.id;
        if let Some(file) = sessions.files.iter().find(is_it) {
            self.learn(&file.path, redactor);
        }
        Ok(String::from_utf8_lossy(&archived.bytes).into_owned())
    }

    /// Lets the redactor learn the secrets of the session at `path`, so that it finds them in a
    /// short text of the session, too. Does nothing if there is no redactor or if the session
    /// cannot be read.
    fn learn(&self, path: &Path, redactor: Option<&mut Redactor<'_>>) {
        let Some(redactor) = redactor else { return };
        if let Ok(history) = History::open(&self.config, path, None, Version::AsItWas) {
            history.learn(redactor);
        }
    }
}

/// Parses a range of lines, from 1, both ends included: `20..40`, `20..`, `..40` or `20`. Returns
/// the first and the last line; without an end, the last is a number larger than that of any line.
fn parse_lines(text: &str) -> Result<(usize, usize), ToolError> {
    let wrong = || ToolError::new(format!("`{text}` is no range of lines; write 20..40"));
    let number = |digits: &str, or: usize| match digits.trim() {
        "" => Ok(or),
        digits => digits.parse().map_err(|_| wrong()),
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first, 1)?, number(last, usize::MAX - 1)?),
        None => {
            let line: usize = text.trim().parse().map_err(|_| wrong())?;
            (line, line)
        }
    };
    if first == 0 || last < first { Err(wrong()) } else { Ok((first, last)) }
}
