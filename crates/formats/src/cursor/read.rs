//! Which of Cursor's shapes a source has.

use epitome_model::{Source, Transcript};

use super::{chat, composer, text, transcript};
use crate::Faults;

/// Bytes that are enough to tell the shape.
const HEAD: u64 = 64 << 10;

/// What a source is.
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

/// Rows as lines, or a transcript.
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
