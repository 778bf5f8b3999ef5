//! The numbers of the random histories that the tests of the packages for Python and Node send.

use std::ops::Range;

/// How many histories are sent to one server, which keeps every request in memory.
const PIECE: u64 = 1_000;

/// The numbers of `count` histories, a thousand at a time.
///
/// ```
/// let pieces: Vec<_> = agents::histories::thousands(2_500).collect();
/// assert_eq!(pieces, [0..1_000, 1_000..2_000, 2_000..2_500]);
/// ```
pub fn thousands(count: u64) -> impl Iterator<Item = Range<u64>> {
    let starts = (0..count).step_by(PIECE as usize);
    starts.map(move |start| start..count.min(start + PIECE))
}

/// The variables by which tests in any language get the numbers.
pub(crate) fn variables(range: &Range<u64>) -> [(&'static str, String); 2] {
    let count = range.end - range.start;
    [("TEST_FIRST", range.start.to_string()), ("TEST_HISTORIES", count.to_string())]
}
