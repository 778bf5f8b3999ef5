//! Replaces a text in the content of a session.

use epitome_formats::Spliced;
use epitome_model::{Block, Span, Splice, Transcript};
use epitome_redact::{Finder, Redactor};
use epitome_store::forgotten::{ForgottenText, Occurrence};
use memchr::memmem;

use crate::error::{Error, ErrorKind, Result};
use crate::redact::sealed;
use crate::session::Loaded;

/// The spans of a session in which a text stays.
struct FixedSpans {
    /// Reasoning, which a model service may have signed, and pictures.
    sealed: Vec<Span>,
    /// The places in the agent's records with the folder in which the session was run. The agent
    /// finds the session by this folder.
    folder: Vec<Span>,
}

impl FixedSpans {
    fn new(session: &Loaded<Vec<u8>>) -> FixedSpans {
        let sealed = sealed(&session.transcript);
        FixedSpans { sealed, folder: folder_spans(session) }
    }

    /// The reasoning or the picture that `span` is in.
    fn seal_of(&self, span: Span) -> Option<Span> {
        let next = self.sealed.partition_point(|it| it.end <= span.start);
        self.sealed.get(next).filter(|it| it.start < span.end).copied()
    }
}

/// The splices that replace a text by a placeholder, except in signed reasoning, in pictures and in
/// the folder of the session. A spelling that `finder` does not find is masked, as in versions.
///
/// # Errors
///
/// `Refused` if the session could not be read, or found by its agent, without the text.
pub(super) fn replacements(
    session: &Loaded<Vec<u8>>,
    text: &ForgottenText,
    finder: &Finder,
) -> Result<Vec<Splice>> {
    let fixed = FixedSpans::new(session);
    let mut splices = Redactor::new(finder).splices(&session.source, &fixed.sealed);
    splices.retain(|splice| !is_in_any(&fixed.folder, splice.span));
    // A signature that is emptied was of a changed text. A service refuses such a session, so that
    // both stay as they are. Reasoning without a signature can be changed.
    let emptied = splices.iter().filter(|splice| splice.with.is_empty());
    let signed: Vec<Span> = emptied.filter_map(|it| fixed.seal_of(it.span)).collect();
    splices.retain(|splice| !is_in_any(&signed, splice.span));
    let replaced: Vec<Span> = splices.iter().map(|splice| splice.span).collect();
    let mut left = text.find(&session.source);
    left.retain(|found| {
        [&fixed.sealed, &fixed.folder, &replaced].iter().all(|spans| !is_in_any(spans, found.range))
    });
    splices.extend(masks(&session.source, &left));
    splices.sort_by_key(|splice| splice.span.start);
    if !splices.is_empty() {
        check_structure(session, splices.clone())?;
    }
    Ok(splices)
}

/// Why a session still has a text. `None` if it does not have it.
pub(super) fn why_left(session: &Loaded<Vec<u8>>, text: &ForgottenText) -> Option<String> {
    let fixed = FixedSpans::new(session);
    let (mut is_sealed, mut is_folder, mut is_other) = (false, false, false);
    for found in text.find(&session.source) {
        match found.range {
            range if is_in_any(&fixed.sealed, range) => is_sealed = true,
            range if is_in_any(&fixed.folder, range) => is_folder = true,
            _ => is_other = true,
        }
    }
    let reasons = [
        (is_sealed, "in what a model service has signed or in a picture, which cannot be changed"),
        (is_folder, "in the folder in which the session was run, by which its agent finds it"),
        (is_other, "in a form in which it cannot be replaced"),
    ];
    let reasons: Vec<&str> =
        reasons.into_iter().filter(|(is_so, _)| *is_so).map(|(_, reason)| reason).collect();
    (!reasons.is_empty()).then(|| format!("it is {}", reasons.join("; it is ")))
}

/// The splices that mask occurrences, which are sorted and may overlap.
fn masks(bytes: &[u8], found: &[Occurrence]) -> Vec<Splice> {
    let spans = union(found.iter().map(|it| it.range).collect());
    let masked = spans.into_iter().map(|span| {
        let [start, end] = [span.start, span.end].map(|at| usize::try_from(at).unwrap_or(0));
        let mut with = bytes[start..end].to_vec();
        found.iter().for_each(|it| it.mask_in(&mut with, span.start));
        Splice { span, with: with.into() }
    });
    masked.collect()
}

