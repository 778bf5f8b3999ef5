//! Simulates full disks: a limit of the file size, a small disk, a device that is always full.

use std::fs;
use std::process::{Command, Stdio};

use crate::case::Case;
use crate::machine::{Machine, copy_folder, ended};
use crate::numbers::Numbers;
use crate::task::{Task, Verb};

/// Whether a small disk can be mounted here.
pub(crate) fn can_mount() -> bool {
    let script = "mount -t tmpfs -o size=64k none \"$1\"";
    let Ok(folder) = tempfile::tempdir() else { return false };
    let mut shell = Command::new("unshare");
    shell.args(["-m", "sh", "-c", script, "sh"]).arg(folder.path());
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

/// Runs a task with one of three kinds of full disk: a limit of the file size, a full device for
/// the output or, if `can_mount` is set, a small disk.
///
/// # Errors
///
/// If the program cannot be started.
pub(crate) fn case(tasks: &[Task], can_mount: bool, seed: u64) -> anyhow::Result<Case> {
    let mut numbers = Numbers::new(seed);
    let task = numbers.one_of(tasks);
    // These commands write paths of the home, but the small disk is mounted at another path.
    let names_paths =
        matches!(task.verb, Verb::Install | Verb::Uninstall | Verb::Render | Verb::Undo);
    let can_mount = can_mount && !names_paths;
    match numbers.below(if can_mount { 10 } else { 6 }) {
        0..5 => limit(task, &mut numbers),
        5 => nothing_is_read(task),
        _ => small_disk(task, &mut numbers),
    }
}

/// Limits the file size: a write beyond the limit fails, or kills the process.
fn limit(task: &Task, numbers: &mut Numbers) -> anyhow::Result<Case> {
    let machine = task.machine()?;
    // The limit in units of 512 bytes.
    let units = numbers.below(200).to_string();
    let (how, trap) =
        if numbers.once_in(2) { ("killed", "") } else { ("an error", "trap '' XFSZ; ") };
    let mut command = machine.command("sh");
    let script = format!("{trap}ulimit -f \"$0\" && exec \"$@\"");
    command.args(["-c", &script, &units]).arg(machine.program()).args(&task.args);
    let ended = ended(command, None)?;
    let failed = ended.code() != Some(0);
    Ok(Case {
        what: format!("{}: files of at most {units} × 512 bytes, {how}", task.name),
        hit: failed,
        violations: task.check(&machine, &ended)?,
    })
}

/// Sends the output to a device that is full.
fn nothing_is_read(task: &Task) -> anyhow::Result<Case> {
    let machine = task.machine()?;
    let mut command = machine.command("sh");
    command.args(["-c", "exec \"$0\" \"$@\" > /dev/full"]).arg(machine.program()).args(&task.args);
    let ended = ended(command, None)?;
    Ok(Case {
        what: format!("{} > /dev/full", task.name),
        hit: ended.code() != Some(0),
        violations: task.check(&machine, &ended)?,
    })
}

/// Puts the home on a disk with little room. The result is copied to a large disk and checked
/// there.
fn small_disk(task: &Task, numbers: &mut Numbers) -> anyhow::Result<Case> {
    let source = task.machine()?;
    let size: u64 = source.files("").iter().flat_map(fs::metadata).map(|it| it.len()).sum();
    let n = source.files("").len() as u64;
    // Besides the size of the files: room for whole pages, for some folders, and for a part of the
    // work.
    let room = size / 1_024 + 8 * n + 40 + numbers.below(160) as u64;
    let disk = source.home.with_file_name("disk");
    let copy = source.home.with_file_name("copy");
    fs::create_dir_all(&disk)?;
    let script = "
        mount -t tmpfs -o size=${ROOM}k none \"$DISK\" || exit 99
        cp -R \"$HOME/.\" \"$DISK\" || exit 98
        OLD=\"$HOME\"; HOME=\"$DISK\"; cd \"$DISK\"
        \"$0\" \"$@\"; STATUS=$?
        cp -R \"$DISK/.\" \"$COPY\"
        exit $STATUS";
    let mut command = source.command("unshare");
    command.env("ROOM", room.to_string()).env("DISK", &disk).env("COPY", &copy);
    command.args(["-m", "sh", "-c", script]).arg(source.program()).args(&task.args);
    fs::create_dir_all(&copy)?;
    let ended = ended(command, None)?;
    let what = format!("{} on a disk of {room} KiB", task.name);
    if matches!(ended.code(), Some(98 | 99)) {
        // There was no room for the original files.
        return Ok(Case { what, hit: false, violations: Vec::new() });
    }
    let machine = Machine::new(source.program())?;
    copy_folder(&copy, &machine.home)?;
    Ok(Case { what, hit: ended.code() != Some(0), violations: task.check(&machine, &ended)? })
}
