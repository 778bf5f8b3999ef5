//! Blocks of a request: where they are, and what they are in a few words.

use epitome_model::{At, Block, Part, Role, Span, Transcript};
use epitome_passes::View;

/// The range of a block's content in the body: of a call its arguments, of an image its data.
/// `None` if the block has no content in the body.
pub(crate) fn span_of(block: &Block) -> Option<Span> {
    let span = match block {
        Block::Text(text) | Block::Summary(text) => text.span()?,
        Block::Thinking(thinking) => thinking.whole,
        Block::Call(call) => call.arguments,
        Block::Output(output) => output.whole,
        Block::Repeated(again) => again.output.whole,
        Block::Image(image) => image.data,
        Block::Opaque(span) => *span,
        _ => return None,
    };
    (!span.is_empty()).then_some(span)
}

/// Describes a block in a few words, for example `result of Bash make`.
pub(crate) fn describe(view: &View<'_>, transcript: &Transcript, at: At, role: Role) -> String {
    let At::Block { item, block } = at else { return view.describe(at) };
    let entry = transcript.items[item].entry();
    match entry.and_then(|entry| entry.blocks.get(block)) {
        Some(Block::Text(_)) => match role {
            Role::Assistant => "text of the model".to_owned(),
            Role::User | Role::Tool => "text of the user".to_owned(),
            Role::System => "instructions".to_owned(),
        },
        Some(Block::Summary(_)) => "summary".to_owned(),
        Some(Block::Call(call)) => format!("call of {}", view.describe_call(Some(call))),
        Some(Block::Output(output)) => {
            let pictures = output.parts.iter().filter(|part| matches!(part, Part::Image(_)));
            let with = if pictures.count() > 0 { ", with a picture" } else { "" };
            format!("result of {}{with}", view.describe_call(view.call_of(output)))
        }
        Some(_) | None => view.describe(at),
    }
}
