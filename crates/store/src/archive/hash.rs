//! Blake3 hashes, whole or truncated, and the digest of a file.

use std::fmt;
use std::str::FromStr;

use epitome_model::{Ref, Source};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::source::{copy, each_chunk};
use epitome_error::Result;

/// The first `N` bytes of a blake3 hash. It is displayed and stored as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex<const N: usize>([u8; N]);

/// The whole blake3 hash of removed bytes, which identifies them.
pub type Hash = Hex<32>;

/// Half a blake3 hash (32 digits) of a record, enough to distinguish records.
pub type RecordHash = Hex<16>;

/// The error for a text that is not a hash with the expected number of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHash;

impl<const N: usize> Hex<N> {
    /// The hash of `bytes`.
    pub fn compute(bytes: &[u8]) -> Hex<N> {
        blake3::hash(bytes).into()
    }

    /// The bytes of the hash.
    pub fn bytes(&self) -> &[u8; N] {
        &self.0
    }

    /// A hash from its bytes.
    pub fn from_bytes(bytes: [u8; N]) -> Hex<N> {
        Hex(bytes)
    }
}

impl<const N: usize> From<blake3::Hash> for Hex<N> {
    fn from(hash: blake3::Hash) -> Hex<N> {
        const { assert!(N <= 32, "a blake3 hash has 32 bytes") };
        let mut cut = [0; N];
        cut.copy_from_slice(&hash.as_bytes()[..N]);
        Hex(cut)
    }
}

impl Hash {
    /// The reference that a stub contains for the bytes with this hash.
    pub fn reference(&self) -> Ref {
        let digits = &self.to_string()[..Ref::DIGITS];
        digits.parse().expect("digits of a hash are a reference")
    }

    /// Whether `reference` may refer to the bytes with this hash.
    pub fn matches(&self, reference: &Ref) -> bool {
        let digits = reference.digits().as_bytes();
        digits.len() <= 64
            && digits.iter().enumerate().all(|(idx, &digit)| {
                let byte = self.0[idx / 2];
                digit == hex_digit(if idx % 2 == 0 { byte >> 4 } else { byte & 15 })
            })
    }
}

fn hex_digit(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble)]
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NoHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a hash")
    }
}

impl std::error::Error for NoHash {}

impl<const N: usize> FromStr for Hex<N> {
    type Err = NoHash;

    fn from_str(text: &str) -> std::result::Result<Hex<N>, NoHash> {
        let digits = text.as_bytes();
        if digits.len() != 2 * N {
            return Err(NoHash);
        }
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = digit_value(pair[0]).ok_or(NoHash)?;
            let low = digit_value(pair[1]).ok_or(NoHash)?;
            *byte = high << 4 | low;
        }
        Ok(Hex(bytes))
    }
}

fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Hex<N>, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// The length and hash of a file, or of its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The number of bytes.
    pub len: u64,
    /// The blake3 hash of all these bytes.
    pub blake3: Hash,
}

impl Digest {
    /// The digest of `len` bytes whose hash is `hash`.
    pub fn new(len: u64, hash: &blake3::Hash) -> Digest {
        Digest { len, blake3: Hash::from(*hash) }
    }

    /// The digest of bytes in memory.
    pub fn from_bytes(bytes: &[u8]) -> Digest {
        Digest { len: bytes.len() as u64, blake3: Hash::compute(bytes) }
    }

    /// The digest of a whole source.
    ///
    /// # Errors
    ///
    /// `Changed` if the source returns fewer bytes than its length.
    pub fn from_source(source: &dyn Source) -> Result<Digest> {
        let len = source.len();
        let mut hasher = blake3::Hasher::new();
        copy(source, 0..len, &mut hasher)?;
        Ok(Digest::new(len, &hasher.finalize()))
    }

    /// The digests of the first bytes of a source, for each length in `lens`; the source is read
    /// once. Lengths beyond the end of the source are left out. The result is sorted by length,
    /// without duplicates.
    pub fn from_prefixes(source: &dyn Source, lens: &[u64]) -> Result<Vec<Digest>> {
        let mut lens: Vec<u64> = lens.iter().copied().filter(|&len| len <= source.len()).collect();
        lens.sort_unstable();
        lens.dedup();
        let mut hasher = blake3::Hasher::new();
        let mut digests = Vec::with_capacity(lens.len());
        let mut from = 0;
        for len in lens {
            each_chunk(source, from..len, |bytes| {
                hasher.update(bytes);
                Ok(())
            })?;
            digests.push(Digest::new(len, &hasher.finalize()));
            from = len;
        }
        Ok(digests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_its_digits() {
        let hash = Hash::compute(b"removed");
        assert_eq!(hash.to_string(), blake3::hash(b"removed").to_hex().as_str());
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(hash.reference(), Ref::from_bytes(b"removed"));
        assert_eq!("zz".parse::<Hex<1>>(), Err(NoHash));
        assert_eq!("0".parse::<Hex<1>>(), Err(NoHash));
    }

    #[test]
    fn a_reference_of_any_length_means_its_hash() {
        let hash = Hash::compute(b"removed");
        let digits = hash.to_string();
        for len in 4..=64 {
            let reference: Ref = digits[..len].parse().expect("digits");
            assert!(hash.matches(&reference), "{len}");
            let last = if digits.as_bytes()[len - 1] == b'0' { '1' } else { '0' };
            let other: Ref = format!("{}{last}", &digits[..len - 1]).parse().expect("digits");
            assert!(!hash.matches(&other), "{len}");
        }
    }

    #[test]
    fn prefixes_are_digested_in_one_pass() {
        let bytes = b"some bytes".to_vec();
        let digests = Digest::from_prefixes(&bytes, &[10, 0, 4, 4, 11]).expect("in memory");
        assert_eq!(
            digests,
            [
                Digest::from_bytes(b""),
                Digest::from_bytes(b"some"),
                Digest::from_bytes(b"some bytes")
            ]
        );
        assert_eq!(Digest::from_source(&bytes).expect("in memory"), Digest::from_bytes(&bytes));
    }
}
