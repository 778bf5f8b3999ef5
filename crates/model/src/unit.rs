//! Units: the smallest groups of items that can be removed from a context.

use std::collections::HashMap;

use crate::{Block, Role, Transcript};

/// The smallest group of whole items that can be removed from a context: for example, one model
/// response with its reasoning, its calls and their results, or one message of the user. Edits of
/// single blocks do not depend on units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Indices into `Transcript::items`, in the order they are sent.
    pub items: Vec<usize>,
    /// Whether the unit contains a user message. Not every such message begins one of the
    /// [`turns`](crate::turns): a blank message does not, and neither does a message that follows
    /// another one without an answer between them.
    pub starts_turn: bool,
}

/// The units of what a resume would send, in the order of their first items.
///
/// A result belongs to the unit of its call, even if other messages are between them. A result
/// whose call is not in the context before it is a unit of its own. An entry of a tool without such
/// a result, for example a picture that the tool added or a repetition of a result, belongs to the
/// last response before it, or is a unit of its own if a user message came after that response.
pub fn units(transcript: &Transcript) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut unit_of_group: HashMap<&str, usize> = HashMap::new();
    let mut unit_of_call: HashMap<&str, usize> = HashMap::new();
    let mut response: Option<usize> = None;
    for (idx, entry) in transcript.context() {
        let known = match entry.role {
            Role::Assistant | Role::User | Role::System => {
                entry.group.as_deref().and_then(|g| unit_of_group.get(g).copied())
            }
            Role::Tool if !entry.blocks.iter().any(is_result) => response,
            Role::Tool => entry.blocks.iter().find_map(|block| match block {
                Block::Output(output) => unit_of_call.get(&*output.call).copied(),
                _ => None,
            }),
        };
        let unit = known.unwrap_or_else(|| {
            units.push(Unit { items: Vec::new(), starts_turn: false });
            units.len() - 1
        });
        units[unit].starts_turn |= entry.role == Role::User;
        units[unit].items.push(idx);
        match entry.role {
            Role::Assistant => response = Some(unit),
            Role::User => response = None,
            Role::Tool | Role::System => {}
        }
        if entry.role != Role::Tool
            && let Some(group) = entry.group.as_deref()
        {
            unit_of_group.insert(group, unit);
        }
        for block in &entry.blocks {
            if let Block::Call(call) = block {
                unit_of_call.insert(&call.id, unit);
            }
        }
    }
    units
}

/// The last position in the context, at most `place`, at which the context can be split without
/// splitting a unit. Units may overlap, because other messages may be between a call and its
/// result.
///
/// `place` and the returned position are indices into [`Transcript::context`], or its length.
pub fn unit_boundary_before(transcript: &Transcript, mut place: usize) -> usize {
    let places: HashMap<usize, usize> =
        transcript.context.iter().enumerate().map(|(place, &item)| (item, place)).collect();
    // Units are in the order of their first items; an earlier unit may extend beyond `place`.
    for unit in units(transcript).iter().rev() {
        let of_unit = unit.items.iter().filter_map(|item| places.get(item).copied());
        let first = of_unit.clone().min();
        let last = of_unit.max();
        if let (Some(first), Some(last)) = (first, last)
            && (first + 1..=last).contains(&place)
        {
            place = first;
        }
    }
    place
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::Output(_))
}
