//! What epitome can add to Qwen Code's settings.

use crate::addition::{Addition, AdditionForm};
use crate::command::{Prompt, SessionSource};

/// A command for all projects of the user. Only the user can call it: the model does not learn of
/// the command.
pub const COMMAND: Addition = Addition {
    file: "commands/epitome.md",
    form: AdditionForm::File {
        typed: "/epitome",
        text: |words| PROMPT.markdown("disable-model-invocation: true\n", words),
    },
};

const PROMPT: Prompt = Prompt {
    agent: "qwen",
    name: "Qwen Code",
    session: SessionSource::Variable("QWEN_CODE_SESSION_ID"),
    resume: "qwen --resume",
};
