//! Cuts content into chunks whose boundaries depend on the content, so that equal parts of
//! different versions and sessions are equal chunks.

use std::io::{self, Read};
use std::ops::Range;

use epitome_model::Source;
use fastcdc::v2020::StreamCDC;

use crate::source::CHUNK;
use epitome_error::{Error, ErrorKind, Result};

/// The sizes of chunks in bytes. The last chunk of a content may be shorter.
///
/// They were measured with 118 MB of sessions of several agents, compressed at level 9. With chunks
/// of 32 KiB on average the result had 24.2 MB, with 64 KiB 21.3 MB, with 128 KiB 18.2 MB, with 256
/// KiB 16.2 MB; whole files at level 3 had 14.6 MB. The larger the chunks, the fewer are equal in
/// two versions of a file that its agent always writes as a whole. A zstd dictionary of 110 KiB,
/// trained on the same sessions, made the result for 128 KiB 8% smaller (16.8 MB), but no chunk of
/// a pack could be read without it.
const SMALLEST: usize = 32 << 10;
const AVERAGE: usize = 128 << 10;
const LARGEST: usize = 512 << 10;

/// Calls `each` with every chunk of the bytes that `reader` returns.
///
/// # Errors
///
/// The error of `each`, and those of reading.
pub(super) fn each_chunk(
    reader: impl Read,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    for chunk in StreamCDC::new(reader, SMALLEST, AVERAGE, LARGEST) {
        let chunk = chunk.map_err(|err| Error::from(io::Error::from(err)))?;
        each(&chunk.data)?;
    }
    Ok(())
}

/// Reads a range of a source, and hashes what it reads.
pub(super) struct HashingReader<'a> {
    source: &'a dyn Source,
    rest: Range<u64>,
    hasher: &'a mut blake3::Hasher,
}

impl<'a> HashingReader<'a> {
    pub fn new(
        source: &'a dyn Source,
        range: Range<u64>,
        hasher: &'a mut blake3::Hasher,
    ) -> HashingReader<'a> {
        HashingReader { source, rest: range, hasher }
    }
}

impl Read for HashingReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let want = (into.len() as u64).min(self.rest.end - self.rest.start).min(CHUNK);
        if want == 0 {
            return Ok(0);
        }
        let bytes = self.source.read(self.rest.start..self.rest.start + want);
        if bytes.is_empty() {
            let what = "the file became shorter while it was read";
            return Err(Error::new(ErrorKind::Changed, what).into());
        }
        self.hasher.update(&bytes);
        into[..bytes.len()].copy_from_slice(&bytes);
        self.rest.start += bytes.len() as u64;
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that do not repeat.
    fn noise(seed: &[u8], len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(seed).finalize_xof().fill(&mut bytes);
        bytes
    }

    fn chunks(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        each_chunk(bytes, |chunk| {
            found.push(chunk.to_vec());
            Ok(())
        })
        .expect("in memory");
        found
    }

    #[test]
    fn chunks_put_together_are_the_content() {
        for len in [0, 1, SMALLEST, LARGEST + 1, 1_000_000] {
            let bytes = noise(b"a", len);
            let found = chunks(&bytes);
            assert_eq!(found.concat(), bytes, "{len}");
            let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
            let (_, all_but_last) = sizes.split_last().unwrap_or((&0, &[]));
            assert!(all_but_last.iter().all(|it| (SMALLEST..=LARGEST).contains(it)), "{sizes:?}");
        }
    }

    #[test]
    fn what_follows_an_insertion_is_cut_as_before() {
        let bytes = noise(b"a", 4_000_000);
        let changed = [&bytes[..1_300_000], b"inserted", &bytes[1_300_000..]].concat();
        let before = chunks(&bytes);
        let after = chunks(&changed);
        let same = after.iter().filter(|chunk| before.contains(chunk)).count();
        assert!(same + 3 >= after.len(), "{same} of {}", after.len());
    }
}
