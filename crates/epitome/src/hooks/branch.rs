//! A branch of a project's repository for transcripts, which is checked out in a folder of its own.
//! The user's index, `HEAD` and working tree are not touched.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// A branch for transcripts in the repository of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    /// The name of the branch.
    pub name: String,
    /// The top folder of the project's working tree.
    pub repository: PathBuf,
    /// Whether epitome creates the branch, or created it in an earlier installation. Only such a
    /// branch is deleted when the transcripts are removed.
    pub made: bool,
}

/// The top folder of the working tree that contains `folder`, if there is one.
pub fn top(folder: &Path) -> Option<PathBuf> {
    let top_folder = text(git(folder).args(["rev-parse", "--show-toplevel"])).ok()?;
    (!top_folder.is_empty()).then(|| PathBuf::from(top_folder))
}

/// The folder of a repository's metadata, shared by all its working trees (`--git-common-dir`).
pub(super) fn common(repository: &Path) -> Result<PathBuf> {
    let common_folder =
        text(git(repository).args(["rev-parse", "--path-format=absolute", "--git-common-dir"]))?;
    Ok(PathBuf::from(common_folder))
}

/// The folder, in the repository's `.git`, in which a branch is checked out by default.
pub(super) fn usual_place(repository: &Path, name: &str) -> Result<PathBuf> {
    Ok(common(repository)?.join("epitome").join(name.replace('/', "-")))
}

/// Whether git ignores a path. False if git cannot be run.
pub(super) fn is_ignored(repository: &Path, path: &Path) -> bool {
    let asked = git(repository).args(["check-ignore", "-q", "--"]).arg(path).status();
    asked.is_ok_and(|status| status.success())
}

impl Branch {
    /// Looks a branch up by name. If it does not exist, the result has `made` set:
    /// [`check_out`](Branch::check_out) will create it.
    ///
    /// # Errors
    ///
    /// `Refused` if the name is not a valid name of a branch, or if the branch has commits in
    /// common with the project's `HEAD`.
    pub(super) fn look_up(repository: &Path, name: &str) -> Result<Branch> {
        let wrong = |what: String| Error::new(ErrorKind::Refused, what).at(repository);
        if text(git(repository).args(["check-ref-format", "--branch", name])).is_err() {
            return Err(wrong(format!("`{name}` is not a valid branch name")));
        }
        let is_there = text(git(repository).args(["rev-parse", "-q", "--verify", &full(name)]));
        if is_there.is_ok() {
            let shared = git(repository).args(["merge-base", "HEAD", &full(name)]).output();
            if shared.is_ok_and(|out| out.status.success()) {
                let what = format!("the branch `{name}` holds the history of the project");
                return Err(wrong(what).with_hint("choose another name for the transcripts"));
            }
        }
        let repository = repository.to_owned();
        Ok(Branch { name: name.to_owned(), repository, made: is_there.is_err() })
    }

    /// Checks the branch out at `worktree`, unless that is done already. If `made`, creates the
    /// branch first, with one empty commit.
    ///
    /// # Errors
    ///
    /// The errors of git; `Exists` if the folder `worktree` contains something else.
    pub(super) fn check_out(&self, worktree: &Path) -> Result<()> {
        if self.is_checked_out(worktree) {
            return Ok(());
        }
        let is_empty = worktree.read_dir().map_or(true, |mut entries| entries.next().is_none());
        if !is_empty {
            let what = "there is something in the folder already";
            return Err(Error::new(ErrorKind::Exists, what).at(worktree));
        }
        if self.made {
            let tree =
                text(git(&self.repository).args(["hash-object", "-w", "-t", "tree", "--stdin"]))?;
            let commit = text(named(&self.repository, &self.repository).args([
                "commit-tree",
                &tree,
                "-m",
                "Begin to keep transcripts",
            ]))?;
            text(git(&self.repository).args(["update-ref", &full(&self.name), &commit, ""]))?;
        }
        text(git(&self.repository).args(["worktree", "add", "-q"]).arg(worktree).arg(&self.name))?;
        Ok(())
    }

    /// Commits all changes in the working tree of the branch. Returns false if nothing changed.
    ///
    /// # Errors
    ///
    /// The errors of git; `NotFound` if the branch is not checked out at `worktree`.
    pub(super) fn commit(&self, worktree: &Path, message: &str) -> Result<bool> {
        if !self.is_checked_out(worktree) {
            let what = format!("the branch `{}` is not checked out there", self.name);
            return Err(Error::new(ErrorKind::NotFound, what).at(worktree));
        }
        // Transcripts are added even if the user's ignore rules exclude such files.
        text(git(worktree).args(["add", "-A", "-f", "--", "."]))?;
        let changed = git(worktree).args(["diff", "--cached", "--quiet"]).status();
        if changed.is_ok_and(|status| status.success()) {
            return Ok(false);
        }
        text(named(&self.repository, worktree).args([
            "commit",
            "-q",
            "--no-verify",
            "-m",
            message,
        ]))?;
        Ok(true)
    }

    /// Removes the working tree, and the branch if an installation created it.
    ///
    /// # Errors
    ///
    /// The errors of git.
    pub(super) fn remove(&self, worktree: &Path) -> Result<()> {
        if self.is_checked_out(worktree) {
            text(git(&self.repository).args(["worktree", "remove", "--force"]).arg(worktree))?;
        }
        let is_there =
            text(git(&self.repository).args(["rev-parse", "-q", "--verify", &full(&self.name)]));
        if self.made && is_there.is_ok() {
            text(git(&self.repository).args(["branch", "-q", "-D", &self.name]))?;
        }
        Ok(())
    }

    fn is_checked_out(&self, worktree: &Path) -> bool {
        let asked = text(git(worktree).args(["symbolic-ref", "-q", "HEAD"]));
        worktree.join(".git").is_file() && asked.is_ok_and(|head| head == full(&self.name))
    }
}

fn full(name: &str) -> String {
    format!("refs/heads/{name}")
}

/// A git command in `folder`. If a git hook started this process, its environment has variables
/// that select another repository: they are removed.
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    ] {
        git.env_remove(name);
    }
    git.arg("-C").arg(folder);
    // The user's hooks, signing and background work are switched off: the commit is not the user's,
    // and must not ask for a password.
    for setting in
        ["core.hooksPath=/dev/null", "commit.gpgSign=false", "gc.auto=0", "core.fsmonitor=false"]
    {
        git.args(["-c", setting]);
    }
    git.stdin(Stdio::null());
    git
}

/// Like [`git`], with a name for the committer if the user has set none.
fn named(repository: &Path, folder: &Path) -> Command {
    let has_name = text(git(repository).args(["var", "GIT_COMMITTER_IDENT"])).is_ok();
    let mut git = git(folder);
    if !has_name {
        git.args(["-c", "user.name=epitome", "-c", "user.email=epitome@localhost"]);
    }
    git
}

/// The output of a git command, without white space at its end; `Refused` if the command fails.
fn text(git: &mut Command) -> Result<String> {
    let words: Vec<&OsStr> = git.get_args().collect();
    let at = words.get(1).map(PathBuf::from).unwrap_or_default();
    let failed =
        |why: String| Error::new(ErrorKind::Refused, format!("git does not do it: {why}")).at(&at);
    match git.output() {
        Ok(Output { status, stdout, .. }) if status.success() => {
            Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned())
        }
        Ok(Output { stderr, .. }) => {
            Err(failed(String::from_utf8_lossy(&stderr).trim().to_owned()))
        }
        Err(err) => Err(failed(err.to_string())),
    }
}
