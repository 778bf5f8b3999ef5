//! `recall`: returns text of the conversation, for example text that was shortened or left out. The
//! machine handles it, because it has the log.

use epitome_model::ToolKind;

use super::{Fold, Tool, described};
use crate::permissions::Access;

/// The name of the tool.
pub use epitome_engine::RECALL;

pub(super) const TOOL: Tool = Tool {
    name: RECALL,
    kind: ToolKind::Read,
    subject: |it| {
        described(it, &["{ref}", " for {search}"]).or_else(|| described(it, &["{search}"]))
    },
    fold: Fold::Beginning,
    description: "Returns in full what was shortened in this conversation or left out of it: \
                  results, and what you said. A `ref` is a reference like k495d399 in a note \
                  [epitome k495d399 …], a call like #12 (what you said with it, and its result), \
                  or a response of yours like @7. Without one, `search` looks through everything \
                  that was said.",
    parameters: concat!(
        r##"{"type":"object","properties":{"ref":{"type":"string","description":"k495d399, #12, "##,
        r##"#12-15 or @7"},"search":{"type":"string","description":"Only lines that hold this "##,
        r##"text; without a ref, those of everything that was said, in any case"},"##,
        r##""offset":{"type":"integer","description":"The first line, from 1"},"limit":{"##,
        r##""type":"integer","description":"How many lines, 400 by default"}}}"##,
    ),
    access: |_, _| Ok(Access::Own),
    planned: None,
    run: |_, _, _, _| Err("the machine answers this call".to_owned()),
};
