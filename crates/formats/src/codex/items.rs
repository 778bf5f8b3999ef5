//! Converts items of the Responses API, in which Codex stores what it sends, into entries.

use std::ops::Range;

use epitome_model::{Block, Call, Entry, Image, Output, Part, Role, Span, Thinking};

use super::{raw, tools};
use crate::place::RecordBytes;

/// Beginnings of texts that Codex wrote in the user's role.
const NOT_USER: [&str; 14] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<collaboration_mode>",
    "<model_switch>",
    "<permissions instructions>",
    "<goal_context>",
    "<recommended_plugins>",
    "<hook_prompt>",
    "Warning: apply_patch was requested via ",
];

/// The text with which summaries of Codex begin.
pub const SUMMARY: &str =
    "Another language model started to solve this problem and produced a summary of its thinking";

/// Whether the kind of an item is unknown.
pub fn is_unknown(at: &RecordBytes<'_>, item: &raw::Item) -> bool {
    const KNOWN: [&[u8]; 21] = [
        b"\"message\"",
        b"\"agent_message\"",
        b"\"reasoning\"",
        b"\"function_call\"",
        b"\"function_call_output\"",
        b"\"custom_tool_call\"",
        b"\"custom_tool_call_output\"",
        b"\"local_shell_call\"",
        b"\"tool_search_call\"",
        b"\"tool_search_output\"",
        b"\"web_search_call\"",
        b"\"image_generation_call\"",
        b"\"additional_tools\"",
        b"\"compaction\"",
        b"\"compaction_summary\"",
        b"\"compaction_trigger\"",
        b"\"context_compaction\"",
        b"\"ghost_snapshot\"",
        b"\"mcp_call\"",
        b"\"mcp_list_tools\"",
        b"\"other\"",
    ];
    at.literal(&item.kind).is_none_or(|kind| !KNOWN.contains(&kind))
}

/// Whether an item is one that Codex sends before the conversation: a message with the role
/// `developer`, a list of additional tools, or a message in the user's role in which Codex states,
/// for example, the environment or the project's instructions.
pub fn is_prompt(at: &RecordBytes<'_>, item: &raw::Item) -> bool {
    const PROMPT: [&str; 5] = [
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions for ",
        "<permissions instructions>",
        "<collaboration_mode>",
    ];
    if at.literal(&item.kind) != Some(b"\"message\"") {
        return at.literal(&item.kind) == Some(b"\"additional_tools\"");
    }
    match at.literal(&item.role) {
        Some(b"\"developer\"") => true,
        Some(b"\"user\"") if !is_of_user(at, item) => {
            let mut texts = item.parts().filter_map(|part| part.text.as_ref());
            texts.any(|text| PROMPT.iter().any(|start| at.text(text).starts_with(start)))
        }
        Some(_) | None => false,
    }
}

/// Converts an item into an entry. The caller sets the entry's position in the file and in the
/// conversation.
pub fn entry(at: &RecordBytes<'_>, item: &raw::Item) -> Entry {
    let kind = at.literal(&item.kind);
    let whole = at.span(&item.whole);
    let (role, blocks) = match kind {
        Some(b"\"message\"") => return message(at, item),
        Some(b"\"agent_message\"") => (Role::System, content(at, item)),
        Some(b"\"reasoning\"") => {
            let text = item.summary.items.iter().find_map(|part| part.text.as_ref());
            let text = text.map(|text| at.source(text));
            let thinking = Thinking { text, whole, removable: false };
            (Role::Assistant, vec![Block::Thinking(thinking)])
        }
        Some(
            b"\"function_call\""
            | b"\"custom_tool_call\""
            | b"\"local_shell_call\""
            | b"\"tool_search_call\"",
        ) => {
            let block = call(at, item).map_or(Block::Opaque(whole), Block::Call);
            (Role::Assistant, vec![block])
        }
        Some(
            b"\"function_call_output\""
            | b"\"custom_tool_call_output\""
            | b"\"tool_search_output\"",
        ) => {
            let block = output(at, item).map_or(Block::Opaque(whole), Block::Output);
            (Role::Tool, vec![block])
        }
        Some(b"\"web_search_call\"" | b"\"image_generation_call\"" | b"\"mcp_call\"") => {
            (Role::Assistant, vec![Block::Opaque(whole)])
        }
        // Codex never sends items of these kinds.
        Some(b"\"other\"" | b"\"ghost_snapshot\"") => (Role::Assistant, Vec::new()),
        Some(_) | None => (Role::System, vec![Block::Opaque(whole)]),
    };
    Entry { role, blocks, ..Entry::default() }
}

