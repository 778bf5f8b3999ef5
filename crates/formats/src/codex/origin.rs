//! The origin of a rollout, from its first line: the session whose sub-agent wrote it, and the
//! rollout that it continues.

use super::raw;
use crate::place::RecordBytes;

/// References to other rollouts in the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The id of the session whose sub-agent wrote the rollout.
    pub parent: Option<Box<str>>,
    /// The rollout that this one continues. The file does not repeat the records of that rollout.
    pub base: Option<Base>,
}

/// The beginning of another rollout, up to the end of one of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The id in the file name of that rollout.
    pub rollout: Box<str>,
    /// The length of that beginning in bytes.
    pub bytes: u64,
}

/// The origin of the rollout that begins with `line`; `None` if `line` is not the first line of a
/// rollout.
///
/// ```
/// use epitome_formats::codex::origin;
///
/// let forked = br#"{"type":"session_meta","payload":{"id":"b","history_base":
///     {"thread_id":"a","end_ordinal_exclusive":190,"end_byte_offset":592412}}}"#;
/// let base = origin(forked).and_then(|origin| origin.base);
/// assert_eq!(base.map(|base| base.bytes), Some(592_412));
/// ```
pub fn origin(line: &[u8]) -> Option<Origin> {
    let record = raw::Record::parse(line).ok()?;
    let at = RecordBytes { line, base: 0 };
    let kind = at.maybe(record.kind.as_ref())?;
    let payload = record.payload.filter(|_| &*kind == "session_meta")?;
    let meta = raw::Meta::at(line, &payload).ok()?;
    let parent = meta.source.sub_agent.and_then(|sub_agent| {
        // A sub-agent's rollout states the id of the main session, even if another sub-agent
        // started it.
        let session = at.maybe(meta.session.as_ref());
        let own = at.maybe(meta.id.as_ref());
        let parent = at.maybe(sub_agent.spawned.parent.or(meta.parent).as_ref());
        session.filter(|session| Some(session) != own.as_ref()).or(parent)
    });
    let base = meta.base.rollout.zip(meta.base.bytes);
    let base = base.map(|(rollout, bytes)| Base { rollout: at.text(&rollout), bytes });
    Some(Origin { parent, base })
}
