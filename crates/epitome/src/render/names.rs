//! Names of files for sessions in a folder of rendered sessions.
//!
//! A name is made from the session's id. A hash of the id is added if the id cannot be used as it
//! is, or if another session has the same name in lower case. For copies of one session, the hash
//! is of the id and the file's path.

use std::path::Path;

use epitome_render::{Listing, PageName};

use super::{Member, RenderSource};
use crate::archive::Hash;
use crate::place::Place;

/// The number of digits of a hash in a name, and in a session's `origin` in a manifest. The hash is
/// short on purpose: a manifest is shared, and a short hash does not reveal a path.
const DIGITS: usize = 8;

/// The maximum number of characters in a session's name. The names of its sub-agents' pages begin
/// with this name and are longer.
const LONGEST: usize = 64;

/// The names of the files of a session and of its sub-agents.
pub(super) struct Names {
    pub(super) main: PageName,
    pub(super) parts: Vec<PageName>,
    /// A hash of the path of the session, which distinguishes copies of one session. `None` if the
    /// session is not a file.
    pub(super) origin: Option<String>,
}

/// Chooses names that no other session in `known` has.
pub(super) fn names(reading: &RenderSource, known: &[Listing]) -> Names {
    let (agent, id) = reading.session.agent_and_id();
    let origin = reading.session.path.as_deref().and_then(origin);
    let main = main(agent, &id, origin.as_deref(), known);
    let mut parts: Vec<PageName> = Vec::new();
    for member in &reading.sub_agents {
        parts.push(part(&main, member, &parts));
    }
    Names { main, parts, origin }
}

/// A name for a session, which no other session in `known` has.
fn main(agent: &str, id: &str, origin: Option<&str>, known: &[Listing]) -> PageName {
    // In a name, a dot separates the session from a sub-agent, so an id with a dot is not used as
    // it is.
    let plain = PageName::exact(&format!("{agent}-{id}"))
        .filter(|name| !id.contains('.') && name.stem().len() <= LONGEST);
    if let Some(name) = plain.filter(|name| is_free(name, origin, known)) {
        return name;
    }
    let whole = format!("{agent}-{}", id.replace('.', "-"));
    let whole: String = whole.chars().take(LONGEST - DIGITS - "-h".len()).collect();
    let name = PageName::with_tag(&whole, &tag(id));
    if is_free(&name, origin, known) {
        return name;
    }
    PageName::with_tag(&whole, &tag(&format!("{id}\0{}", origin.unwrap_or_default())))
}

/// Whether no other session has this name.
fn is_free(name: &PageName, origin: Option<&str>, known: &[Listing]) -> bool {
    known.iter().all(|it| {
        let is_other = match (it.origin.as_deref(), origin) {
            // An entry has no origin if its session came from a pipe, or if an earlier version
            // rendered it. Such an entry with the same name is assumed to be of the same session.
            (None, _) | (_, None) => it.name != name.stem(),
            (Some(theirs), Some(ours)) => theirs != ours || it.name != name.stem(),
        };
        !is_other || !it.name.eq_ignore_ascii_case(name.stem())
    })
}

/// Whether no other sub-agent of the session has this name.
fn is_free_part(name: &PageName, others: &[PageName]) -> bool {
    !others.iter().any(|other| other.stem().eq_ignore_ascii_case(name.stem()))
}

/// A name for a sub-agent's files, which no sub-agent in `others` has.
fn part(main: &PageName, member: &Member, others: &[PageName]) -> PageName {
    let name = member.part_name();
    let whole = format!("{}.{}", main.stem(), name.replace('.', "-"));
    let plain = PageName::exact(&whole).filter(|_| !name.contains('.'));
    if let Some(name) = plain.filter(|name| is_free_part(name, others)) {
        return name;
    }
    let tagged = PageName::with_tag(&whole, &tag(&name));
    if is_free_part(&tagged, others) {
        return tagged;
    }
    let path = member.path.as_deref().and_then(origin).unwrap_or_default();
    PageName::with_tag(&whole, &tag(&format!("{name}\0{path}")))
}

/// A short hash that distinguishes the path of a session from others.
fn origin(path: &Path) -> Option<String> {
    let real = Place::parse(path).real().ok()?;
    Some(Hash::compute(real.as_os_str().as_encoded_bytes()).to_string()[..DIGITS].to_owned())
}

fn tag(text: &str) -> String {
    format!("h{}", &Hash::compute(text.as_bytes()).to_string()[..DIGITS])
}
