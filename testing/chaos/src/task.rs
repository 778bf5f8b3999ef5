//! The command that is disturbed on a machine, and what must hold afterwards.

use std::path::Path;

use anyhow::ensure;

use crate::machine::{Ended, LATER, Machine, ended};
use crate::subject::{State, Subject, content, subjects};
use crate::violation::{Kind, Violation};

/// A command, the machine that it starts on, and the contents that files may have afterwards.
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) verb: Verb,
    pub(crate) subject: Subject,
    /// The machine before `first` and before the command; each case copies it.
    start: Machine,
    /// A command that runs on each copy of `start` before the task's command, because it writes
    /// paths of the copy into files.
    first: Option<Vec<String>>,
    pub(crate) args: Vec<String>,
    /// The content of the subject's files before the command.
    before: State,
    /// The content of the subject's files after the command ran without a fault.
    after: State,
    /// The content of the subject's files before any compaction or installation.
    original: State,
}

/// What the command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Compact,
    Restore,
    Collect,
    Import,
    Install,
    Uninstall,
    Render,
    Undo,
}

/// The tar archive for `import`.
const TAR: &str = "carried.tar";
/// The folder for pages.
const PAGES: &str = "pages";
/// The user's settings of Claude Code.
const SETTINGS: (&str, &[u8]) =
    (".claude/settings.json", b"{\n  \"model\": \"opus\", \"hooks\": {}\n}\n");

impl Task {
    /// All tasks: `compact`, `restore`, `archive gc` and, if the program has it, `undo` with every
    /// subject, other commands with some subjects. Also returns what was left out.
    pub(crate) fn all(program: &Path) -> anyhow::Result<(Vec<Task>, Vec<String>)> {
        let mut tasks = Vec::new();
        let mut left_out = Vec::new();
        let has_undo = Machine::new(program)?.run(&["undo", "--help"])?.code() == Some(0);
        if !has_undo {
            left_out.push("undo: this program has no such command".to_owned());
        }
        for (idx, subject) in subjects()?.into_iter().enumerate() {
            tasks.push(Task::compact(program, &subject)?);
            let compacted = &tasks[tasks.len() - 1];
            let mut more = vec![compacted.restore()?, compacted.collect()?];
            if has_undo {
                more.push(compacted.undo()?);
            }
            if subject.files.len() == 1 && idx < 4 {
                more.push(compacted.import()?);
            }
            if idx == 0 || idx == 2 {
                more.push(Task::render(program, &subject)?);
            }
            tasks.extend(more);
        }
        let claude = subjects()?.remove(2);
        tasks.push(Task::install(program, &claude)?);
        tasks.push(tasks[tasks.len() - 1].uninstall()?);
        Ok((tasks, left_out))
    }

    fn compact(program: &Path, subject: &Subject) -> anyhow::Result<Task> {
        let start = Machine::new(program)?;
        subject.put(&start)?;
        let args = subject.compact();
        Task::new(Verb::Compact, subject, start, &args, None)
    }

    /// A machine on which this task's command has run without a fault.
    fn done(&self) -> anyhow::Result<Machine> {
        let machine = self.machine()?;
        let ended = machine.run(&self.args())?;
        ensure!(
            ended.code() == Some(0),
            "{} does not work: {}",
            self.name,
            ended.beginning_of_output()
        );
        Ok(machine)
    }

    fn restore(&self) -> anyhow::Result<Task> {
        let args = self.subject.restore();
        Task::new(Verb::Restore, &self.subject, self.done()?, &args, Some(&self.original))
    }

    fn undo(&self) -> anyhow::Result<Task> {
        self.followed_by(Verb::Undo, &["undo", "--yes"])
    }

    /// A garbage collection of the archive, after another session was removed by its agent; the
    /// archive of this task's session must stay.
    fn collect(&self) -> anyhow::Result<Task> {
        let mut machine = self.done()?;
        let mut gone = crate::subject::gone();
        gone.put(&machine)?;
        let ended = machine.run(&gone.compact())?;
        ensure!(ended.code() == Some(0), "a second session: {}", ended.beginning_of_output());
        for (name, _) in gone.files.drain(..) {
            std::fs::remove_file(machine.home.join(name))?;
        }
        // At this time the archive of a removed session has expired.
        machine.now = LATER;
        let args = ["archive", "gc", "--yes"];
        Task::new(Verb::Collect, &self.subject, machine, &args, Some(&self.original))
    }

