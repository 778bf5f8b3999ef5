//! Redaction of sessions: secrets are replaced in the bytes, and the session is parsed again. So
//! everything that is made from a redacted session is redacted, too.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use epitome_model::{Block, Image, Output, Part, Source, Span, Transcript};
use epitome_redact::{Finder, Found, Kind, Redactor, RuleFault, Rules};

use crate::archive::Hash;
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::session::Loaded;
use crate::settings::Settings;
use crate::source::Spliced;

/// The id of the rule by which [`forget`](crate::forget) finds a text in sessions. The placeholders
/// that replace the text contain this id.
pub(crate) const FORGOTTEN_RULE: &str = "forgotten";

/// Whether a session has the placeholder of a text that was forgotten.
pub(crate) fn has_forgotten_texts(source: &dyn Source) -> bool {
    let beginning = format!("[REDACTED:{FORGOTTEN_RULE}-");
    memchr::memmem::find(&source.read(0..source.len()), beginning.as_bytes()).is_some()
}

/// A session whose secrets were replaced by placeholders.
pub struct RedactedSession<'a> {
    /// The redacted session, in memory only. The original is unchanged.
    pub session: Loaded<Spliced<'a>>,
    /// Where each rule matched, in the order of the session, without the matched text.
    pub found: Vec<Found>,
}

/// The built-in rules, rules for this machine's user (home folder, names, host name), the user's
/// own rules, and the rules in the files that `config` and `files` name. Later rules replace
/// earlier ones with the same id, and a file may disable earlier rules.
///
/// # Errors
///
/// The errors of reading a file; `Refused` if the rules in a file are not valid.
pub fn rules(config: &Config, files: &[PathBuf]) -> Result<Rules> {
    let own = config.redaction_rules();
    let own = own.exists().then_some(own);
    let files = config.rules.iter().chain(files);
    let mut rules = Rules::built_in().merge(config.person.rules());
    for path in own.iter().chain(files) {
        let text = text_of(path, own.as_ref() == Some(path))
            .map_err(|err| Error::reading(err, "the file of rules", path))?;
        let more = Rules::parse(&text).and_then(Rules::into_checked).map_err(|err| {
            Error::new(ErrorKind::Refused, "the rules cannot be used").because(err).at(path)
        })?;
        rules = rules.merge(more);
    }
    Ok(rules)
}

/// A finder for what `names` select: kinds (`secrets`, `pii`) or single rules. If `names` is empty,
/// the names in the settings are used; if the settings have none, secrets and personal data are
/// found. `files` are files of rules in addition to those of the settings.
///
/// # Errors
///
/// `Usage` if the rules cannot be used, or if one of the names is neither that of a kind nor that
/// of a rule.
pub fn finder(
    config: &Config,
    settings: &Settings,
    names: &[String],
    files: &[PathBuf],
) -> Result<Finder> {
    let set = &settings.values.redaction;
    let files: Vec<PathBuf> = set.rules.iter().flatten().chain(files).cloned().collect();
    let rules = rules(config, &files).map_err(|err| err.with_kind(ErrorKind::Usage))?;
    let names = match (names, &set.find) {
        ([], Some(names)) => names.clone(),
        ([], None) => [Kind::Secrets, Kind::Personal].map(|kind| kind.name().to_owned()).to_vec(),
        (names, _) => names.to_vec(),
    };
    rules.only(&names).and_then(Finder::new).map_err(|fault| {
        let hint = match &fault {
            RuleFault::Unknown(_) => "known are `secrets`, `pii`, and the rules in docs/redact.md",
            RuleFault::NoRules(_) | RuleFault::Expression { .. } => {
                "docs/redact.md says what they are"
            }
        };
        Error::new(ErrorKind::Usage, fault.to_string()).with_hint(hint)
    })
}

/// The text of a file of rules. The user's own rules (`is_own`) must be a regular file. Any other
/// file, which the user names, may be a pipe.
#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "a person names it: it may be a pipe")
)]
fn text_of(path: &Path, is_own: bool) -> std::io::Result<String> {
    if is_own { regular::read_to_string(path) } else { fs::read_to_string(path) }
}

