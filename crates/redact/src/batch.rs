//! Splits the lines of a source into batches that are large enough to share between processors.

use epitome_model::Source;

/// Calls `each` with batches of lines of `source`: small ones first, later about 4 MB each. A line
/// is given with its byte position in the source, and without its line feed.
pub(crate) fn each_batch(source: &dyn Source, mut each: impl FnMut(&[(u64, &[u8])])) {
    const CHUNK: u64 = 4 << 20;
    // The first batches are small. The lines of a batch are processed in parallel, but a line with
    // a secret that has no placeholder number yet is processed again. After the first batches, most
    // secrets have a number.
    let mut len = 64 << 10;
    let mut start = 0;
    let mut at = 0;
    let mut pending: Vec<u8> = Vec::new();
    while at < source.len() {
        let chunk = source.read(at..at + len);
        len = (len * 2).min(CHUNK);
        if chunk.is_empty() {
            break;
        }
        at += chunk.len() as u64;
        pending.extend_from_slice(&chunk);
        let whole = memchr::memrchr(b'\n', &chunk)
            .map_or(0, |feed| pending.len() - (chunk.len() - feed) + 1);
        each(&lines(&pending[..whole], start));
        start += whole as u64;
        pending.drain(..whole);
    }
    each(&lines(&pending, start));
}

fn lines(bytes: &[u8], start: u64) -> Vec<(u64, &[u8])> {
    let mut lines = Vec::new();
    let mut from = 0;
    let ends =
        memchr::memchr_iter(b'\n', bytes).chain((!bytes.ends_with(b"\n")).then_some(bytes.len()));
    for end in ends.filter(|_| !bytes.is_empty()) {
        lines.push((start + from as u64, &bytes[from..end]));
        from = end + 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;

    /// A source whose reads return at most as many bytes as its second field says.
    struct Slow(String, u64);

    impl Source for Slow {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
            let end = range.end.min(range.start + self.1).min(self.len());
            Cow::Borrowed(&self.0.as_bytes()[range.start as usize..end as usize])
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_whole(text in "[ab\\n]{0,40}", few in 1_u64..9) {
            let mut lines = Vec::new();
            each_batch(&Slow(text.clone(), few), |batch| {
                lines.extend(batch.iter().map(|(start, line)| (*start, line.to_vec())));
            });
            let mut start = 0;
            let mut expect = Vec::new();
            for line in text.split_inclusive('\n') {
                expect.push((start, line.trim_end_matches('\n').as_bytes().to_vec()));
                start += line.len() as u64;
            }
            prop_assert_eq!(lines, expect);
        }
    }
}
