//! The kinds of records and blocks that present and past versions of Claude Code write.

use super::raw;
use crate::place::RecordBytes;
use crate::records::TranscriptBuilder;

/// Types of records. Models see only a few of them.
const RECORDS: &[&str] = &[
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "assistant",
    "atis-latch",
    "attachment",
    "attribution-snapshot",
    "content-replacement",
    "cost-state",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "speculation-accept",
    "summary",
    "system",
    "tag",
    "task-summary",
    "tools-used",
    "user",
    "worktree-state",
];

/// Types of blocks: those that the documentation of Anthropic's Messages API lists, and
/// `tool_reference`.
const BLOCKS: &[&str] = &[
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "container_upload",
    "document",
    "image",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "search_result",
    "server_tool_use",
    "text",
    "text_editor_code_execution_tool_result",
    "thinking",
    "tool_reference",
    "tool_result",
    "tool_search_tool_result",
    "tool_use",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

/// Reports the kinds of a record and of its blocks that the lists in this file do not have: a newer
/// Claude Code may have written them.
pub fn report(session: &mut TranscriptBuilder<'_>, at: &RecordBytes<'_>, raw: &raw::Record) {
    let kind = at.maybe(raw.kind.as_ref()).unwrap_or_default();
    session.unknown("a record of a kind", &kind, RECORDS);
    if !matches!(&*kind, "user" | "assistant") {
        return;
    }
    for block in raw.message.iter().flat_map(|message| &message.content.items) {
        for block in std::iter::once(block).chain(&block.content.items) {
            let kind = at.maybe(block.kind.as_ref()).unwrap_or_default();
            session.unknown("a block of a kind", &kind, BLOCKS);
        }
    }
}