/// Hides secrets in short texts of sessions that are displayed on this machine: titles, folders,
/// descriptions of edits. Personal data are shown, because the reader is their owner.
///
/// ```
/// use epitome::{Config, redact::Screen};
///
/// let home = tempfile::tempdir().expect("a folder");
/// let screen = Screen::new(&Config::from_home(home.path()));
/// assert_eq!(screen.text("the parser"), "the parser");
/// assert!(!screen.text("X-Key: AKIAQ3EGRXLTPN2MWVJD").contains("AKIAQ3EGRX"));
/// ```
pub struct Screen {
    /// The rules; `None` if the user's rules cannot be used.
    rules: Option<Rules>,
    finder: OnceLock<Option<Arc<Finder>>>,
}

/// The finder that was built last, and [`Screen::stamp`] of its rules. Building a finder takes
/// longer than a search.
static MADE: Mutex<Option<(String, Arc<Finder>)>> = Mutex::new(None);

/// Replaces a text that may contain a secret, if the rules for secrets cannot be used.
const HIDDEN: &str = "(hidden: the rules for secrets cannot be used)";

impl Screen {
    /// A screen with epitome's rules for secrets, those in the settings folder, and those in the
    /// files that `config` names.
    pub fn new(config: &Config) -> Screen {
        let rules = rules(config, &[]).and_then(|rules| {
            rules
                .only(&[Kind::Secrets.name()])
                .map_err(|err| Error::new(ErrorKind::Refused, "unknown rules").because(err))
        });
        Screen { rules: rules.ok(), finder: OnceLock::new() }
    }

    /// Like [`new`](Screen::new), with the files of rules that the settings name in addition.
    pub fn with_settings(config: &Config, settings: &Settings) -> Screen {
        let mut config = config.clone();
        for file in settings.values.redaction.rules.iter().flatten() {
            // The caller may have added this file already.
            if !config.rules.contains(file) {
                config.rules.push(file.clone());
            }
        }
        Screen::new(&config)
    }

    /// The text with secrets hidden. If the rules cannot be used, all of the text is hidden.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redactor() {
            Some(mut redactor) => match redactor.text(text) {
                Cow::Borrowed(text) => without_cut_token(text),
                Cow::Owned(text) => without_cut_token(&text).into_owned().into(),
            },
            None => HIDDEN.into(),
        }
    }

    /// A screen for the texts of one session. A secret that a rule finds anywhere in the session is
    /// hidden in all these texts, even where no rule finds it, unless it could be an ordinary word.
    pub fn session_screen(&self, source: &dyn Source) -> SessionScreen<'_> {
        let mut redactor = self.redactor();
        if let Some(redactor) = &mut redactor {
            redactor.learn(source);
        }
        SessionScreen { redactor }
    }

    /// Like [`session_screen`](Screen::session_screen), but `learn` teaches the redactor the
    /// secrets.
    pub(crate) fn of_learnt(&self, learn: impl FnOnce(&mut Redactor<'_>)) -> SessionScreen<'_> {
        let mut redactor = self.redactor();
        redactor.as_mut().map(learn);
        SessionScreen { redactor }
    }

    /// Builds the finder now. Otherwise it is built when the first text is screened.
    pub fn prepare(&self) {
        self.redactor();
    }

    fn redactor(&self) -> Option<Redactor<'_>> {
        self.finder.get_or_init(|| self.new_finder()).as_deref().map(Redactor::new)
    }

    /// A finder for these rules: the one that was built last, if it was built for the same rules,
    /// or a new one.
    fn new_finder(&self) -> Option<Arc<Finder>> {
        let stamp = self.stamp();
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, finder)) = made.as_ref().filter(|(of, _)| *of == stamp) {
            return Some(Arc::clone(finder));
        }
        let finder = Arc::new(Finder::new(self.rules.clone()?).ok()?);
        *made = Some((stamp, Arc::clone(&finder)));
        Some(finder)
    }

    /// Identifies the rules of this screen: a cached text that was screened with other rules must
    /// be screened again.
    pub(crate) fn stamp(&self) -> String {
        Hash::compute(format!("{:?}", self.rules).as_bytes()).to_string()
    }
}

/// A [`Screen`] that knows the secrets of one session.
pub struct SessionScreen<'s> {
    redactor: Option<Redactor<'s>>,
}