/// The spans of the JSON strings outside of messages that are the folder in which the session was
/// run.
fn folder_spans(session: &Loaded<Vec<u8>>) -> Vec<Span> {
    let Some(cwd) = session.transcript.head.cwd.as_deref() else { return Vec::new() };
    let Ok(literal) = serde_json::to_string(cwd) else { return Vec::new() };
    let shown = shown_spans(&session.transcript);
    memmem::find_iter(&session.source, &literal)
        .map(|at| Span { start: at as u64, end: (at + literal.len()) as u64 })
        .filter(|span| !is_in_any(&shown, *span))
        .collect()
}

/// The spans of what a model sees.
fn shown_spans(transcript: &Transcript) -> Vec<Span> {
    let mut spans = Vec::new();
    for block in transcript.entries().flat_map(|(_, entry)| &entry.blocks) {
        match block {
            Block::Text(text) | Block::Summary(text) => spans.extend(text.span()),
            Block::Thinking(thinking) => spans.push(thinking.whole),
            Block::Call(call) => {
                spans.push(call.arguments);
                spans.extend(call.fields.iter().filter_map(|field| field.text.span()));
            }
            Block::Output(output) => spans.push(output.whole),
            Block::Repeated(again) => spans.push(again.whole),
            Block::Image(image) => spans.push(image.whole),
            Block::Opaque(span) => spans.push(*span),
            // No other kinds of blocks exist.
            _ => {}
        }
    }
    union(spans)
}

/// The same bytes in spans that are sorted and disjoint.
fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut().filter(|last| span.start < last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => joined.push(span),
        }
    }
    joined
}

/// Whether a span overlaps with one of these, which are sorted and disjoint.
fn is_in_any(spans: &[Span], span: Span) -> bool {
    let next = spans.partition_point(|it| it.end <= span.start);
    spans.get(next).is_some_and(|it| it.start < span.end)
}

