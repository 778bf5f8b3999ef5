//! Requests: what a session records of their sizes.

use crate::{Tokens, Transcript};

/// The input tokens of each request that a session records, as the provider counted them, in the
/// order of the file: how full the context was, whether a resume sends these entries or not.
///
/// The records of one response are one request, whichever of them says its size. Requests of which
/// nothing is recorded, or nothing but zero, are left out, and so are copies of the history.
pub fn request_sizes(transcript: &Transcript) -> Vec<Tokens> {
    let mut sizes: Vec<Tokens> = Vec::new();
    let mut response = None;
    for (_, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
        let Some(usage) = entry.usage.filter(|usage| usage.input > 0) else { continue };
        let group = entry.group.as_deref();
        match sizes.last_mut().filter(|_| group.is_some() && group == response) {
            Some(size) => *size = (*size).max(Tokens(usage.input)),
            None => sizes.push(Tokens(usage.input)),
        }
        response = group;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Item, Usage};

    #[test]
    fn each_response_is_one_request() {
        let entry = |group: Option<&str>, input: Option<u64>, repeated| {
            let usage = input.map(|input| Usage { input, ..Usage::default() });
            let group = group.map(Into::into);
            Item::Entry(Box::new(Entry { group, usage, repeated, ..Entry::default() }))
        };
        let items = vec![
            entry(Some("a"), Some(5), false),
            entry(Some("a"), Some(7), false),
            entry(None, None, false),
            entry(Some("b"), Some(9), false),
            entry(Some("b"), Some(9), true),
            entry(None, Some(0), false),
            entry(None, Some(3), false),
            entry(None, Some(3), false),
        ];
        let transcript = Transcript { items, ..Transcript::default() };
        assert_eq!(request_sizes(&transcript), [7, 9, 3, 3].map(Tokens));
    }
}
