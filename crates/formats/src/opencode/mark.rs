//! OpenCode's own way to shorten what it sends: `state.time.compacted` marks a pruned result.
//!
//! A pruned result stays in its part, but OpenCode sends a fixed text in its place. OpenCode marks
//! only completed results (`SessionCompaction.prune`), and so does epitome.

use std::ops::Range;

use epitome_json::integer;
use epitome_model::{At, Block, Edit, Output, Part, Source, Span, Splice, Transcript};

use super::raw;
use crate::Unwritable;

/// Whether a result can be marked: see [`markable`].
pub fn reaches(transcript: &Transcript, source: &dyn Source, at: At) -> bool {
    markable(transcript, source, at).is_some()
}

/// The replacements that mark results. The time of each mark is that of the newest message, because
/// this crate reads no clock.
///
/// # Errors
///
/// [`Unwritable`] if a result cannot be marked.
pub fn write(
    transcript: &Transcript,
    source: &dyn Source,
    edits: &[Edit],
) -> Result<Vec<(Splice, At)>, Unwritable> {
    let times = transcript.entries().filter_map(|(_, entry)| entry.time.as_deref());
    // OpenCode ignores a mark whose time is zero.
    let newest = times.filter_map(|time| time.parse::<u64>().ok()).max().unwrap_or(1).max(1);
    let mut splices = Vec::new();
    for edit in edits {
        let lost = Unwritable { at: edit.at, why: "no mark can express it" };
        let (span, with) = markable(transcript, source, edit.at).ok_or(lost)?;
        let with = format!("{with}{newest}").into_bytes().into();
        splices.push((Splice { span, with }, edit.at));
    }
    splices.sort_by_key(|(splice, _)| splice.span);
    Ok(splices)
}

/// The tool result at a position and the span of its record. `None` if the position is not that of
/// a whole tool result.
fn output(transcript: &Transcript, at: At) -> Option<(&Output, Span)> {
    let At::Block { item, block } = at else { return None };
    let entry = transcript.items.get(item)?.entry()?;
    match entry.blocks.get(block)? {
        Block::Output(output) => Some((output, entry.record.span)),
        _ => None,
    }
}

/// The span that a mark replaces, and the text before the time of the mark. `None` if the result
/// cannot be marked. The call must have completed, its result must not be pruned already, and a
/// command that it ran must not have failed. The result must have no opaque part and must not be
/// text of the user.
fn markable(transcript: &Transcript, source: &dyn Source, at: At) -> Option<(Span, &'static str)> {
    let (output, span) = output(transcript, at)?;
    let is_opaque = |part: &Part| matches!(part, Part::Opaque(_));
    if output.from_user || output.parts.iter().any(is_opaque) {
        return None;
    }
    let (place, with) = place_of_mark(&source.at(span))?;
    let start = span.start + place.start as u64;
    Some((Span { start, end: span.start + place.end as u64 }, with))
}

/// The range of a record that a mark replaces, and the text before the time of the mark. `None` if
/// no mark can be written, for example because the call has not completed or its command failed.
fn place_of_mark(record: &[u8]) -> Option<(Range<usize>, &'static str)> {
    let state = raw::part_of(record)?.state?;
    let status = state.status.as_ref().map(|place| &record[place.clone()]);
    if status != Some(b"\"completed\"") || state.is_compacted(record) || state.output.is_none() {
        return None;
    }
    let mut facts = state.metadata.iter().flat_map(|metadata| &metadata.all);
    let exit = facts.find(|(key, _)| **key == *b"exit").map(|(_, place)| place);
    if exit.is_some_and(|exit| integer(record, exit) != Some(0)) {
        return None;
    }
    let time = state.time?;
    match time.compacted {
        Some(compacted) => Some((compacted, "")),
        None => {
            let end = time.whole.end - 1;
            let is_empty = record[time.whole.start + 1..end].iter().all(u8::is_ascii_whitespace);
            Some((end..end, if is_empty { "\"compacted\":" } else { ",\"compacted\":" }))
        }
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::Verb;

    use super::*;

    /// Checks which mark is written into a tool part with this state; `None` if it cannot be
    /// marked.
    fn check(state: &str, expect: Option<&str>) {
        let line = |table: &str, id: &str, data: &str| {
            format!(
                "{{\"table\":\"{table}\",\"id\":\"{id}\",\"message_id\":\"m\",\"data\":{data}}}\n"
            )
        };
        let part = format!(
            r#"{{"type":"tool","tool":"bash","callID":"c","state":{{"input":{{}},{state}}}}}"#
        );
        let message = r#"{"role":"assistant","time":{"created":7},"finish":"stop"}"#;
        let session = [line("message", "m", message), line("part", "p", &part)].concat();
        let source = session.clone().into_bytes();
        let transcript = super::super::read(&source, &mut ());
        let at = At::Block { item: 1, block: 1 };
        let edit = Edit { at, verb: Verb::Replace(epitome_model::PRUNED.into()), pass: "test" };
        let written = write(&transcript, &source, &[edit]);
        assert_eq!(written.is_ok(), reaches(&transcript, &source, at), "{state}");
        let marked = written.ok().map(|splices| {
            let [(Splice { span, with }, _)] = splices.as_slice() else { panic!("{splices:?}") };
            let mut marked = session.into_bytes();
            marked.splice(span.start as usize..span.end as usize, with.iter().copied());
            String::from_utf8(marked).expect("text")
        });
        let time = marked.as_deref().map(|it| {
            let from = it.find("\"time\":{\"s").or(it.find("\"time\":{\"comp")).expect("a time");
            let to = it[from..].find('}').expect("its end");
            &it[from..=from + to]
        });
        assert_eq!(time, expect, "{state}");
    }

    #[test]
    fn a_mark_is_the_time_of_the_newest_message() {
        let done = |rest: &str| format!(r#""status":"completed","output":"long"{rest}"#);
        let marked = Some(r#""time":{"start":1,"compacted":7}"#);
        let cases: [(&str, Option<&str>); 9] = [
            (r#","time":{"start":1}"#, marked),
            (r#","time":{"start":1,"compacted":0}"#, marked),
            (r#","time":{"start":1,"compacted":null}"#, marked),
            (r#","time":{"start":1},"metadata":{"exit":0}"#, marked),
            (r#","time":{"start":1,"compacted":5}"#, None),
            ("", None),
            (r#","time":{"start":1},"metadata":{"exit":1}"#, None),
            (r#","time":{"start":1},"attachments":[{"mime":"application/pdf","url":"x"}]"#, None),
            (r#","time":{"start":1},"metadata":{"exit":null}"#, None),
        ];
        for (rest, expect) in cases {
            check(&done(rest), expect);
        }
        check(&done(r#","time":{}"#), Some(r#""time":{"compacted":7}"#));
        check(r#""status":"error","error":"long","time":{"start":1}"#, None);
        check(r#""status":"running","output":"long","time":{"start":1}"#, None);
    }
}
