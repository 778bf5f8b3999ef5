//! What the files of a session are called in a folder of rendered sessions.
//!
//! An ordinary id is a name as it is. Where two sessions would get one name (on a disk that does
//! not tell `x` from `X`, too), a hash tells them apart: of the id, or for copies of one session of
//! the place of the file as well.

use std::path::Path;

use epitome_render::{Listing, PageName};

use super::{Member, RenderSource};
use crate::archive::Hash;
use crate::place::Place;

/// Digits of a hash in a name, and of the place of a session in a manifest. Few on purpose: a
/// manifest is shared, and so short a hash does not give a path away.
const DIGITS: usize = 8;

/// Characters of the name of a session: those of its sub-agents begin with it and are longer.
const LONGEST: usize = 64;

/// The names of the files of a session, its sub-agents' behind it.
pub(super) struct Names {
    pub(super) main: PageName,
    pub(super) parts: Vec<PageName>,
    /// Tells copies of one session apart.
    pub(super) origin: Option<String>,
}

/// Chooses names that no other of the `known` sessions has.
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

/// The name of a session among those that are known.
fn main(agent: &str, id: &str, origin: Option<&str>, known: &[Listing]) -> PageName {
    let is_free = |name: &PageName| {
        known.iter().all(|it| {
            let is_other = match (it.origin.as_deref(), origin) {
                // Of one that came from a pipe, or was rendered by an earlier version, it is not
                // known where it is: it is taken for the same.
                (None, _) | (_, None) => it.name != name.stem(),
                (Some(theirs), Some(ours)) => theirs != ours || it.name != name.stem(),
            };
            !is_other || !it.name.eq_ignore_ascii_case(name.stem())
        })
    };
    // A dot parts a session from its sub-agents.
    let plain = PageName::exact(&format!("{agent}-{id}"))
        .filter(|name| !id.contains('.') && name.stem().len() <= LONGEST);
    if let Some(name) = plain.filter(&is_free) {
        return name;
    }
    let whole = format!("{agent}-{}", id.replace('.', "-"));
    let whole: String = whole.chars().take(LONGEST - DIGITS - "-h".len()).collect();
    let name = PageName::tagged(&whole, &tag(id));
    if is_free(&name) {
        return name;
    }
    PageName::tagged(&whole, &tag(&format!("{id}\0{}", origin.unwrap_or_default())))
}

/// The name of a sub-agent's files.
fn part(main: &PageName, member: &Member, others: &[PageName]) -> PageName {
    let name = member.part_name();
    let is_free =
        |wanted: &PageName| !others.iter().any(|it| it.stem().eq_ignore_ascii_case(wanted.stem()));
    let whole = format!("{}.{}", main.stem(), name.replace('.', "-"));
    let plain = PageName::exact(&whole).filter(|_| !name.contains('.'));
    if let Some(name) = plain.filter(&is_free) {
        return name;
    }
    let tagged = PageName::tagged(&whole, &tag(&name));
    if is_free(&tagged) {
        return tagged;
    }
    let path = member.path.as_deref().and_then(origin).unwrap_or_default();
    PageName::tagged(&whole, &tag(&format!("{name}\0{path}")))
}

/// What tells the place of a session from others.
fn origin(path: &Path) -> Option<String> {
    let real = Place::parse(path).real().ok()?;
    Some(Hash::compute(real.as_os_str().as_encoded_bytes()).to_string()[..DIGITS].to_owned())
}

fn tag(text: &str) -> String {
    format!("h{}", &Hash::compute(text.as_bytes()).to_string()[..DIGITS])
}
