//! The tool with which a model asks for a compaction, in words; a wire spells it.

/// A tool in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolText {
    /// Its name.
    pub name: &'static str,
    /// What it does and when to call it.
    pub about: &'static str,
    /// The name of its only argument, a text that may be left out.
    pub argument: &'static str,
    /// What that is.
    pub argument_about: &'static str,
}

/// The tool with which a model asks for a compaction.
pub fn compact_tool() -> ToolText {
    ToolText {
        name: "compact",
        about: include_str!("../prompts/tool.md").trim_ascii(),
        argument: "focus",
        argument_about: "What a summary should look at above all: what you will need next.",
    }
}
