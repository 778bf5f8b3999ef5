//! pi: `sessions/--<folder>--/<time>_<id>.jsonl`. If the user has set another folder for sessions,
//! the files are directly in that.

use std::path::{Path, PathBuf};

use epitome_error::Result;
use epitome_formats::{Format, pi};

use crate::agent::{AdditionTarget, AddressTarget, Agent, HookTarget, NewSession, Resume};
use crate::environment::Environment;
use crate::model_address::{self, ModelAddress};
use crate::session_file::{SessionFile, is_jsonl};
use crate::unread::UnreadErrors;

/// The variable that sets a folder for sessions.
const SESSIONS: &str = "PI_CODING_AGENT_SESSION_DIR";

/// pi, as an [`Agent`].
pub(crate) struct Pi;

impl Agent for Pi {
    fn format(&self) -> &'static Format {
        &pi::FORMAT
    }

    fn variables(&self) -> &'static [&'static str] {
        &["PI_CODING_AGENT_DIR", SESSIONS]
    }

    fn model_address(&self) -> Option<ModelAddress> {
        Some(model_address::PI)
    }

    fn address_settings(&self) -> Option<AddressTarget> {
        Some(AddressTarget { settings: &pi::ADDRESS, folder: home })
    }

    fn folder(&self, environment: &Environment) -> PathBuf {
        environment.folder(SESSIONS, home(environment).join("sessions"))
    }

    fn sessions(&self, environment: &Environment, unread: &mut UnreadErrors) -> Vec<SessionFile> {
        let mut found = unread.files_in(&self.folder(environment));
        let folders: Vec<PathBuf> = found.iter().filter(|path| path.is_dir()).cloned().collect();
        found.extend(folders.iter().flat_map(|folder| unread.files_in(folder)));
        found.retain(|path| is_jsonl(path));
        SessionFile::of_files(found, self.name(), id, unread)
    }

    fn hook(&self) -> Option<HookTarget> {
        Some(HookTarget { hook: &pi::HOOK, settings: home })
    }

    fn command(&self) -> Option<AdditionTarget> {
        Some(AdditionTarget { addition: &pi::COMMAND, settings: home })
    }

    fn resume(&self) -> Option<Resume> {
        Some(Resume { command: &["pi", "--session"], place })
    }
}

/// The id in a file's name.
fn id(stem: &str) -> &str {
    stem.rsplit('_').next().unwrap_or(stem)
}

fn home(environment: &Environment) -> PathBuf {
    environment.folder("PI_CODING_AGENT_DIR", environment.home.join(".pi/agent"))
}

fn place(environment: &Environment, new: &NewSession<'_>) -> Result<PathBuf> {
    let name = format!("{}_{}.jsonl", new.time.strftime("%Y-%m-%dT%H-%M-%S-%3fZ"), new.id);
    let folder = Pi.folder(environment);
    Ok(match environment.variable(SESSIONS) {
        Some(_) => folder.join(name),
        None => folder.join(bracketed(new.cwd)).join(name),
    })
}

/// The name that pi gives the folder of a project.
fn bracketed(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let rest = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    format!("--{}--", rest.replace(['/', '\\', ':'], "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_projects_are_named_as_pi_names_them() {
        assert_eq!(bracketed("/home/dev/my_app.x".as_ref()), "--home-dev-my_app.x--");
        assert_eq!(bracketed("C:\\p".as_ref()), "--C--p--");
    }

    #[test]
    fn a_folder_that_the_user_chose_has_no_folders_of_projects() {
        let time = "2026-11-20T23:12:03.5Z".parse::<jiff::Timestamp>().expect("a time");
        let time = time.to_zoned(jiff::tz::TimeZone::UTC);
        let new = NewSession { id: "i", cwd: "/p".as_ref(), time: &time };
        let mut environment = Environment::from_home("/u".as_ref());
        let expect = "/u/.pi/agent/sessions/--p--/2026-11-20T23-12-03-500Z_i.jsonl";
        assert_eq!(place(&environment, &new).expect("a place"), Path::new(expect));
        environment.variables.insert(SESSIONS.to_owned(), "/s".into());
        let expect = "/s/2026-11-20T23-12-03-500Z_i.jsonl";
        assert_eq!(place(&environment, &new).expect("a place"), Path::new(expect));
    }
}
