//! The sizes of a session before and after a compaction, in the order in which they are displayed.

use std::fmt::Display;

use epitome_model::{Bytes, Tokens, percent_change, plural};

use super::change::Change;
use super::report::{CompactReport, CompactedFile};

/// One size before and after a compaction, as numbers and as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeRow {
    /// The name of the measured size: `messages`, `request`, `disk`, or `net`.
    pub name: &'static str,
    /// The unit of the numbers, or a note about them, as it is displayed; may be empty.
    pub unit: String,
    /// The sizes as text: `273.7 KB`, or `90.4k` for tokens.
    pub words: Change<String>,
    /// The sizes as numbers.
    pub size: Change<u64>,
}

impl SizeRow {
    /// The size of files on disk.
    pub fn disk(bytes: Change<Bytes>) -> SizeRow {
        SizeRow::of_bytes("disk", bytes, String::new())
    }

    /// The change in per cent: `-77.7%`.
    pub fn percent(&self) -> String {
        percent_change(self.size.before, self.size.after)
    }

    fn of_tokens(name: &'static str, tokens: Change<Tokens>, unit: String) -> SizeRow {
        let size = Change { before: tokens.before.0, after: tokens.after.0 };
        SizeRow { name, unit, words: words(tokens), size }
    }

    fn of_bytes(name: &'static str, bytes: Change<Bytes>, unit: String) -> SizeRow {
        let size = Change { before: bytes.before.0, after: bytes.after.0 };
        SizeRow { name, unit, words: words(bytes), size }
    }
}

impl CompactedFile {
    /// The sizes of this file: its messages as a resume sends them, the request as the provider
    /// bills it (if that is known), the file on disk, and the file with its pack in the archive (if
    /// it has one). `counter` is the name of the token counter.
    pub fn sizes(&self, counter: &str) -> Vec<SizeRow> {
        let unit = format!("tokens ({counter})");
        let mut rows = vec![SizeRow::of_tokens("messages", self.context_tokens, unit)];
        if let (Some(request), Some(billed)) = (self.request_tokens, &self.billed) {
            let unit = format!("as billed ({billed})");
            rows.push(SizeRow::of_tokens("request", request, unit));
        }
        rows.push(SizeRow::disk(self.disk_bytes));
        if self.archive_bytes > Bytes(0) {
            let unit = format!("with {} in the archive", self.archive_bytes);
            rows.push(SizeRow::of_bytes("net", self.net_bytes(), unit));
        }
        rows
    }
}

impl CompactReport {
    /// A text about the files that belong to the session: `with 2 sub-agents`, or `with its log` if
    /// none of them is a conversation. `None` if there are no such files.
    pub fn sub_agents_text(&self) -> Option<String> {
        let agents = self.files.iter().filter(|it| it.is_conversation).count() as u64;
        match (self.files.len(), agents) {
            (0, _) => None,
            (_, 0) => Some("with its log".to_owned()),
            (_, agents) => Some(format!("with {}", plural(agents, "sub-agent"))),
        }
    }

    /// The sizes of the session and the files that belong to it, in sum. Empty if no files belong
    /// to the session.
    pub fn sizes_with_parts(&self) -> Vec<SizeRow> {
        let Some(parts) = self.sub_agents_text() else { return Vec::new() };
        let disk = self.disk_bytes();
        let net = self.net_bytes();
        let tokens = SizeRow::of_tokens("messages", self.tokens(), format!("tokens, {parts}"));
        let mut rows = vec![tokens, SizeRow::of_bytes("disk", disk, parts.clone())];
        if net != disk {
            rows.push(SizeRow::of_bytes("net", net, format!("{parts}, and the archive")));
        }
        rows
    }
}

fn words<T: Display>(Change { before, after }: Change<T>) -> Change<String> {
    Change { before: before.to_string(), after: after.to_string() }
}
