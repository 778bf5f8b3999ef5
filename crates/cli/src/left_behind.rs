//! Describes the content that a conversion left out.

use epitome_api::LeftBehind;

use crate::text::count;

/// Describes what a conversion left out: `n` parts of one kind.
pub fn message(what: LeftBehind, n: u64) -> String {
    match what {
        LeftBehind::Reasoning => {
            format!("{} of reasoning, signed for another API", count(n, "block"))
        }
        LeftBehind::OpenCalls => format!("{} without a result", count(n, "call")),
        LeftBehind::OrphanResults => format!("{} without a call", count(n, "result")),
        LeftBehind::Pictures => format!("{} of an unsupported kind", count(n, "picture")),
        LeftBehind::Tools => "the definitions of tools".to_owned(),
        LeftBehind::Prompts => {
            format!("{} of the agent itself", count(n, "prompt or reminder"))
        }
        LeftBehind::Sealed => {
            format!(
                "{} of history that only the service can open that sealed it",
                count(n, "piece")
            )
        }
        LeftBehind::Failures => {
            format!("the failure of {}; the output of the tools is kept", count(n, "call"))
        }
        LeftBehind::SubAgents => format!("{} of sub-agents", count(n, "session")),
        LeftBehind::Opaque => format!("{} that epitome does not understand", count(n, "thing")),
    }
}
