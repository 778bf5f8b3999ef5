//! The messages of a session, as the events with which they were shown.

use std::collections::HashSet;

use epitome_engine::Context;
use epitome_model::{Block, Entry, Role, Source};

use crate::machine::{Event, GO_ON};

/// Returns the messages of a context as they were before anything was shortened: texts of the user
/// and of the model, readable reasoning, calls and results. Everything else is left out, such as
/// the system prompt, images, and the requests to continue an answer that was cut off.
pub fn history(context: &Context) -> Vec<Event> {
    let outgoing = context.unchanged_view();
    let transcript = outgoing.transcript();
    let source = outgoing.source();
    let mut events = Vec::new();
    let mut seen_ids: HashSet<&str> = HashSet::new();
    for (item, entry) in transcript.entries() {
        // Of several entries with one id, the first is the original; the later ones are its
        // shortened forms.
        let is_first = entry.id.as_deref().is_none_or(|id| seen_ids.insert(id));
        if is_first && !transcript.head.prompt.contains(&item) {
            events.extend(entry.blocks.iter().filter_map(|block| event(block, entry, source)));
        }
    }
    events
}

fn event(block: &Block, entry: &Entry, source: &dyn Source) -> Option<Event> {
    match block {
        Block::Text(text) => {
            let text = text.read(source).into_owned();
            match entry.role {
                Role::User => (text != GO_ON).then_some(Event::User { text }),
                Role::Assistant => Some(Event::Text { text }),
                Role::Tool | Role::System => None,
            }
        }
        Block::Thinking(thinking) => {
            let text = thinking.text.as_ref()?.read(source).into_owned();
            Some(Event::Thinking { text })
        }
        Block::Call(call) => Some(Event::Call {
            id: call.id.to_string(),
            tool: call.name.to_string(),
            arguments: epitome_model::decode(&source.at(call.arguments)).into_owned(),
        }),
        Block::Output(output) => Some(Event::Result {
            id: output.call.to_string(),
            error: output.error,
            text: output.text(source),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use epitome_engine::{MessagePart, Setup};
    use epitome_passes::built_in;

    use super::*;

    #[test]
    fn a_history_is_what_was_said_even_if_less_is_sent() {
        let mut context = Context::in_memory(Setup::new(built_in("s06").unwrap()));
        context.user("Look.").unwrap();
        let long = "line\n".repeat(100);
        for id in ["c1", "c2", "c3", "c4", "c5"] {
            let call = MessagePart::call(id, "shell", r#"{"command":"ls"}"#);
            context.assistant(&[MessagePart::text("I look."), call]).unwrap();
            context.tool(&[MessagePart::output(id, &long)]).unwrap();
        }
        let before = history(&context);
        context.view().unwrap();
        assert!(!context.references().is_empty(), "old results are shortened");
        assert_eq!(history(&context), before);
        let expect = [
            Event::User { text: "Look.".to_owned() },
            Event::Text { text: "I look.".to_owned() },
            Event::Call {
                id: "c1".to_owned(),
                tool: "shell".to_owned(),
                arguments: r#"{"command":"ls"}"#.to_owned(),
            },
            Event::Result { id: "c1".to_owned(), error: false, text: long },
        ];
        assert_eq!(before[..4], expect);
        assert_eq!(before.len(), 1 + 5 * 3);
    }
}
