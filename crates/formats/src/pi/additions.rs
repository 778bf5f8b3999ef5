//! What epitome can add to pi's settings.

use crate::addition::{Addition, AdditionForm};
use crate::command::{Prompt, SessionSource};

/// A prompt template for all projects of the user (`docs/prompt-templates.md` of pi's package).
pub const COMMAND: Addition = Addition {
    file: "prompts/epitome.md",
    form: AdditionForm::File { typed: "/epitome", text: |words| PROMPT.markdown("", words) },
};

const PROMPT: Prompt = Prompt {
    agent: "pi",
    name: "pi",
    session: SessionSource::Variable("PI_SESSION_ID"),
    resume: "pi --session",
};
