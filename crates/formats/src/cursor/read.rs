//! Recognises which of Cursor's formats a source has, and reads it.

use epitome_model::{Faults, Source, Transcript};

use super::{chat, composer, text, transcript};

/// The number of bytes needed to recognise the format.
const HEAD: u64 = 64 << 10;

/// The format of a source.
enum Shape {
    /// Rows of `state.vscdb`.
    Composer,
    /// Rows of a `store.db`.
    Chat,
    /// A transcript of JSON lines.
    Transcript,
    /// A transcript as text.
    Text,
}

/// Whether the bytes begin a source in one of Cursor's formats: rows as lines, or a transcript.
pub fn sniff(head: &[u8]) -> bool {
    shape(head).is_some()
}

/// Reads a conversation.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    match shape(&source.read(0..HEAD)) {
        Some(Shape::Composer) => composer::read(source, faults),
        Some(Shape::Chat) => chat::read(source, faults),
        Some(Shape::Text) => text::read(source, faults),
        Some(Shape::Transcript) | None => transcript::read(source, faults),
    }
}

fn shape(head: &[u8]) -> Option<Shape> {
    if head.starts_with(b"{\"key\":\"composerData:") {
        Some(Shape::Composer)
    } else if head.starts_with(b"{\"meta\":\"0\",") {
        Some(Shape::Chat)
    } else if transcript::begins(head) {
        Some(Shape::Transcript)
    } else {
        text::begins(head).then_some(Shape::Text)
    }
}