impl SessionScreen<'_> {
    /// A text of the session with secrets hidden. If the rules cannot be used, all of the text is
    /// hidden.
    pub fn text(&mut self, text: &str) -> String {
        match &mut self.redactor {
            Some(redactor) => without_cut_token(&redactor.text(text)).into_owned(),
            None => HIDDEN.to_owned(),
        }
    }
}

/// Removes the last word of a shortened text (one that ends with `…`) if the word may be the
/// beginning of an access token. Titles and descriptions are shortened before secrets are looked
/// for, and a rule may not match half an access token.
fn without_cut_token(text: &str) -> Cow<'_, str> {
    /// A word with digits is removed if it has at least this many bytes. A shorter beginning of an
    /// access token is useless to an attacker.
    const LEAST: usize = 6;
    /// Any word with more than this many bytes is removed, because words of a language are hardly
    /// ever so long.
    const WORD: usize = 24;
    let Some(body) = text.strip_suffix('…') else { return text.into() };
    let start =
        body.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_-+/=.~%".contains(c));
    let start = start.len();
    let word = &body[start..];
    let is_mixed = word.contains(|c: char| c.is_ascii_digit());
    let is_token = word.len() > WORD || (word.len() >= LEAST && is_mixed);
    if is_token { format!("{}…", &body[..start]).into() } else { text.into() }
}

/// The session with a placeholder in place of each text that the redactor finds.
///
/// ```
/// use epitome::redact::redact_session;
/// use epitome_formats::Loaded;
/// use epitome_redact::{Finder, Redactor, Rules};
///
/// let session = br#"{"messages":[{"role":"user","content":"Use AKIAQ3EGRXLTPN2MWVJD."}]}"#;
/// let session = Loaded::read(session.to_vec(), Some("openai-chat"))?;
/// let finder = Finder::new(Rules::built_in()).expect("the built-in rules");
/// let redacted = redact_session(&session, &mut Redactor::new(&finder))?;
/// assert_eq!(redacted.found.len(), 1);
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// `Refused` if the replacements cannot be applied to the session, which does not happen.
pub fn redact_session<'a, S: Source>(
    session: &'a Loaded<S>,
    redactor: &mut Redactor<'_>,
) -> Result<RedactedSession<'a>> {
    let splices = redactor.splices(&session.source, &sealed(&session.transcript));
    let source = Spliced::new(&session.source, splices)?;
    let mut faults = Vec::new();
    let mut transcript = (session.format.read)(&source, &mut faults);
    if transcript.items.len() == session.transcript.items.len() {
        transcript.context.clone_from(&session.transcript.context);
    }
    let session = Loaded { format: session.format, source, transcript, faults };
    Ok(RedactedSession { session, found: redactor.take_found() })
}

/// The spans of reasoning, which may be signed, and of pictures, in order and disjoint.
/// [`Redactor::splices`] treats them differently from other values.
pub(crate) fn sealed(transcript: &Transcript) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for block in transcript.entries().flat_map(|(_, entry)| &entry.blocks) {
        match block {
            Block::Thinking(thinking) => spans.push(thinking.whole),
            Block::Image(image) => spans.push(image.data),
            Block::Output(output) => spans.extend(pictures(output)),
            Block::Repeated(again) => spans.extend(pictures(&again.output)),
            // Texts, calls, and blocks of unknown kinds may be edited.
            _ => {}
        }
    }
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable();
    spans.dedup_by(|later, earlier| later.start < earlier.end);
    spans
}

fn pictures(output: &Output) -> impl Iterator<Item = Span> {
    output.parts.iter().filter_map(|part| match part {
        Part::Image(Image { data, .. }) => Some(*data),
        Part::Text(_) | Part::Opaque(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_token_is_not_shown() {
        let cases = [
            ("use ghp_Zk3vQ8…", "use …"),
            ("use ghp_Zk3vQ8 now…", "use ghp_Zk3vQ8 now…"),
            ("list the functio…", "list the functio…"),
            ("<now>2026-11-22</no…", "<now>2026-11-22</no…"),
            ("key=\"Zk3vQ8…", "key=\"…"),
            ("ghp_Zk3vQ8", "ghp_Zk3vQ8"),
            ("is [REDACTED:github-pat-1]…", "is [REDACTED:github-pat-1]…"),
            ("…", "…"),
        ];
        for (text, expect) in cases {
            assert_eq!(without_cut_token(text), expect);
        }
    }
}