    /// An import: the compacted session is on the machine, and its part of the archive is only in a
    /// tar file.
    fn import(&self) -> anyhow::Result<Task> {
        let machine = self.done()?;
        let id = &self.subject.target;
        let ended = machine.run(&["archive", "export", id, "--out", TAR])?;
        ensure!(ended.code() == Some(0), "archive export: {}", ended.beginning_of_output());
        std::fs::remove_dir_all(machine.home.join(".local/share/epitome"))?;
        let args = ["archive", "import", TAR];
        Task::new(Verb::Import, &self.subject, machine, &args, Some(&self.original))
    }

    fn render(program: &Path, subject: &Subject) -> anyhow::Result<Task> {
        let start = Machine::new(program)?;
        subject.put(&start)?;
        let args = ["render", &*subject.target, "--format", "html,markdown", "--out", PAGES];
        Task::new(Verb::Render, subject, start, &args, None)
    }

    fn install(program: &Path, subject: &Subject) -> anyhow::Result<Task> {
        let mut subject = subject.clone();
        subject.files = vec![(SETTINGS.0.to_owned(), SETTINGS.1.to_vec())];
        let start = Machine::new(program)?;
        subject.put(&start)?;
        let args = ["install", "--agent", "claude", "--all", "--shrink", "--yes"];
        Task::new(Verb::Install, &subject, start, &args, None)
    }

    fn uninstall(&self) -> anyhow::Result<Task> {
        self.followed_by(Verb::Uninstall, &["uninstall", "--yes"])
    }

    /// A task with a command that undoes this task's command. This task's command runs first on
    /// each copy of the machine, because it writes paths of the copy into files.
    fn followed_by(&self, verb: Verb, args: &[&str]) -> anyhow::Result<Task> {
        let mut task = Task {
            name: format!("{verb:?}, {}", self.subject.name).to_lowercase(),
            verb,
            subject: self.subject.clone(),
            start: self.start.like()?,
            first: Some(self.args.clone()),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            before: self.after.clone(),
            after: self.before.clone(),
            original: self.original.clone(),
        };
        task.before = task.subject.state(&task.machine()?)?;
        task.after = task.subject.state(&task.done()?)?;
        ensure!(task.after == self.before, "{} does not do its work", task.name);
        Ok(task)
    }

    /// A copy of `start`, on which the command `first` has been run.
    pub(crate) fn machine(&self) -> anyhow::Result<Machine> {
        let machine = self.start.like()?;
        if let Some(first) = &self.first {
            let args: Vec<&str> = first.iter().map(String::as_str).collect();
            let ended = machine.run(&args)?;
            ensure!(ended.code() == Some(0), "{}: {}", args.join(" "), ended.beginning_of_output());
        }
        Ok(machine)
    }

    fn new(
        verb: Verb,
        subject: &Subject,
        start: Machine,
        args: &[&str],
        original: Option<&State>,
    ) -> anyhow::Result<Task> {
        let before = subject.state(&start)?;
        let mut task = Task {
            name: format!("{verb:?}, {}", subject.name).to_lowercase(),
            verb,
            subject: subject.clone(),
            start,
            first: None,
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            original: original.unwrap_or(&before).clone(),
            after: before.clone(),
            before,
        };
        let done = task.done()?;
        task.after = task.subject.state(&done)?;
        let changes = !matches!(verb, Verb::Collect | Verb::Import | Verb::Render);
        ensure!(changes == (task.after != task.before), "{} does not do its work", task.name);
        Ok(task)
    }

