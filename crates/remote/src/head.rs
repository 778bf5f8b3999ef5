//! The object of a name: [`Head`], sealed.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use crate::key::SealKey;

/// The maximum length of a sealed head in bytes. Most heads have a few hundred: a note, which is
/// stored in its head, is short, and the bytes of a pack are an object of their own.
pub(crate) const LONGEST: u64 = 64 << 10;

/// The content of the small object of a name: it says what is stored under the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The name: `claude/0f3c9a52/000001.pack`.
    pub name: String,
    #[serde(flatten)]
    pub content: Content,
}

/// What is stored under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Content {
    /// A pack. Its bytes are an object of their own.
    Pack(Payload),
    /// A note: a few bytes, which are stored in the head itself.
    Note(Vec<u8>),
}

/// The object with the bytes of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    /// The length of the pack.
    pub len: u64,
    /// The blake3 hash of the pack, as 64 digits.
    pub blake3: String,
    /// The name of the object: the blake3 hash of its first bytes, as 64 digits.
    pub object: String,
    /// The number of first bytes that `object` is the hash of: the header and the nonce of the age
    /// file. They are random for each object, so that no two objects have the same name.
    pub header: u64,
    /// The length of the object.
    pub sealed: u64,
}

/// Why a sealed head cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsealed {
    #[error("it was sealed with another key, or is damaged")]
    Undecrypted(#[source] age::DecryptError),
    #[error("it is damaged")]
    Damaged(#[source] std::io::Error),
    #[error("it was not written with this key")]
    Forged,
    #[error("a newer version of epitome wrote it")]
    Newer(#[source] serde_json::Error),
}

impl Head {
    /// Where the bytes of the pack are; `None` for a note.
    pub(crate) fn payload(&self) -> Option<&Payload> {
        match &self.content {
            Content::Pack(payload) => Some(payload),
            Content::Note(_) => None,
        }
    }

    /// Encrypts a proof and, after it, the head as JSON. The proof is a hash of the JSON that only
    /// a program with this key can make.
    pub(crate) fn seal(&self, key: &SealKey) -> std::io::Result<Vec<u8>> {
        let json = serde_json::to_vec(self).map_err(std::io::Error::other)?;
        let mut writer = key.seal(Vec::new())?;
        writer.write_all(key.proof(&json).as_bytes())?;
        writer.write_all(&json)?;
        writer.finish()
    }

    /// Decrypts a head and checks its proof. The proof is needed because anyone who knows the
    /// public part of the key can encrypt.
    pub(crate) fn open(sealed: &[u8], key: &SealKey) -> Result<Head, Unsealed> {
        let mut plain = Vec::new();
        let mut reader = key.open(sealed).map_err(Unsealed::Undecrypted)?;
        reader.read_to_end(&mut plain).map_err(Unsealed::Damaged)?;
        let (proof, json) = plain.split_first_chunk::<32>().ok_or(Unsealed::Forged)?;
        // The comparison of two hashes takes the same time wherever they differ.
        if key.proof(json) != blake3::Hash::from_bytes(*proof) {
            return Err(Unsealed::Forged);
        }
        serde_json::from_slice(json).map_err(Unsealed::Newer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let payload = Payload {
            len: 3,
            blake3: "a".repeat(64),
            object: "b".repeat(64),
            header: 200,
            sealed: 300,
        };
        Head { name: "claude/s/000001.pack".into(), content: Content::Pack(payload) }
    }

    #[test]
    fn a_head_is_opened_with_its_key_only() {
        let key = SealKey::generate();
        let sealed = head().seal(&key).expect("sealed");
        assert!(!String::from_utf8_lossy(&sealed).contains("claude"));
        assert_eq!(Head::open(&sealed, &key).expect("opened"), head());
        let note = Head { name: "n".into(), content: Content::Note(b"abc".to_vec()) };
        let sealed_note = note.seal(&key).expect("sealed");
        assert_eq!(Head::open(&sealed_note, &key).expect("opened"), note);
        let other = Head::open(&sealed, &SealKey::generate());
        assert!(matches!(other, Err(Unsealed::Undecrypted(_))), "{other:?}");
    }

    #[test]
    fn no_damaged_head_is_read() {
        let key = SealKey::generate();
        let sealed = head().seal(&key).expect("sealed");
        for at in (0..sealed.len()).step_by(3) {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(Head::open(&damaged, &key).is_err(), "byte {at}");
            if at % 16 == 0 {
                assert!(Head::open(&sealed[..at], &key).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn a_head_that_anyone_encrypted_is_refused() {
        let key = SealKey::generate();
        let json = serde_json::to_vec(&head()).expect("JSON");
        let mut writer = key.seal(Vec::new()).expect("a writer");
        writer.write_all(&[0; 32]).expect("written");
        writer.write_all(&json).expect("written");
        let forged = writer.finish().expect("sealed");
        assert!(matches!(Head::open(&forged, &key), Err(Unsealed::Forged)));
    }
}
