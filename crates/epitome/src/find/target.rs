//! Where an agent looks for a session that it did not write itself.

use std::path::{Path, PathBuf};

use jiff::Zoned;

use crate::config::{Config, Folders};
use crate::error::{Error, ErrorKind, Result};

/// Units of UTF-16 in the name of a folder, beyond which Claude Code shortens it by a hash of its
/// own.
const LONGEST: usize = 200;

/// The file of a session of `agent`, by its id, the folder it is run in, and the time in UTC.
///
/// # Errors
///
/// `Refused` when the agent would look elsewhere, or none of that name is known.
pub(super) fn place(
    config: &Config,
    agent: &str,
    id: &str,
    cwd: &Path,
    time: &Zoned,
) -> Result<PathBuf> {
    let cwd = cwd.to_string_lossy();
    match agent {
        "claude" => {
            let folder = dashed(&cwd);
            if folder.len() > LONGEST {
                let what = "Claude Code shortens the name of a folder as deep as this one";
                return Err(Error::new(ErrorKind::Refused, what).at(Path::new(&*cwd)).with_hint(
                    "write the session elsewhere with --out, and resume it by its path",
                ));
            }
            Ok(config.claude.join("projects").join(folder).join(format!("{id}.jsonl")))
        }
        "codex" => {
            let day = time.strftime("%Y/%m/%d").to_string();
            let name = format!("rollout-{}-{id}.jsonl", time.strftime("%Y-%m-%dT%H-%M-%S"));
            Ok(config.codex.join("sessions").join(day).join(name))
        }
        "pi" => {
            let name = format!("{}_{id}.jsonl", time.strftime("%Y-%m-%dT%H-%M-%S-%3fZ"));
            let folder = match config.pi_folders {
                Folders::OfProjects => config.pi_sessions.join(bracketed(&cwd)),
                Folders::One => config.pi_sessions.clone(),
            };
            Ok(folder.join(name))
        }
        _ => {
            let what = format!("nobody knows where {agent} looks for sessions");
            Err(Error::new(ErrorKind::Refused, what))
        }
    }
}

/// As Claude Code names the folder of a project: each unit of UTF-16 that is no letter or digit is
/// a dash.
fn dashed(cwd: &str) -> String {
    let unit = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_string(),
        false => "-".repeat(c.len_utf16()),
    };
    cwd.chars().map(unit).collect()
}

/// As pi names it.
fn bracketed(cwd: &str) -> String {
    let rest = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    format!("--{}--", rest.replace(['/', '\\', ':'], "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_the_agents_name_them() {
        assert_eq!(dashed("/home/dev/my_app.x"), "-home-dev-my-app-x");
        assert_eq!(dashed("/p/ä🤖"), "-p----");
        assert_eq!(bracketed("/home/dev/my_app.x"), "--home-dev-my_app.x--");
        assert_eq!(bracketed("C:\\p"), "--C--p--");
    }
}
