//! Signatures over thinking, made with this server's own key.
//!
//! The real service's signature is opaque to clients; tests only need this server to recognise a
//! changed text and a signature that it did not make.

/// Any 32 bytes: nothing secret is signed, and recordings must stay valid between runs.
const KEY: [u8; 32] = *b"epitome/testing/model-server/001";
const PREFIX: &str = "EpSig";

/// The result of checking a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// Made by this server, for this text.
    Valid,
    /// Made by this server, for another text.
    Altered,
    /// Not made by this server.
    Foreign,
}

/// The signature of `text`: a prefix, the hash of the text, and a keyed hash of that hash.
pub fn sign(text: &str) -> String {
    let digest = blake3::hash(text.as_bytes());
    format!("{PREFIX}{}{}", digest.to_hex(), seal(&digest).to_hex())
}

/// Whether `signature` belongs to `text`.
///
/// ```
/// use model_server::{Signature, sign, verify};
/// assert_eq!(verify(&sign("why"), "why"), Signature::Valid);
/// assert_eq!(verify(&sign("why"), "because"), Signature::Altered);
/// assert_eq!(verify("c2lnbmF0dXJl", "why"), Signature::Foreign);
/// ```
pub fn verify(signature: &str, text: &str) -> Signature {
    let Some((digest, mac)) = split(signature) else { return Signature::Foreign };
    if seal(&digest) != mac {
        Signature::Foreign
    } else if digest == blake3::hash(text.as_bytes()) {
        Signature::Valid
    } else {
        Signature::Altered
    }
}

fn split(signature: &str) -> Option<(blake3::Hash, blake3::Hash)> {
    let (digest, mac) = signature.strip_prefix(PREFIX)?.split_at_checked(64)?;
    Some((blake3::Hash::from_hex(digest).ok()?, blake3::Hash::from_hex(mac).ok()?))
}

fn seal(digest: &blake3::Hash) -> blake3::Hash {
    blake3::keyed_hash(&KEY, digest.as_bytes())
}
