//! Tells by the metadata of a file that its content was not changed.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How long after a change of a file another change may leave the same times: systems round times
/// to their clock's tick, which is at most 10 ms long. This is twice as much.
const TICK: Duration = Duration::from_millis(20);
/// The same as `TICK`, for a file system that stores whole seconds, or every other second.
const SECONDS: Duration = Duration::from_secs(2);

/// The length, times and identity of a file. Two equal stamps of a path mean that the file was not
/// changed between them, if the first [is settled](FileStamp::is_settled).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// The length in bytes.
    pub len: u64,
    /// When the content was last modified, in nanoseconds since 1970. Any program can set it.
    pub modified: i64,
    /// When the file or its metadata was last changed, in nanoseconds since 1970. Only the system
    /// sets it. 0 where the system has none.
    pub changed: i64,
    /// The device.
    pub device: u64,
    /// The number of the file on the device.
    pub inode: u64,
}

impl FileStamp {
    /// The stamp of a file with this metadata.
    pub fn from_metadata(meta: &Metadata) -> FileStamp {
        let modified = meta.modified().map_or(0, nanoseconds);
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let changed = meta.ctime().saturating_mul(1_000_000_000) + meta.ctime_nsec();
            let (device, inode) = (meta.dev(), meta.ino());
            FileStamp { len: meta.len(), modified, changed, device, inode }
        }
        #[cfg(not(unix))]
        FileStamp { len: meta.len(), modified, changed: 0, device: 0, inode: 0 }
    }

    /// Whether the file was last changed long enough before `now` that any later change shows in
    /// its times. False if the times are in the future, for example because the clock was set back.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let last = self.modified.max(self.changed);
        let whole_seconds = self.modified % 1_000_000_000 == 0 && self.changed % 1_000_000_000 == 0;
        let tick = if whole_seconds { SECONDS } else { TICK };
        let tick = i64::try_from(tick.as_nanos()).unwrap_or(i64::MAX);
        nanoseconds(now).saturating_sub(last) > tick
    }
}

/// Nanoseconds since 1970; negative before it.
fn nanoseconds(time: SystemTime) -> i64 {
    let clamp = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => clamp(since),
        Err(before) => -clamp(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_settled_when_the_clock_has_gone_on() {
        let at = |modified, changed| FileStamp { len: 1, modified, changed, device: 1, inode: 2 };
        let now = UNIX_EPOCH + Duration::from_secs(100);
        let ms = 1_000_000;
        for (stamp, expect) in [
            (at(99_970 * ms + 1, 99_970 * ms), true),
            (at(99_980 * ms + 1, 99_970 * ms), false),
            (at(99_970 * ms + 1, 99_999 * ms), false),
            (at(200_000 * ms + 1, 0), false),
            // Whole seconds: a later change within the same two seconds would not show.
            (at(99_000 * ms, 99_000 * ms), false),
            (at(97_000 * ms, 97_000 * ms), true),
        ] {
            assert_eq!(stamp.is_settled(now), expect, "{stamp:?}");
        }
    }
}
