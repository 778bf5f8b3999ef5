//! The command `/epitome` of agents: a prompt. It tells the model to show what compacting its own
//! session would free and lose, and to name the command that compacts the session.
//!
//! The model compacts nothing: the session that it works in is running. The agent would continue
//! with the messages that it has in memory, and append to a file that was replaced in the meantime.

use crate::addition::toml_string;
use crate::hook::command;

/// The description of the command in an agent's menu.
const DESCRIPTION: &str = "Show what compacting this session would free and lose";

/// What the prompt says about one agent.
pub(crate) struct Prompt {
    /// epitome's name for the agent: `claude`.
    pub agent: &'static str,
    /// The name of the agent in texts: `Claude Code`.
    pub name: &'static str,
    /// How the model finds out the id of its session.
    pub session: SessionSource,
    /// The command that resumes a session in its folder, without the id.
    pub resume: &'static str,
}

/// How a model finds out the id of its session.
pub(crate) enum SessionSource {
    /// The agent replaces this text in the prompt with the id.
    Placeholder(&'static str),
    /// The agent sets this variable to the id for commands that the model runs.
    Variable(&'static str),
    /// The model looks up the newest session of its folder.
    Newest,
}

impl Prompt {
    /// The text of the prompt; `words` are the program epitome and its first arguments.
    pub fn text(&self, words: &[&str]) -> String {
        let Prompt { agent, name, resume, .. } = self;
        let epitome = command(words);
        let first = match self.session {
            SessionSource::Placeholder(id) => format!("The id of this session is `{id}`."),
            SessionSource::Variable(variable) => {
                format!("Print the variable `{variable}`: it is the id of this session.")
            }
            SessionSource::Newest => format!(
                "Run `{epitome} list --agent {agent} --project . --sort time --limit 1 --json`. \
                 Its `id` is that of this session, if the `title` is that of this conversation; \
                 if not, stop and say so."
            ),
        };
        format!(
            "Show me what compacting this session would free and lose. It is running: change \
             nothing.\n\n\
             1. {first}\n\
             2. Run `{epitome} compact ID --agent {agent} --losses` with this id. It prints the \
             plan, and writes nothing.\n\
             3. Tell me in three lines: how many tokens of messages would be freed; what would \
             leave the context; what of it the rest of our work may need.\n\
             4. Then show me this command, with the id. Do not run it: it is for me, in this \
             folder, after I have left {name}. `{epitome} restore ID` takes it back.\n\n    \
             {epitome} compact ID --agent {agent} && {resume} ID\n"
        )
    }

    /// The prompt as a Markdown file; `head` are the lines of the front matter before the
    /// description.
    pub fn markdown(&self, head: &str, words: &[&str]) -> String {
        format!("---\n{head}description: {DESCRIPTION}\n---\n\n{}", self.text(words))
    }

    /// The prompt as a TOML file.
    pub fn toml(&self, words: &[&str]) -> String {
        let text = self.text(words).replace('\\', "\\\\").replace('"', "\\\"");
        let description = toml_string(DESCRIPTION);
        format!("description = {description}\nprompt = \"\"\"\n{text}\"\"\"\n")
    }
}

#[cfg(test)]
mod tests {
    use crate::AdditionForm;
    use crate::{claude, codex, gemini, opencode, pi, qwen};

    const COMMANDS: [&crate::Addition; 6] = [
        &claude::COMMAND,
        &codex::COMMAND,
        &gemini::COMMAND,
        &opencode::COMMAND,
        &pi::COMMAND,
        &qwen::COMMAND,
    ];

    #[test]
    fn each_agent_has_a_prompt_of_its_own() {
        let mut written = String::new();
        for addition in COMMANDS {
            let AdditionForm::File { typed, text } = addition.form else { panic!("a file") };
            let text = text(&["/opt/it's/epitome", "--home", "/h"]);
            assert!(text.split_whitespace().count() <= 200, "{text}");
            written.push_str(&format!("== {} ({typed})\n{text}", addition.file));
        }
        insta::assert_snapshot!(written);
    }
}
