//! Finds secrets of several lines: private keys (PEM, armour, PuTTY) and Kubernetes Secrets.
//!
//! Redaction recognises such a key by its first or last line. A part of a text may have neither,
//! and still contain other lines of the key. So the whole key is removed from every text that is
//! kept in part.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

/// A line that begins or ends a private key, or the mark of a PuTTY key or a Kubernetes Secret.
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    let pem = r"-----?[ -]?(BEGIN|END)[ A-Z0-9_-]{0,40}PRIVATE[ _]KEY(?: BLOCK)?[ -]?-----?";
    let pattern = format!("(?i){pem}|Private-Lines:|kind:[ \\t]*[\"']?Secret(?-u:\\b)");
    Regex::new(&pattern).expect("the words are fixed and tested")
});

/// A text is searched for marks only if it contains one of these words, as it is written here or
/// all in capitals, or `Secret`. Most texts contain none, which is quick to check.
const HINTS: [&str; 3] = ["private", "secret", "Private"];

/// Maximum bytes between the first and the last line of a key.
const LONGEST: usize = 64_000;
/// Minimum characters of a run of base64 characters that may be a line of a key, or a part of one.
const WORD: usize = 16;
/// Maximum bytes between two runs of base64 characters of a key, for line feeds, line numbers and
/// diff marks.
const BETWEEN: usize = 24;
/// The text that replaces a key.
const LEFT: &str = "[private key]";

/// The text with each multi-line key replaced by a short mark. The number of lines does not change.
pub fn without_key_blocks(text: &str) -> Cow<'_, str> {
    let blocks = key_blocks(text);
    if blocks.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for Range { start, end } in blocks {
        shown.push_str(&text[from..start]);
        shown.push_str(LEFT);
        shown.extend(text[start..end].matches('\n'));
        from = end;
    }
    shown.push_str(&text[from..]);
    Cow::Owned(shown)
}

/// The ranges of all multi-line keys in a text, in order and without overlap.
fn key_blocks(text: &str) -> Vec<Range<usize>> {
    let is_hinted = HINTS.into_iter().any(|hint| {
        let upper = hint.to_ascii_uppercase();
        memmem::find(text.as_bytes(), hint.as_bytes()).is_some()
            || memmem::find(text.as_bytes(), upper.as_bytes()).is_some()
    });
    if !is_hinted && !text.contains("Secret") {
        return Vec::new();
    }
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let marks: Vec<_> = MARK.captures_iter(text).collect();
    for (n, mark) in marks.iter().enumerate() {
        let Some(place) = mark.get(0).map(|it| it.range()) else { continue };
        let kind = mark.get(1).map(|it| it.as_str().to_ascii_uppercase());
        let block = match kind.as_deref() {
            Some("BEGIN") => place.start..end_of_key(text, &place, marks.get(n + 1)),
            Some(_) => start_of_key(text, place.start)..place.end,
            None if mark[0].starts_with(['P', 'p']) => place.start..words_after(text, place.end),
            None => place.start..end_of_manifest(text, place.end),
        };
        match blocks.last_mut() {
            Some(last) if block.start <= last.end => last.end = last.end.max(block.end),
            Some(_) | None => blocks.push(block),
        }
    }
    blocks
}

/// The end of the key that begins with the mark at `place`; `next` is the next mark of the text.
fn end_of_key(text: &str, place: &Range<usize>, next: Option<&regex::Captures<'_>>) -> usize {
    let end = next.and_then(|next| {
        let is_end = next.get(1).is_some_and(|it| it.as_str().eq_ignore_ascii_case("END"));
        next.get(0).filter(|_| is_end).map(|it| it.end())
    });
    let end = end.filter(|end| end - place.end <= LONGEST);
    end.unwrap_or_else(|| words_after(text, place.end))
}

/// The end of those runs of base64 characters after `from` that may be lines of a key. For a key
/// whose last line is missing.
fn words_after(text: &str, from: usize) -> usize {
    let mut end = from;
    for word in words(&text[from..]) {
        let starts = from + word.start;
        let ends = from + word.end;
        let value = &text[starts..ends];
        let is_number = word.len() <= 6 && value.bytes().all(|it| it.is_ascii_digit());
        let is_last = value.ends_with('=');
        if starts - end > BETWEEN || !is_number && !is_last && word.len() < WORD {
            break;
        }
        end = ends;
    }
    end
}