/// Returns an error if the replacement would change the number of blocks of a session, or make
/// records unreadable. This can happen if the text is also a name in the records of the agent, for
/// example `sessionId`. Also returns an error if the agent would not find the session any more.
fn check_structure(session: &Loaded<Vec<u8>>, splices: Vec<Splice>) -> Result<()> {
    let after = Spliced::new(&session.source, splices)?;
    let mut faults = Vec::new();
    let again = (session.format.read)(&after, &mut faults);
    let blocks = |transcript: &Transcript| {
        transcript.entries().map(|(_, entry)| entry.blocks.len()).sum::<usize>()
    };
    let head = |transcript: &Transcript| (transcript.head.id.clone(), transcript.head.cwd.clone());
    let refused = |what: &str| Err(Error::new(ErrorKind::Refused, what));
    if blocks(&again) != blocks(&session.transcript) || faults.len() > session.faults.len() {
        return refused(
            "the text is a name in the agent's records: without it the session could not be read",
        );
    }
    if head(&again) != head(&session.transcript) {
        return refused("the text is in the id or the folder by which its agent finds the session");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use epitome_redact::Rules;

    use super::super::text::rule;
    use super::*;

    /// The session after the text was replaced, and why it still has the text, if it does.
    fn replaced(agent: &str, session: &str, text: &str) -> Result<(String, Option<String>)> {
        let read = |text: &str| Loaded::read(text.as_bytes().to_vec(), Some(agent));
        let session = read(session)?;
        let forgotten = ForgottenText::new(text)?;
        let finder = Finder::new(Rules::parse(&rule(&[text])).expect("a rule")).expect("a finder");
        let splices = replacements(&session, &forgotten, &finder)?;
        let after = Spliced::new(&session.source, splices)?;
        let after = epitome_model::Source::read(&after, 0..u64::MAX).into_owned();
        let after = String::from_utf8(after).expect("text");
        let why = why_left(&read(&after)?, &forgotten);
        Ok((after, why))
    }

    #[test]
    fn signed_reasoning_with_the_text_stays_and_is_named() {
        let session = |thinking: &str, signature: &str, said: &str| {
            let block = format!(
                r#"{{"type":"thinking","thinking":"{thinking}","signature":"{signature}"}}"#
            );
            format!(
                "{{\"messages\":[{{\"role\":\"user\",\"content\":\"go\"}},\
                 {{\"role\":\"assistant\",\"content\":[{block},\
                 {{\"type\":\"text\",\"text\":\"{said}\"}}]}}]}}"
            )
        };
        let signature = STANDARD.encode([7; 150]);
        let before = session("the hunter2-hunter2 is", &signature, "hunter2-hunter2 it is");
        let (after, why) = replaced("anthropic", &before, "hunter2-hunter2").expect("replaced");
        assert_eq!(
            after,
            session("the hunter2-hunter2 is", &signature, "[REDACTED:forgotten-1] it is")
        );
        assert!(why.is_some_and(|why| why.contains("signed")));
        let before = session("the hunter2-hunter2 is", "", "it is");
        let (after, why) = replaced("anthropic", &before, "hunter2-hunter2").expect("replaced");
        assert_eq!((after, why), (session("the [REDACTED:forgotten-1] is", "", "it is"), None));
    }

    #[test]
    fn a_text_that_is_a_name_in_records_is_refused() {
        let body = r#"{"messages":[{"role":"user","content":"the secret word"}]}"#;
        let kind = |text: &str| replaced("openai-chat", body, text).err().map(|err| err.kind());
        assert_eq!(kind("secret word"), None);
        // The first would be replaced by a placeholder, the second would be masked.
        assert_eq!(kind("messages"), Some(ErrorKind::Refused));
        assert_eq!(kind("\"content"), Some(ErrorKind::Refused));
    }

    #[test]
    fn a_text_is_replaced_in_every_spelling_that_is_found_in_versions() {
        let secret = "the \"secret\" of the 48 columns that this line is broken into";
        let spelled = |text: &str| serde_json::to_string(text).expect("JSON");
        let encoded = STANDARD.encode(format!("key: {secret}; and more of it"));
        let columns: Vec<&str> = encoded
            .as_bytes()
            .chunks(48)
            .map(|line| std::str::from_utf8(line).expect("ASCII"))
            .collect();
        for content in [
            format!("it is {secret}."),
            format!("data: |\n    {}", columns.join("\n    ")),
            format!("a log of {{\"text\":{}}} here", spelled(secret)),
            format!("a log of {{\"json\":{}}} here", spelled(&spelled(secret))),
        ] {
            let body =
                format!(r#"{{"messages":[{{"role":"user","content":{}}}]}}"#, spelled(&content));
            let (after, why) = replaced("openai-chat", &body, secret).expect("replaced");
            assert_ne!(after, body);
            assert_eq!(why, None, "{after}");
        }
    }

    /// Versions and sessions are searched for the same spellings.
    #[test]
    fn a_text_in_codes_is_replaced_and_found_in_versions() {
        let secret = "secret-word-of-a-session";
        let spelled = |text: &str| serde_json::to_string(text).expect("JSON");
        let octal: String = secret.bytes().map(|byte| format!("\\{byte:03o}")).collect();
        let hex: String = secret.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        let broken = |by: &str| secret.split("").collect::<Vec<_>>().join(by);
        let wide = secret.replace('s', "\u{ff53}");
        let dashes = secret.replace('-', "&#45;");
        for content in [
            octal,
            hex,
            wide,
            dashes,
            broken("\0"),
            broken("\u{200b}"),
            broken("\\u0000"),
            broken("\\033[1m"),
            secret.replace("word", "\u{1b}[01;31m\u{1b}[Kword\u{1b}[m"),
            secret.replace("word", "\\x1b[31mword\\e[0m"),
        ] {
            let content = spelled(&format!("it is {content} here"));
            let body = format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
            let forgotten = ForgottenText::new(secret).expect("a text");
            assert!(forgotten.is_in(body.as_bytes()), "{body}");
            let (after, why) = replaced("openai-chat", &body, secret).expect("replaced");
            assert_ne!(after, body);
            assert_eq!(why, None, "{after}");
            let mut masked = body.clone().into_bytes();
            forgotten.mask(&mut masked);
            let masked = serde_json::from_slice::<serde_json::Value>(&masked);
            let shown = masked.expect("JSON as before")["messages"][0]["content"].clone();
            let shown = shown.as_str().expect("a text").replace(['*', '\0', '\u{200b}'], "");
            assert!(shown.len() < "it is  here".len() + 16, "{shown}");
        }
    }

    #[test]
    fn the_folder_of_a_session_stays() {
        let session = String::from_utf8(fixtures::get("pi", "pricing").bytes()).expect("text");
        let read = Loaded::read(session.clone().into_bytes(), Some("pi")).expect("a session");
        let cwd = read.transcript.head.cwd.clone().expect("a folder");
        let home = "/home/some-user";
        let session = session.replace(&*cwd, &format!("{home}/p"));
        let (after, why) = replaced("pi", &session, home).expect("replaced");
        let reason =
            "it is in the folder in which the session was run, by which its agent finds it";
        assert_eq!(why.as_deref(), Some(reason));
        let again = Loaded::read(after.clone().into_bytes(), Some("pi")).expect("a session");
        assert_eq!(again.transcript.head.cwd, Some(format!("{home}/p").into()));
        assert_eq!(after.matches(home).count(), after.matches(&format!("\"{home}/p\"")).count());
    }
}
