//! Requests to a model: what a session records of their sizes.
//!
//! [`request_sizes`] is for showing how the context grew, [`requests_with_counts`] for adding up
//! costs.

use std::collections::HashMap;

use crate::{CacheUse, RecordedUsage, Tokens, Transcript};

/// The input tokens of each request that a session records, as the provider counted them, in the
/// order of the file: how full the context was at that time. Requests are included whether a resume
/// sends their entries or not.
///
/// The records of one response count as one request with the largest of their sizes, unless a
/// record of another response is between them. Requests without a recorded size, or with the size
/// zero, are left out, and so are copies of the history. [`requests_with_counts`] returns all
/// counts of each request.
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

/// A request whose tokens a session records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedRequest<'t> {
    /// The time of the response, as written in the session.
    pub time: Option<&'t str>,
    /// The model that answered the request.
    pub model: Option<&'t str>,
    /// The id that the entries of the response share, if the session records one.
    pub group: Option<&'t str>,
    /// The tokens that the provider counted for the request.
    pub usage: RecordedUsage,
}

/// All requests whose tokens a session records, in the order of the file.
///
/// Several records of one response may each have counts, which grow from record to record. Together
/// they are one request, which has the largest value of each count, wherever in the file the
/// records are. Requests that have no tokens and no cost (aborted, or failed at once) are left out,
/// and so are copies of the history.
pub fn requests_with_counts(transcript: &Transcript) -> Vec<CountedRequest<'_>> {
    let mut requests: Vec<CountedRequest<'_>> = Vec::new();
    let mut of_response: HashMap<&str, usize> = HashMap::new();
    for (_, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
        let Some(usage) = entry.usage else { continue };
        let time = entry.time.as_deref();
        let model = entry.model.as_deref();
        let group = entry.group.as_deref();
        if let Some(&at) = group.and_then(|group| of_response.get(group)) {
            let request = &mut requests[at];
            request.usage = request.usage.most(usage);
            request.model = model.or(request.model);
            request.time = request.time.or(time);
        } else {
            of_response.extend(group.map(|group| (group, requests.len())));
            requests.push(CountedRequest { time, model, group, usage });
        }
    }
    requests.retain(|request| request.usage.is_billed());
    requests
}

impl RecordedUsage {
    /// Whether the input or the output is not zero, or a cost is recorded.
    fn is_billed(&self) -> bool {
        self.input > 0 || self.output > 0 || self.cost.is_some()
    }

    /// For each count, the larger of the values in two records of one request.
    fn most(self, other: RecordedUsage) -> RecordedUsage {
        let cache = match (self.cache, other.cache) {
            (Some(a), Some(b)) => {
                Some(CacheUse { read: a.read.max(b.read), written: a.written.max(b.written) })
            }
            (one, other) => one.or(other),
        };
        RecordedUsage {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache,
            cost: self.cost.max(other.cost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Item, MicroDollars};

    #[test]
    fn each_response_is_one_request() {
        let entry = |group: Option<&str>, input: Option<u64>, repeated| {
            let usage = input.map(|input| RecordedUsage { input, ..RecordedUsage::default() });
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

    #[test]
    fn the_records_of_a_response_are_one_request_with_the_largest_counts() {
        let entry = |group: Option<&str>, time: &str, usage| {
            let (group, time) = (group.map(Into::into), Some(time.into()));
            let model = Some("m".into());
            Item::Entry(Box::new(Entry { group, time, model, usage, ..Entry::default() }))
        };
        let usage =
            |input, output| Some(RecordedUsage { input, output, ..RecordedUsage::default() });
        let cached = |input, read, cost| {
            let cache = Some(CacheUse { read, written: 1 });
            Some(RecordedUsage {
                input,
                cache,
                cost: Some(MicroDollars(cost)),
                ..RecordedUsage::default()
            })
        };
        let copy = Entry { usage: usage(9, 9), repeated: true, ..Entry::default() };
        let items = vec![
            entry(Some("a"), "1", cached(5, 3, 2)),
            entry(None, "2", usage(7, 1)),
            entry(Some("a"), "3", cached(4, 4, 1)),
            entry(None, "4", usage(0, 0)),
            entry(None, "5", None),
            Item::Entry(Box::new(copy)),
        ];
        let transcript = Transcript { items, ..Transcript::default() };
        let request = |group, time, usage: Option<RecordedUsage>| CountedRequest {
            time: Some(time),
            model: Some("m"),
            group,
            usage: usage.expect("it is given"),
        };
        let expect = [request(Some("a"), "1", cached(5, 4, 2)), request(None, "2", usage(7, 1))];
        assert_eq!(requests_with_counts(&transcript), expect);
    }
}