/// The start of those runs of base64 characters before `to` that may be lines of a key. For a key
/// whose first line is missing.
fn start_of_key(text: &str, to: usize) -> usize {
    let mut from = to.saturating_sub(LONGEST);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let mut start = to;
    let mut is_first = true;
    for word in words(&text[from..to]).collect::<Vec<_>>().into_iter().rev() {
        let starts = from + word.start;
        let ends = from + word.end;
        let is_number = word.len() <= 6 && text[starts..ends].bytes().all(|it| it.is_ascii_digit());
        if start - ends > BETWEEN || !is_number && !is_first && word.len() < WORD {
            break;
        }
        is_first &= is_number;
        start = starts;
    }
    start
}

/// The ranges of the runs of base64 characters in a text, which are called words here.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(|byte| is_base64(*byte))?;
        let len = bytes[start..].iter().position(|byte| !is_base64(*byte));
        at = len.map_or(bytes.len(), |len| start + len);
        Some(start..at)
    })
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The end of the data in a Kubernetes manifest whose `kind: Secret` ends at `from`. The data are
/// the indented lines below `data:` and `stringData:`.
fn end_of_manifest(text: &str, from: usize) -> usize {
    let mut end = from;
    let mut at = from;
    let mut is_data = false;
    for line in text[from..].split_inclusive('\n') {
        at += line.len();
        let words = line.trim_end();
        if words.starts_with("---") {
            break;
        }
        if is_data && words.starts_with([' ', '\t']) {
            end = at - (line.len() - words.len());
        } else if !words.is_empty() {
            is_data = ["data:", "stringData:"].contains(&words);
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use epitome_model::{FieldRole, Tokens, ToolKind, Verb};
    use samples::{Quarters, Sample};

    use super::*;
    use crate::{
        BUILT_IN, ContextKind, DigestRule, Options, ReplacedHistory, View, built_in, plan_edits,
    };

    const HEADS: [&str; 5] = [
        "OPENSSH PRIVATE KEY",
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ];

    fn body() -> Vec<String> {
        let line = |n: usize| format!("{}{n:02}/+Zz9", "MIIEowIBAAKCAQEAq3v8Lk".repeat(3));
        (0..12).map(line).collect()
    }

    fn is_hidden(text: &str) {
        let shown = without_key_blocks(text);
        for line in body() {
            assert!(!shown.contains(&line[..20]), "{text}\n=>\n{shown}");
        }
        assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
        assert!(shown.starts_with("before") && shown.ends_with("after."), "{shown}");
    }

    #[test]
    fn a_key_goes_as_a_whole_however_it_is_written() {
        for head in HEADS {
            let (begin, end) = (format!("-----BEGIN {head}-----"), format!("-----END {head}-----"));
            let all = [vec![begin.clone()], body(), vec![end.clone()]].concat();
            let text = |lines: &[String]| format!("before\n{}\n. after.", lines.join("\n"));
            is_hidden(&text(&all));
            is_hidden(&text(&all[..8]));
            is_hidden(&text(&all[4..]));
            is_hidden(&format!("before {} . after.", all.join("\\n")));
            is_hidden(&format!("before {} . after.", all.join("\\r\\n")));
            for mark in ["→", "\t", ": ", "| "] {
                let number = |(n, line): (usize, &String)| format!("{:>6}{mark}{line}", n + 1);
                let numbered: Vec<String> = all.iter().enumerate().map(number).collect();
                is_hidden(&text(&numbered));
                is_hidden(&text(&numbered[..6]));
                is_hidden(&text(&numbered[5..]));
            }
            let quoted = |mark: &str| all.iter().map(|line| format!("{mark}{line}")).collect();
            let quotations: [Vec<String>; 3] = ["> ", "+", "    "].map(quoted);
            quotations.iter().for_each(|lines| is_hidden(&text(lines)));
            let headers =
                ["Proc-Type: 4,ENCRYPTED".to_owned(), "DEK-Info: AES-128-CBC,00".to_owned()];
            is_hidden(&text(&[&all[..1], &headers, &all[1..]].concat()));
        }
    }

    #[test]
    fn other_secrets_of_several_lines_go_as_a_whole() {
        let lines = body().join("\n");
        is_hidden(&format!("before\nPrivate-Lines: 12\n{lines}\n. after."));
        let data: String = body().iter().map(|it| format!("  a: {it}\n")).collect();
        is_hidden(&format!("before\nkind: Secret\nmetadata:\n  name: x\ndata:\n{data}after."));
        let key: String = body().iter().map(|it| format!("    {it}\n")).collect();
        let key = format!("    -----BEGIN PRIVATE KEY-----\n{key}    -----END PRIVATE KEY-----\n");
        is_hidden(&format!("before\nkind: Secret\nstringData:\n  key: |\n{key}{data}after."));
    }

    /// Wherever a key occurs (in a result, an error, an argument, a command or a text), a recipe
    /// leaves either the whole key or nothing of it.
    #[test]
    fn every_recipe_leaves_the_whole_key_or_nothing_of_it() {
        let key = |head: &str| {
            let body = body().join("\n");
            format!("-----BEGIN {head}-----\n{body}\n-----END {head}-----")
        };
        let words = "error: it failed again and must be mended\n".repeat(90);
        for head in HEADS {
            let long = format!("{words}{}\n{words}", key(head));
            for text in [key(head), long.clone(), long.replace('\n', "\n     7→")] {
                let fields = [(FieldRole::Content, &*text)];
                let sample = Sample::new().user(&text).reply(&text).thinking(&text).reply("Yes.");
                let sample = sample.call(ToolKind::Shell, "cat id").output(&text);
                let sample = sample.call(ToolKind::Shell, &text).error(&text);
                let sample = sample.call(ToolKind::Read, "id").output(&text);
                let sample = sample.call_with(ToolKind::Write, "id", &fields).output("ok");
                let more = |sample: Sample, n: usize| {
                    let sample = sample.user("Go on.").call(ToolKind::Read, &format!("{n}.rs"));
                    sample.output("fn main() {}\n").reply("Done.")
                };
                let sample = (0..20).fold(sample, more);
                for left in all_left(&sample) {
                    let lines = body().iter().filter(|line| left.contains(&line[..20])).count();
                    let is_whole = left.contains(&format!("-----BEGIN {head}-----"))
                        && left.contains(&format!("-----END {head}-----"));
                    assert!(lines == 0 || is_whole && lines == 12, "{lines} lines in\n{left}");
                }
            }
        }
    }

    /// All texts that the built-in recipes and a digest leave of a session.
    fn all_left(sample: &Sample) -> Vec<String> {
        let (transcript, source) = (sample.transcript(), sample.source());
        let mut left = Vec::new();
        for (name, _) in BUILT_IN {
            let mut recipe = built_in(name).expect("a built-in recipe");
            (recipe.trigger, recipe.target) = Default::default();
            for kind in [ContextKind::Stored, ContextKind::Live] {
                let options = Options {
                    kind,
                    counter: &Quarters,
                    thinking_is_bound: |_| false,
                    counted: &[],
                };
                let plan = plan_edits(transcript, source, &recipe, &options);
                left.extend(plan.edits().into_iter().filter_map(|edit| match edit.verb {
                    Verb::Replace(text) => Some(text),
                    _ => None,
                }));
            }
        }
        let view = View::new(transcript, source, &Quarters);
        let (old, kept) = transcript.context.split_at(transcript.context.len() - 2);
        let old = ReplacedHistory { items: old, originals: old, all_originals: old, kept };
        for budget in [600, 2_000, 8_000, 40_000] {
            let digest = DigestRule::default().digest(&view, &old, Tokens(budget), Tokens(0));
            let text = digest.expect("it fits").expect("a digest").text;
            // Check each part alone: a digest may contain a whole user message with the key.
            left.extend(text.split("\n#").map(str::to_owned));
        }
        left
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "",
            "the private key is in the vault",
            "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAq3v8Lk\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(without_key_blocks(text), text);
        }
        let named = "grep for -----BEGIN RSA PRIVATE KEY----- in all of the files";
        assert_eq!(without_key_blocks(named), "grep for [private key] in all of the files");
    }
}
