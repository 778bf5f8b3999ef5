//! The context that a session sends, as readable text.

use std::fmt::Write as _;

use epitome_model::{Block, Entry, Output, Part, Role, Source, Transcript, decode};

/// Returns the context as text, and the number of its entries that have content.
pub fn render(transcript: &Transcript, source: &dyn Source) -> (String, usize) {
    let mut text = String::new();
    let head = &transcript.head;
    if let Some(title) = &head.title {
        let _ = writeln!(text, "# {}\n", title.replace('\n', " "));
    }
    let facts = [("session", &head.id), ("folder", &head.cwd), ("version", &head.version)];
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    let mut shown = 0;
    for (_, entry) in transcript.context() {
        shown += usize::from(!entry.blocks.is_empty());
        for block in &entry.blocks {
            add_block(&mut text, entry, block, source);
        }
    }
    (text, shown)
}

fn add_block(text: &mut String, entry: &Entry, block: &Block, source: &dyn Source) {
    let who = match entry.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::System => "agent",
    };
    match block {
        Block::Text(words) => part(text, who, &words.read(source)),
        Block::Summary(words) => part(text, "summary", &words.read(source)),
        Block::Thinking(thinking) => {
            let words = thinking.text.as_ref().map(|words| words.read(source));
            part(text, "reasoning", words.as_deref().unwrap_or("(sealed)"));
        }
        // Arguments that are stored as a JSON string are decoded.
        Block::Call(call) => {
            part(text, &format!("call {}", call.name), &decode(&source.at(call.arguments)));
        }
        Block::Output(output) => {
            let name = if output.error { "result, failed" } else { "result" };
            part(text, name, &result(output, source));
        }
        Block::Image(image) => part(text, who, &format!("({})", image.media)),
        Block::Opaque(span) => {
            part(text, who, &String::from_utf8_lossy(&source.at(*span)));
        }
        _ => part(text, who, "(something that this version does not show)"),
    }
}

fn part(text: &mut String, who: &str, words: &str) {
    let _ = writeln!(text, "\n## {who}\n\n{}", words.trim_end());
}

fn result(output: &Output, source: &dyn Source) -> String {
    let parts = output.parts.iter().map(|part| match part {
        Part::Text(words) => words.read(source).into_owned(),
        Part::Image(image) => format!("({})", image.media),
        Part::Opaque(span) => String::from_utf8_lossy(&source.at(*span)).into_owned(),
    });
    parts.collect::<Vec<_>>().join("\n")
}
