//! The command line with which an agent resumes a session.

use crate::AGENTS;

/// The command line with which `agent` resumes the session `id` in the folder `cwd` (`None`: in the
/// current folder), quoted for a shell. `None` if the agent's command is unknown.
///
/// ```
/// use epitome_agents::resume_line;
///
/// let line = resume_line("claude", "0f3c9a52", Some("/srv/my app"));
/// assert_eq!(line.as_deref(), Some("cd '/srv/my app' && claude --resume 0f3c9a52"));
/// assert_eq!(resume_line("sweagent", "0f3c9a52", None), None);
/// ```
pub fn resume_line(agent: &str, id: &str, cwd: Option<&str>) -> Option<String> {
    let agent = AGENTS.iter().find(|it| it.name() == agent)?;
    let command = agent.resume_command()?;
    let words: Vec<String> = command.iter().copied().chain([id]).map(shell_word).collect();
    let command = words.join(" ");
    Some(match cwd {
        Some(cwd) => format!("cd {} && {command}", shell_word(cwd)),
        None => command,
    })
}

/// A word, quoted for a shell if it contains characters that a shell may interpret.
///
/// ```
/// use epitome_agents::shell_word;
///
/// assert_eq!(shell_word("/home/dev/project"), "/home/dev/project");
/// assert_eq!(shell_word("it's"), r"'it'\''s'");
/// ```
pub fn shell_word(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "-_./~+:@%=,".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_shells_read_them() {
        assert_eq!(shell_word("~/a/b-c_d.e"), "~/a/b-c_d.e");
        assert_eq!(shell_word("/a b"), "'/a b'");
        assert_eq!(shell_word("$(x)"), "'$(x)'");
        assert_eq!(shell_word(""), "''");
    }
}
