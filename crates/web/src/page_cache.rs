//! A cache of the pages of sessions that were opened last, so that turning a page of a long session
//! does not read, redact and render the session again.
//!
//! Only rendered pages are kept, redacted as they are shown. If one of the session's files, its
//! archive or the prices have changed, the session is read again when a page of it is requested.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::laid_out::LaidOut;
use crate::stamp::Stamp;

/// The number of sessions that are kept. The pages of each have at most
/// [`OF_ONE`](crate::laid_out::OF_ONE) bytes, unless a single page has more.
const SESSIONS: usize = 4;

/// What the pages of a session were made from: the session's path, followed by `@` and the number
/// if they are the pages of a version, and the stamps of all that the pages depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) session: PathBuf,
    pub(crate) stamps: Vec<Stamp>,
}

/// The sessions that were opened last, the most recent first.
#[derive(Default)]
pub(crate) struct PageCache(Mutex<Vec<(Key, Arc<LaidOut>)>>);

impl PageCache {
    /// Returns what `wanted` finds in the cached pages of a session, or else in those that `read`
    /// renders. `None` if `wanted` finds nothing in the rendered pages either. The rendered pages
    /// replace the cached ones of the session.
    pub(crate) fn get<T, E>(
        &self,
        key: Key,
        wanted: impl Fn(&LaidOut) -> Option<T>,
        read: impl FnOnce() -> Result<LaidOut, E>,
    ) -> Result<Option<T>, E> {
        if let Some(found) = self.find(&key).and_then(|known| wanted(&known)) {
            return Ok(Some(found));
        }
        let laid_out = Arc::new(read()?);
        let found = wanted(&laid_out);
        let mut kept = self.kept();
        kept.retain(|(known, _)| known.session != key.session);
        kept.insert(0, (key, laid_out));
        kept.truncate(SESSIONS);
        Ok(found)
    }

    fn find(&self, key: &Key) -> Option<Arc<LaidOut>> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(known, _)| known == key)?;
        kept[..=at].rotate_right(1);
        Some(Arc::clone(&kept[0].1))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(Key, Arc<LaidOut>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn key(session: &str, stamp: &str) -> Key {
        Key { session: session.into(), stamps: vec![Stamp(stamp.into())] }
    }

    #[test]
    fn the_sessions_opened_last_are_kept_until_one_of_their_files_changes() {
        let cache = PageCache::default();
        let reads = Cell::new(0);
        let open = |session: &str, stamp: &str| {
            let read = || {
                reads.set(reads.get() + 1);
                Ok::<_, ()>(LaidOut::default())
            };
            cache.get(key(session, stamp), |_| Some(()), read).expect("it is read");
            reads.get()
        };
        // A session, its stamp, and the total number of reads expected by then.
        for (session, stamp, expect) in [
            ("a", "1", 1),
            ("a", "1", 1),
            ("a", "2", 2),
            ("a", "2", 2),
            // An earlier stamp again: the pages that were cached for it were replaced.
            ("a", "1", 3),
            ("b", "1", 4),
            ("c", "1", 5),
            ("d", "1", 6),
            ("a", "1", 6),
            // The session that was not requested for the longest time is dropped.
            ("e", "1", 7),
            ("a", "1", 7),
            ("b", "1", 8),
        ] {
            assert_eq!(open(session, stamp), expect, "{session} {stamp}");
        }
    }

    #[test]
    fn what_is_not_kept_of_a_session_is_read() {
        let cache = PageCache::default();
        let found = cache.get(key("a", "1"), |_| None::<()>, || Ok::<_, ()>(LaidOut::default()));
        assert_eq!(found, Ok(None));
        assert_eq!(cache.get(key("a", "1"), |_| None::<()>, || Err(())), Err(()));
    }
}