fn message(at: &RecordBytes<'_>, item: &raw::Item) -> Entry {
    let role = match at.literal(&item.role) {
        Some(b"\"assistant\"") => Role::Assistant,
        Some(b"\"user\"") if is_of_user(at, item) => Role::User,
        Some(_) | None => Role::System,
    };
    let mut blocks = content(at, item);
    let named =
        item.passthrough.part_kinds.iter().any(|kind| &*at.text(kind) == "compaction.summary");
    if role == Role::System
        && let [Block::Text(text)] = &blocks[..]
        && (named || text.span().is_some_and(|span| at.text_at(span).starts_with(SUMMARY)))
    {
        blocks = vec![Block::Summary(text.clone())];
    }
    Entry { role, blocks, ..Entry::default() }
}

/// Whether the user wrote at least one part of a message with the role `user`; Codex puts texts of
/// its own into such messages too. Newer versions of Codex record the kind of each part. In older
/// versions, a text is Codex's if it begins with one of [`NOT_USER`] or with [`SUMMARY`]. A message
/// without text is assumed to be the user's.
fn is_of_user(at: &RecordBytes<'_>, item: &raw::Item) -> bool {
    if !item.passthrough.part_kinds.is_empty() {
        return item.passthrough.part_kinds.iter().any(|kind| at.text(kind).starts_with("user."));
    }
    let mut texts = item.parts().filter_map(|part| part.text.as_ref()).peekable();
    texts.peek().is_none() || texts.any(|text| !is_of_codex(&at.text(text)))
}

fn is_of_codex(text: &str) -> bool {
    text.starts_with(SUMMARY) || NOT_USER.iter().any(|start| text.starts_with(start))
}

fn content(at: &RecordBytes<'_>, item: &raw::Item) -> Vec<Block> {
    item.parts().map(|raw| Block::from(part(at, raw))).collect()
}

fn part(at: &RecordBytes<'_>, raw: &raw::Part) -> Part {
    let kind = at.literal(&raw.kind);
    let opaque = Part::Opaque(at.span(&raw.whole));
    match (kind, &raw.text, &raw.image) {
        (Some(b"\"input_text\"" | b"\"output_text\"" | b"\"text\""), Some(text), _) => {
            Part::Text(at.source(text))
        }
        (Some(b"\"input_image\""), _, Some(url)) => image(at, raw, url).map_or(opaque, Part::Image),
        _ => opaque,
    }
}

/// The picture in a `data:` URL with base64, such as `data:image/png;base64,…`. `None` for any
/// other URL, because the picture is not in the session then.
fn image(at: &RecordBytes<'_>, raw: &raw::Part, url: &Range<usize>) -> Option<Image> {
    const MARK: &[u8] = b";base64,";
    let literal = &at.line[url.clone()];
    let rest = literal.strip_prefix(b"\"data:")?;
    let mark = memchr::memmem::find(rest, MARK)?;
    let media = String::from_utf8_lossy(&rest[..mark]).into_owned().into_boxed_str();
    let data = url.start + (literal.len() - rest.len()) + mark + MARK.len()..url.end - 1;
    Some(Image { media, data: at.span(&data), whole: at.span(&raw.whole) })
}

fn call(at: &RecordBytes<'_>, item: &raw::Item) -> Option<Call> {
    let id = at.text(item.call.as_ref()?);
    let name = match &item.name {
        Some(name) => at.text(name),
        None if item.action.is_some() => "local_shell".into(),
        None => "tool_search".into(),
    };
    let place = item.input.as_ref().or(item.arguments.as_ref()).or(item.action.as_ref())?;
    let classified = match &item.input {
        Some(input) => tools::custom(&name, at, input),
        None => tools::classify(&name, at, place),
    };
    Some(classified.into_call(id, name, at.span(place)))
}

fn output(at: &RecordBytes<'_>, item: &raw::Item) -> Option<Output> {
    let call = at.text(item.call.as_ref()?);
    let mut parts: Vec<Part> = item.parts().map(|raw| part(at, raw)).collect();
    let whole = match (&item.output.whole, &item.tools) {
        (Some(place), _) => {
            let whole = at.span(place);
            match at.line[place.start] {
                b'"' => parts.push(Part::Text(at.source(place))),
                b'[' => {}
                _ => parts.push(Part::Opaque(whole)),
            }
            whole
        }
        // The definitions of tools that a tool search found: without them, a later call of such a
        // tool is refused.
        (None, Some(tools)) => {
            parts.push(Part::Opaque(at.span(tools)));
            at.span(tools)
        }
        (None, None) => Span::default(),
    };
    Some(Output { call, parts, whole, ..Output::default() })
}
