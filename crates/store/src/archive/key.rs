//! The key of a session in the archive, and its folder name.

use serde::{Deserialize, Serialize};

use super::Hash;

/// Identifies a session: the agent, and the id that the agent gave it.
///
/// An id may be any text, because anyone may have written the session file. The name of the folder
/// that is made from the id is safe on every system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// The name of the agent: `claude`.
    pub agent: String,
    /// The id of the session.
    #[serde(rename = "session")]
    pub id: String,
}

/// The maximum length of a name that is used unchanged, in bytes.
const LONGEST: usize = 80;
/// How many characters of a longer or unsafe name are kept before its hash.
const CUT: usize = 60;

impl SessionKey {
    /// The key of the session `id` of the agent `agent`.
    pub fn new(agent: impl Into<String>, id: impl Into<String>) -> SessionKey {
        SessionKey { agent: agent.into(), id: id.into() }
    }

    /// The folder of the session in the archive: two safe names, separated by `/`.
    pub fn folder(&self) -> String {
        format!("{}/{}", safe_name(&self.agent), safe_name(&self.id))
    }
}

/// Makes a file name from `text`. The name is safe on every system, and different texts get
/// different names.
///
/// Plain names (up to 80 bytes of lower case letters, digits, `-`, `_`, and `.` inside) are used
/// unchanged, unless Windows reserves them. In other names, ASCII capitals become lower case, and
/// every other character except ASCII letters, digits, `-` and `_` becomes `-`; the name is cut to
/// 60 characters, and `~` and half of the hash of `text` are added. No plain name contains `~`.
/// Capitals do not count as plain, because some disks do not distinguish `A` and `a`.
pub fn safe_name(text: &str) -> String {
    if !text.is_empty()
        && text.len() <= LONGEST
        && text.chars().all(is_plain)
        && !text.starts_with('.')
        && !text.ends_with('.')
        && !is_device(text)
    {
        return text.to_owned();
    }
    let cut: String = text
        .chars()
        .take(CUT)
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if is_plain(c) && c != '.' { c } else { '-' })
        .collect();
    format!("{cut}~{}", &Hash::compute(text.as_bytes()).to_string()[..32])
}

fn is_plain(c: char) -> bool {
    matches!(c, 'a'..='z' | '0'..='9' | '-' | '_' | '.')
}

/// Whether Windows reserves a name for a device. Only the part before the first dot counts.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    matches!(stem, "con" | "prn" | "aux" | "nul")
        || (stem.len() == 4
            && (stem.starts_with("com") || stem.starts_with("lpt"))
            && stem.ends_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::path::{Component, PathBuf};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_ids_are_their_own_folder() {
        let id = "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4";
        let key = SessionKey::new("claude", id);
        assert_eq!(key.folder(), format!("claude/{id}"));
    }

    #[test]
    fn hostile_ids_are_tamed() {
        let cases: &[(&str, &str)] = &[
            ("", "~af1349b9f5f9a1a6a0404dea36dcc949"),
            ("..", "--~"),
            ("../../etc", "------etc~"),
            ("a/b\\c", "a-b-c~"),
            ("ABC", "abc~"),
            (".hidden", "-hidden~"),
            ("con", "con~"),
            ("nul.txt", "nul-txt~"),
            ("é", "-~"),
            ("a\0b", "a-b~"),
        ];
        for (id, start) in cases {
            let name = safe_name(id);
            assert!(name.starts_with(start), "{id:?} gave {name}");
        }
        assert_eq!(safe_name(&"x".repeat(5000)).len(), CUT + 1 + 32);
    }

    proptest! {
        /// Different ids give different folders, and no folder is outside of the archive.
        #[test]
        fn names_are_safe_and_apart(one in "[aA./~é-]{0,6}", other in "[aA./~é-]{0,6}") {
            for text in [&one, &other] {
                let name = PathBuf::from(safe_name(text));
                let parts: Vec<_> = name.components().collect();
                prop_assert_eq!(parts.len(), 1);
                prop_assert!(matches!(parts[0], Component::Normal(_)));
            }
            let same = safe_name(&one).to_lowercase() == safe_name(&other).to_lowercase();
            prop_assert_eq!(one == other, same);
        }
    }
}
