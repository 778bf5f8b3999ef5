//! Corpus cases: each folder `testing/fixtures/cases/<format>/<case>` contains a `session` and, as
//! a snapshot, what its reader finds in it. A new folder is a new test.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use epitome_formats::{FORMATS, find_format};
use epitome_model::{
    Block, Entry, Fault, HiddenRecord, Item, Part, Source, Text, Transcript, short,
};

#[test]
fn every_case_is_understood_as_it_is_written_down() {
    let cases = fixtures::cases();
    assert!(!cases.is_empty(), "the cases are part of the repository");
    for case in cases {
        let bytes = fs::read(&case.session).expect("a session");
        let format = find_format(&case.format).expect("the folder is named for a format");
        let known = FORMATS.iter().filter(|it| (it.sniff)(&bytes)).map(|it| it.name);
        let known: Vec<&str> = known.filter(|name| !is_asked_later(format.name, name)).collect();
        assert_eq!(known, [format.name], "{}: one format knows it, and no other", case.name);
        let mut faults = Vec::new();
        let transcript = (format.read)(&bytes, &mut faults);
        let mut shown = listing(&transcript, &bytes, &faults);
        for violation in format.invariants.check(&transcript, &bytes) {
            writeln!(shown, "violation: {violation}").expect("a string");
        }
        insta::with_settings!({
            snapshot_path => folder(&case.session),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!("read", shown) });
    }
}

#[test]
fn every_format_has_a_page_and_a_session() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let missing = |paths: &[String]| !paths.iter().any(|path| root.join(path).exists());
    for format in FORMATS {
        let name = format.name;
        assert!(!missing(&[format!("docs/formats/{name}.md")]), "{name} has no page");
        let folders = ["cases", "sessions"].map(|it| format!("testing/fixtures/{it}/{name}"));
        assert!(!missing(&folders), "{name} has no corpus case and no recorded session");
    }
}

/// Whether `other` recognises sessions of `format` as well, but comes after it in `FORMATS`.
fn is_asked_later(format: &str, other: &str) -> bool {
    matches!((format, other), ("pi" | "qwen", "claude") | ("amp", "anthropic"))
}

fn folder(session: &Path) -> PathBuf {
    session.parent().expect("a case is a folder").to_owned()
}

/// One line per item: whether a resume sends it, its line, and its content.
fn listing(transcript: &Transcript, source: &dyn Source, faults: &[Fault]) -> String {
    let mut shown = String::new();
    for (idx, item) in transcript.items.iter().enumerate() {
        let sent = if transcript.context.contains(&idx) { '+' } else { '-' };
        let words = match item {
            Item::Entry(entry) => describe(entry, source),
            Item::Hidden(HiddenRecord { .. }) => "kept".to_owned(),
        };
        let hidden_fields: Vec<&str> =
            item.hidden_fields().iter().map(|field| field.name).collect();
        let hidden_fields =
            if hidden_fields.is_empty() { String::new() } else { format!(" {hidden_fields:?}") };
        writeln!(shown, "{sent} {} {words}{hidden_fields}", item.record().line).expect("a string");
    }
    if !transcript.context.is_sorted() {
        writeln!(shown, "sent in the order {:?}", transcript.context).expect("a string");
    }
    for fault in faults {
        writeln!(shown, "fault: line {}: {}", fault.line, fault.what).expect("a string");
    }
    shown
}

fn describe(entry: &Entry, source: &dyn Source) -> String {
    let blocks: Vec<String> = entry.blocks.iter().map(|block| words(block, source)).collect();
    format!("{:?}: {}", entry.role, blocks.join(" | "))
}

fn words(block: &Block, source: &dyn Source) -> String {
    let text = |text: &Text| short(&text.read(source), 50);
    match block {
        Block::Text(words) => text(words),
        Block::Summary(words) => format!("summary: {}", text(words)),
        Block::Thinking(thinking) => {
            format!("thinking: {}", thinking.text.as_ref().map(text).unwrap_or_default())
        }
        Block::Call(call) => {
            let fields: Vec<&str> = call.fields.iter().map(|field| &*field.name).collect();
            let target = call.target.as_ref().map(text).unwrap_or_default();
            format!("call {} {} {:?} {target} {fields:?}", call.id, call.name, call.kind)
        }
        Block::Output(output) => {
            let parts = output.parts.iter().map(|part| match part {
                Part::Text(words) => text(words),
                Part::Image(image) => image.media.to_string(),
                Part::Opaque(_) => "opaque".to_owned(),
            });
            let parts: Vec<String> = parts.collect();
            let error = if output.error { " error" } else { "" };
            format!("output {}{error}: {}", output.call, parts.join(" | "))
        }
        Block::Image(image) => image.media.to_string(),
        Block::Opaque(_) => "opaque".to_owned(),
        _ => "unknown".to_owned(),
    }
}
