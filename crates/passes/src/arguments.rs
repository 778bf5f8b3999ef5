//! Shortens long arguments of old calls, field by field.
//!
//! Only texts change: the arguments stay valid JSON for the tool's schema, with the same keys. A
//! call without a result keeps its arguments.

use epitome_model::{
    At, Block, CLEARED, Edit, Field, FieldRole, Stub, first_words, line_count_stub,
};
use serde::{Deserialize, Serialize};

use crate::evidence::{self, ExcerptSize};
use crate::key_blocks::without_key_blocks;
use crate::view::on_all_cores;
use crate::{Pass, View};

/// Settings of the pass that shortens arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Arguments {
    /// Texts of at most this many bytes are not shortened.
    pub min_bytes: u64,
    /// Calls whose arguments have at most this many bytes in total are not shortened.
    pub min_call_bytes: u64,
    /// The roles of the fields that are shortened.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub roles: Vec<FieldRole>,
    /// What replaces a shortened field.
    pub style: DigestStyle,
    /// Number of lines that are kept of the beginning of a field.
    pub head: usize,
    /// Number of lines that are kept of the end of a field.
    pub tail: usize,
    /// Maximum number of definitions that are kept of the content of a written file.
    pub outline: usize,
    /// Maximum bytes of a kept line; longer lines are truncated. 0 means no maximum.
    pub width: usize,
    /// Maximum bytes that are kept of the beginning of a field. If it is above 0, `head`, `tail`,
    /// `outline` and `width` are ignored.
    pub beginning: usize,
    /// The tools whose arguments are shortened; all tools if empty.
    pub tools: Vec<String>,
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments {
            min_bytes: 0,
            min_call_bytes: 0,
            roles: vec![FieldRole::Content, FieldRole::Old, FieldRole::New, FieldRole::Patch],
            style: DigestStyle::Stub,
            head: 0,
            tail: 0,
            outline: 0,
            width: 0,
            beginning: 0,
            tools: Vec::new(),
        }
    }
}

/// What replaces the text of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DigestStyle {
    /// A stub, followed by the kept lines.
    Stub,
    /// A stub that contains only the archive reference of the text, followed by the kept lines.
    Named,
    /// The name of the field and its number of lines: `[content: 84 lines]`.
    Counted,
    /// A fixed text, which also replaces results in the style `placeholder`.
    Placeholder,
}

impl Pass for Arguments {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let mut wanted = Vec::new();
        for (item, entry) in view.entries_not_kept() {
            for (block, said) in entry.blocks.iter().enumerate() {
                let Block::Call(call) = said else { continue };
                let small = self.min_call_bytes > 0 && call.arguments.len() <= self.min_call_bytes;
                if small || !view.is_answered(call) || !self.takes(&call.name) {
                    continue;
                }
                for (field, argument) in call.fields.iter().enumerate() {
                    let at = At::Field { item, block, field };
                    if !view.is_edited(at) && self.is_bulky(argument) {
                        wanted.push((at, argument));
                    }
                }
            }
        }
        let edits = on_all_cores(wanted, |(at, argument)| {
            let is_left = view.is_recipe_text(&argument.text);
            (!is_left).then(|| self.digest(view, at, argument)).flatten()
        });
        edits.into_iter().flatten().collect()
    }
}

impl Arguments {
    fn takes(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|name| name.eq_ignore_ascii_case(tool))
    }

    fn is_bulky(&self, argument: &Field) -> bool {
        self.roles.contains(&argument.role)
            && argument.text.span().is_some_and(|span| span.len() > self.min_bytes)
    }

    fn digest(&self, view: &View<'_>, at: At, argument: &Field) -> Option<Edit> {
        let text = view.text(&argument.text);
        let left = match self.style {
            DigestStyle::Counted => line_count_stub(&argument.name, view.lines(&text)),
            DigestStyle::Placeholder => CLEARED.to_owned(),
            DigestStyle::Stub => {
                let stub = view.stub_of_text(&argument.text, &text);
                stub.with_body(self.body(&text, argument.role)).to_string()
            }
            DigestStyle::Named => {
                let stub = Stub::new(view.reference(&argument.text));
                stub.with_body(self.body(&text, argument.role)).to_string()
            }
        };
        view.replace_argument(at, &argument.text, left, self.name())
    }

    fn body(&self, text: &str, role: FieldRole) -> String {
        let Arguments { head, tail, width, beginning, .. } = *self;
        if beginning > 0 {
            return first_words(&without_key_blocks(text), beginning).to_owned();
        }
        let outline = if role == FieldRole::Content { self.outline } else { 0 };
        evidence::argument_excerpt(text, ExcerptSize { head, tail, outline, width, few: 0 })
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
