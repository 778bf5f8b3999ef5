//! `recall`: what was shortened. The machine answers it, as it holds the log.

use super::Tool;
use crate::permissions::Access;

/// Its name.
pub const RECALL: &str = "recall";

pub(super) const TOOL: Tool = Tool {
    name: RECALL,
    description: "Returns in full what was shortened in this conversation. References look like \
                  k495d399 in a note [epitome k495d399 …], calls in a digest like #12.",
    parameters: concat!(
        r##"{"type":"object","properties":{"ref":{"type":"string","description":"k495d399, or "##,
        r##"#12"},"search":{"type":"string","description":"Only lines that hold this text"},"##,
        r##""offset":{"type":"integer","description":"The first line, from 1"},"limit":{"##,
        r##""type":"integer","description":"How many lines, 400 by default"}},"##,
        r##""required":["ref"]}"##,
    ),
    access: |_, _| Ok(Access::Own),
    run: |_, _, _, _| Err("the machine answers this call".to_owned()),
};
