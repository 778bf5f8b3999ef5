//! The key that seals what is stored in a remote archive: [`SealKey`].

use std::fmt;
use std::io::{Read, Write};
use std::iter;
use std::str::FromStr;

use age::secrecy::ExposeSecret;
use age::x25519::{Identity, Recipient};
use age::{Decryptor, Encryptor};

/// The names of derived keys. A change makes everything that is stored unreadable.
const FOR_NAMES: &str = "epitome 2026-11-26 names of objects";
const FOR_PROOFS: &str = "epitome 2026-11-26 proofs of packs";

/// The key of a remote archive: an identity of age, from which the keys of names and proofs are
/// derived.
///
/// The program `age` can decrypt packs with this key. `Debug` prints only its public part;
/// [`SealKey::reveal`] returns the key as text.
#[derive(Clone)]
pub struct SealKey {
    identity: Identity,
    recipient: Recipient,
    names: [u8; 32],
    proofs: [u8; 32],
}

/// The error for a text that is not the secret key of an age identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a key: it begins with AGE-SECRET-KEY-1")]
pub struct NotAKey;

impl SealKey {
    /// A new random key.
    pub fn generate() -> SealKey {
        SealKey::new(Identity::generate())
    }

    fn new(identity: Identity) -> SealKey {
        let secret = identity.to_string();
        let secret = secret.expose_secret().as_bytes();
        SealKey {
            recipient: identity.to_public(),
            names: blake3::derive_key(FOR_NAMES, secret),
            proofs: blake3::derive_key(FOR_PROOFS, secret),
            identity,
        }
    }

    /// The public part of the key: `age1…`. It encrypts, and cannot decrypt.
    pub fn recipient(&self) -> String {
        self.recipient.to_string()
    }

    /// The key as text: `AGE-SECRET-KEY-1…`. It decrypts everything.
    pub fn reveal(&self) -> String {
        self.identity.to_string().expose_secret().to_owned()
    }

    /// The hash that is stored in place of a path, and does not reveal it: 32 hexadecimal digits.
    pub(crate) fn name(&self, path: &str) -> String {
        blake3::keyed_hash(&self.names, path.as_bytes()).to_hex()[..32].to_owned()
    }

    /// A proof that `text` was written by a program that has this key.
    pub(crate) fn proof(&self, text: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.proofs, text)
    }

    /// Returns a writer. It encrypts what is written to it, and writes the result to `out`. Its
    /// `finish` must be called at the end.
    pub(crate) fn seal<W: Write>(&self, out: W) -> std::io::Result<age::stream::StreamWriter<W>> {
        let recipient: &dyn age::Recipient = &self.recipient;
        let encryptor =
            Encryptor::with_recipients(iter::once(recipient)).map_err(std::io::Error::other)?;
        encryptor.wrap_output(out)
    }

    /// Returns a reader of the decrypted content of `from`.
    pub(crate) fn open<R: Read>(
        &self,
        from: R,
    ) -> Result<age::stream::StreamReader<R>, age::DecryptError> {
        let identity: &dyn age::Identity = &self.identity;
        Decryptor::new(from)?.decrypt(iter::once(identity))
    }
}

impl FromStr for SealKey {
    type Err = NotAKey;

    /// Reads a key, or a file that `age-keygen` wrote: one line with the key; empty lines and lines
    /// that begin with `#` are ignored.
    fn from_str(text: &str) -> Result<SealKey, NotAKey> {
        let mut lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (lines.next(), lines.next()) {
            (Some(line), None) => line.parse().map(SealKey::new).map_err(|_| NotAKey),
            (_, _) => Err(NotAKey),
        }
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SealKey").field(&self.recipient()).finish()
    }
}

impl PartialEq for SealKey {
    fn eq(&self, other: &SealKey) -> bool {
        self.recipient() == other.recipient()
    }
}

impl Eq for SealKey {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_what_it_prints_and_debug_hides_it() {
        let key = SealKey::generate();
        let text = key.reveal();
        assert_eq!(text.parse(), Ok(key.clone()));
        assert_eq!(format!("# created: today\n# public\n{text}\n").parse(), Ok(key.clone()));
        assert!(!format!("{key:?}").contains(&text));
        assert_ne!(SealKey::generate(), key);
        for wrong in ["", "age1xyz", &key.recipient(), &format!("{text}\n{text}")] {
            assert_eq!(wrong.parse::<SealKey>(), Err(NotAKey), "{wrong}");
        }
    }

    #[test]
    fn names_and_proofs_differ_by_key_and_by_text() {
        let (one, other) = (SealKey::generate(), SealKey::generate());
        let again: SealKey = one.reveal().parse().expect("a key");
        assert_eq!(one.name("claude/s"), again.name("claude/s"));
        assert_ne!(one.name("claude/s"), one.name("claude/t"));
        assert_ne!(one.name("claude/s"), other.name("claude/s"));
        assert_eq!(one.proof(b"x"), again.proof(b"x"));
        assert_ne!(one.proof(b"x"), other.proof(b"x"));
    }
}
