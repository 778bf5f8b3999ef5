//! A temporary home folder for each case, and runs of the program in this folder, with a deadline.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// The maximum time of a command. One that runs longer is killed and reported as hanging.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A home folder, which is removed when the machine is dropped.
pub(crate) struct Machine {
    _folder: tempfile::TempDir,
    pub(crate) home: PathBuf,
    program: PathBuf,
    /// The time that the program believes to be the present (`EPITOME_NOW`).
    pub(crate) now: &'static str,
}

/// The time when sessions are compacted.
const NOW: &str = "2026-11-21T12:00:00Z";
/// A time when everything that is kept for some weeks has expired.
pub(crate) const LATER: &str = "2027-11-21T12:00:00Z";

/// The end of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if the command was killed at [`DEADLINE`].
    status: Option<ExitStatus>,
    pub(crate) out: String,
    pub(crate) error: String,
    pub(crate) took: Duration,
}

impl Machine {
    /// An empty home.
    pub(crate) fn new(program: &Path) -> anyhow::Result<Machine> {
        let folder = tempfile::Builder::new().prefix("chaos-").tempdir()?;
        let home = folder.path().canonicalize()?.join("home");
        fs::create_dir(&home)?;
        Ok(Machine { _folder: folder, home, program: program.to_owned(), now: NOW })
    }

    /// A machine with a copy of this home and with the same time.
    pub(crate) fn like(&self) -> anyhow::Result<Machine> {
        let machine = Machine { now: self.now, ..Machine::new(&self.program)? };
        copy_folder(&self.home, &machine.home)?;
        Ok(machine)
    }

    /// The path of the tested program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// A command that runs `program` in this home; of this process's environment it only has
    /// `PATH`.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .current_dir(&self.home)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.home)
            .env("EPITOME_NOW", self.now)
            .env("EPITOME_KEYRING", "off")
            .env("RAYON_NUM_THREADS", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs epitome until it ends, or kills it at the deadline.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<Ended> {
        let mut command = self.command(&self.program);
        command.args(args);
        ended(command, None)
    }

    /// Every file below the home whose path ends with `ending`, sorted.
    pub(crate) fn files(&self, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.home, &mut found);
        found.retain(|path| path.to_string_lossy().ends_with(ending));
        found.sort();
        found
    }
}

/// Runs a command to its end, but kills it after `life`, or after [`DEADLINE`] if `life` is `None`.
/// Of each output, the first mebibyte is read.
pub(crate) fn ended(mut command: Command, life: Option<Duration>) -> anyhow::Result<Ended> {
    let (mut out, mut error) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdout(out.try_clone()?).stderr(error.try_clone()?);
    let begin = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let end = life.unwrap_or(DEADLINE);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        let left = end.saturating_sub(begin.elapsed());
        if left.is_zero() {
            child.kill()?;
            let status = child.wait()?;
            break life.map(|_| status);
        }
        let nap =
            (begin.elapsed() / 20).clamp(Duration::from_micros(200), Duration::from_millis(20));
        std::thread::sleep(nap.min(left));
    };
    let took = begin.elapsed();
    Ok(Ended { status, out: text(&mut out)?, error: text(&mut error)?, took })
}

fn text(file: &mut File) -> anyhow::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(1 << 20).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Ended {
    /// The exit code of the program; `None` if it was killed.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.status.is_some_and(|status| status.signal().is_some())
    }

    /// What this command did that no command may do, whatever the fault: hang, panic or crash. The
    /// signals of the faults themselves, `SIGKILL` (9) and `SIGXFSZ` (25), are no crash.
    pub(crate) fn misbehaved(&self) -> Option<String> {
        let signal = self.status.and_then(|status| status.signal());
        let crash = signal.filter(|it| ![9, 25].contains(it));
        if self.status.is_none() {
            Some(format!("hangs: not over after {} s", DEADLINE.as_secs()))
        } else if self.error.contains("panicked at") || self.code() == Some(101) {
            Some(format!("panics: {}", self.beginning_of_output()))
        } else {
            crash.map(|signal| format!("crashes: signal {signal}"))
        }
    }

    /// The exit code and the first lines of the output, standard error first, on one line: for
    /// reports.
    pub(crate) fn beginning_of_output(&self) -> String {
        let lines: Vec<&str> = self.error.lines().chain(self.out.lines()).take(4).collect();
        let code = self.code().map_or("no status".to_owned(), |code| format!("status {code}"));
        format!("{code}: {}", lines.join(" / ").chars().take(400).collect::<String>())
    }
}

/// Copies the regular files and the folders in a folder. Links, pipes and sockets are left out.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), found),
            Ok(_) => found.push(entry.path()),
            Err(_) => {}
        }
    }
}
