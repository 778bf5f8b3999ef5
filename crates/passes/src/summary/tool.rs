//! The tool with which a model requests a compaction, independent of the API format.

/// The texts of a tool definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolText {
    /// The name of the tool.
    pub name: &'static str,
    /// What the tool does, and when to call it.
    pub about: &'static str,
    /// The name of the tool's only argument, an optional text.
    pub argument: &'static str,
    /// The description of the argument.
    pub argument_about: &'static str,
}

/// The tool with which a model requests a compaction.
pub fn compact_tool() -> ToolText {
    ToolText {
        name: "compact",
        about: include_str!("../prompts/tool.md").trim_ascii(),
        argument: "focus",
        argument_about: "What a summary should look at above all: what you will need next.",
    }
}