    pub(crate) fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }

    /// The time that the command takes here without a fault.
    pub(crate) fn time(&self) -> anyhow::Result<std::time::Duration> {
        let machine = self.machine()?;
        let mut command = machine.command(machine.program());
        command.args(&self.args);
        Ok(ended(command, None)?.took)
    }

    /// The violations on a machine where the command was disturbed.
    pub(crate) fn check(&self, machine: &Machine, ended: &Ended) -> anyhow::Result<Vec<Violation>> {
        let mut found = Vec::new();
        let mut say = |kind: Kind, what: String| found.push(Violation { kind, what });
        if let Some(what) = ended.misbehaved() {
            say(Kind::Crash, what);
        }
        let now = self.subject.state(machine)?;
        for (name, bytes) in &now {
            if bytes != &self.before[name] && bytes != &self.after[name] {
                let len =
                    bytes.as_ref().map_or("gone".to_owned(), |it| format!("{} bytes", it.len()));
                say(Kind::Lost, format!("{name} is neither as before nor as after: {len}"));
            }
        }
        let succeeded = ended.code() == Some(0);
        if succeeded && now != self.after {
            say(
                Kind::Wrong,
                format!("status 0, and the work is not done: {}", ended.beginning_of_output()),
            );
        }
        if ended.error.contains("nothing was changed") && now != self.before {
            say(
                Kind::Wrong,
                format!("says that nothing was changed: {}", ended.beginning_of_output()),
            );
        }
        if ended.code() == Some(1) {
            say(Kind::Wrong, format!("reports a bug of its own: {}", ended.beginning_of_output()));
        }
        self.way_back(machine, &now, &mut say)?;
        let verify = machine.run(&["archive", "verify"])?;
        if verify.code() != Some(0) {
            say(Kind::Wrong, format!("archive verify: {}", verify.beginning_of_output()));
        }
        if !machine.files(".tmp").is_empty() {
            machine.run(&["archive", "gc", "--yes"])?;
            for path in machine.files(".tmp") {
                say(Kind::Left, format!("{} stays after gc", path.display()));
            }
        }
        Ok(found)
    }

    /// Checks that the original files can still be restored, except after `render`, and that
    /// `import` and `render` succeed when repeated.
    fn way_back(
        &self,
        machine: &Machine,
        now: &State,
        say: &mut impl FnMut(Kind, String),
    ) -> anyhow::Result<()> {
        let again = match self.verb {
            Verb::Import | Verb::Render => Some(machine.run(&self.args())?),
            Verb::Compact
            | Verb::Restore
            | Verb::Collect
            | Verb::Undo
            | Verb::Install
            | Verb::Uninstall => None,
        };
        if let Some(again) = again.filter(|it| it.code() != Some(0)) {
            say(Kind::Wrong, format!("a second time it fails: {}", again.beginning_of_output()));
        }
        let back = match self.verb {
            Verb::Render => return self.pages(machine, say),
            Verb::Install | Verb::Uninstall => vec!["uninstall", "--yes"],
            Verb::Compact | Verb::Restore | Verb::Collect | Verb::Undo | Verb::Import => {
                self.subject.restore()
            }
        };
        if *now == self.original && self.verb != Verb::Install {
            return Ok(());
        }
        let ended = machine.run(&back)?;
        let state = self.subject.state(machine)?;
        if state != self.original {
            let what =
                format!("`{}` gives not all back: {}", back.join(" "), ended.beginning_of_output());
            say(Kind::Lost, what);
        } else if ended.code() != Some(0) {
            say(
                Kind::Wrong,
                format!("`{}` fails: {}", back.join(" "), ended.beginning_of_output()),
            );
        }
        Ok(())
    }

    /// Checks that the pages are those of an undisturbed run. The run is in the same home, because
    /// pages contain paths.
    fn pages(&self, machine: &Machine, say: &mut impl FnMut(Kind, String)) -> anyhow::Result<()> {
        let folder = machine.home.join(PAGES);
        let found = machine.like()?;
        std::fs::remove_dir_all(&folder)?;
        machine.run(&self.args())?;
        for path in machine.files("").iter().filter(|path| path.starts_with(&folder)) {
            let name = path.strip_prefix(&machine.home)?;
            if content(&found.home.join(name))? != content(path)? {
                say(Kind::Wrong, format!("{} is not what it was to become", name.display()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which violations are found if a disturbed compaction failed, printed `said` and left
    /// the file with the content `now`. The program that should then restore it does nothing.
    fn check(now: &[u8], said: &str, expect: &[Kind]) {
        let program = Path::new("true");
        let files = vec![("s.jsonl".to_owned(), b"whole".to_vec())];
        let target = "s.jsonl".to_owned();
        let subject = Subject { name: "one", files, target, more: &[] };
        let state = |bytes: &[u8]| State::from([("s.jsonl".to_owned(), Some(bytes.to_vec()))]);
        let task = Task {
            name: "compact, one".to_owned(),
            verb: Verb::Compact,
            subject,
            start: Machine::new(program).unwrap(),
            first: None,
            args: vec!["compact".to_owned()],
            before: state(b"whole"),
            after: state(b"small"),
            original: state(b"whole"),
        };
        let machine = Machine::new(program).unwrap();
        machine.write("s.jsonl", now).unwrap();
        let mut command = machine.command("sh");
        command.args(["-c", &format!("echo '{said}' >&2; exit 5")]);
        let ended = ended(command, None).unwrap();
        let found = task.check(&machine, &ended).unwrap();
        assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), expect, "{found:?}");
    }

    #[test]
    fn what_does_not_hold_is_found() {
        check(b"whole", "error: nothing was changed", &[]);
        check(b"small", "", &[Kind::Lost]);
        check(b"small", "nothing was changed", &[Kind::Wrong, Kind::Lost]);
        check(b"torn", "", &[Kind::Lost, Kind::Lost]);
        check(b"whole", "panicked at x", &[Kind::Crash]);
    }

    #[test]
    fn a_temporary_file_that_stays_is_found() {
        let machine = Machine::new(Path::new("true")).unwrap();
        machine.write("a/.x.tmp", b"").unwrap();
        assert_eq!(machine.files(".tmp").len(), 1);
    }
}
