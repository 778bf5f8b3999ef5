//! `compact`: the engine's own tool. The engine handles its calls and gives their results.

use epitome_model::ToolKind;

use super::{Fold, Tool, described};
use crate::permissions::Access;

pub(super) const TOOL: Tool = Tool {
    name: "compact",
    kind: ToolKind::Compact,
    subject: |it| described(it, &["{focus}"]).or_else(|| Some(String::new())),
    fold: Fold::Beginning,
    description: "Makes the conversation smaller to free space. Call it between tasks, or before \
                  a large one; nothing is lost: recall returns results and what you said.",
    parameters: concat!(
        r#"{"type":"object","properties":{"focus":{"type":"string","description":"What the "#,
        r#"work is about from now on"}}}"#,
    ),
    access: |_, _| Ok(Access::Own),
    planned: None,
    run: |_, _, _, _| Err("the engine answers this call".to_owned()),
};
